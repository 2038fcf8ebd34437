"""Add a node to a Citus cluster and move shards to it, while the index is queried and written to.

    NEARSIM_CITUS_PG=BIN python -m benchmarks rebalancing [--documents 100000]

Indexes the synthetic corpus, without a bucket limit, on a coordinator with two nodes. The servers are started from the
programs in the folder NEARSIM_CITUS_PG. Further documents are added ten at a time, followed by ten lookups of texts
each time: first before the move, and then from `citus_rebalance_start()` until the third node has its shards. Prints
the seconds of the move, rows and bytes of the nodes, and milliseconds of writes and lookups before and during the move.
Also prints whether the pairs with their figures, the clusters and the survivors equal those of one server that indexed
the same documents at once.
"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from benchmarks.corpus import Corpus
from benchmarks.measure import describe_machine, machine
from benchmarks.options import RECIPE, Documents
from benchmarks.scale_out import read_digest
from benchmarks.speed import percentiles
from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, load, override
from nearsim_db.store.citus import placement
from tests.servers.citus import CitusServer, add_node
from tests.servers.homes import server_home

_AT_ONCE = 10
_TURNS_BEFORE = 50
_MOVING = "SELECT EXISTS (SELECT FROM pg_dist_background_job WHERE state IN ('scheduled', 'running'))"
# Look for retries: Citus tries a failed task again, so its job does not fail at once.
_FAILED = "SELECT message FROM pg_dist_background_task WHERE retry_count > 0"

Session = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds of adding a batch of documents, and of each lookup."""

    writes: list[float] = field(default_factory=list)
    lookups: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Traffic:
    """Adds documents in their order, and looks up random indexed documents."""

    index: Index
    documents: Sequence[Document]
    added: int
    rng: random.Random

    def turn(self, figures: Figures) -> None:
        """Add a batch of documents, and look up as many. Raises ValueError if all documents are added."""
        batch = self.documents[self.added : self.added + _AT_ONCE]
        if not batch:
            raise ValueError("all documents are added before the shards have moved; choose more --documents")
        started = time.perf_counter()
        self.index.add(batch)
        figures.writes.append(1_000 * (time.perf_counter() - started))
        self.added += len(batch)
        for _ in batch:
            document = self.documents[self.rng.randrange(self.added)]
            started = time.perf_counter()
            self.index.similar_to_text(document.body or "", document.title, limit=20)
            figures.lookups.append(1_000 * (time.perf_counter() - started))


def move(session: Session, node: Path, traffic: Traffic) -> tuple[float, Figures]:
    """Add a node and move shards to it under traffic; return the seconds and figures. Raises ValueError on failure."""
    meanwhile, started = Figures(), time.perf_counter()
    add_node(session, node)
    session.execute("ALTER ROLE nearsim_admin LOGIN")
    session.execute("SELECT citus_rebalance_start()")
    while _is_moving(session):
        if failed := session.execute(_FAILED).fetchall():
            raise ValueError(failed)
        traffic.turn(meanwhile)
    seconds = time.perf_counter() - started
    session.execute("ALTER ROLE nearsim_admin NOLOGIN")
    return seconds, meanwhile


def _is_moving(session: Session) -> bool:
    row = session.execute(_MOVING).fetchone()
    return row is not None and bool(row[0])


def table(before: Figures, meanwhile: Figures) -> Iterator[str]:
    """Yield the lines of a table of the figures before and during the move."""
    yield "| | p50, ms | p99, ms | | p50, ms | p99, ms |"
    yield "|---|---|---|---|---|---|"
    for name in ("writes", "lookups"):
        old, new = percentiles(getattr(before, name)), percentiles(getattr(meanwhile, name))
        yield f"| {name} before | {old['p50']} | {old['p99']} | meanwhile | {new['p50']} | {new['p99']} |"


def measure(servers: CitusServer, documents: Sequence[Document], first: int) -> None:
    """Print the figures of a cluster to which a node is added, and compare it with one server."""
    recipe = override(load(RECIPE), ["match.bucket_limit=0"])
    with servers.database(nodes=2) as url, psycopg.connect(url, autocommit=True) as session:
        with Index.connect(url) as index:
            create(index, recipe, documents[:first])
            traffic, before = Traffic(index, documents, first, random.Random(1)), Figures()
            for _ in range(_TURNS_BEFORE):
                traffic.turn(before)
            seconds, meanwhile = move(session, servers.nodes[2].socket_directory, traffic)
            # Moved shards have no statistics, so collect them.
            session.execute("ANALYZE nearsim.band")
            with index.database.engine.connect() as connection:
                stored = placement.measure_nodes(connection)
        print("\n".join(table(before, meanwhile)))
        nodes = ", ".join(
            f"{node.shards} shards, {node.rows:,} rows, {node.bytes / 1e6:.0f} MB" for node in stored
        )
        print(
            f"\n{first:,} documents, {traffic.added - first:,} added; {seconds:.1f} s of moving; nodes: {nodes}"
        )
        moved = read_digest(url)

    with servers.plain_database() as url, Index.connect(url) as index:
        create(index, recipe, documents[: traffic.added])
        print("equal" if read_digest(url) == moved else "DIFFERENT")


def create(index: Index, recipe: Recipe, documents: Sequence[Document]) -> None:
    """Index documents with a recipe."""
    index.create_profile("default", recipe)
    index.add(documents)


def main(documents: Documents = 100_000) -> None:
    """Index documents on two nodes, add a third, and move shards to it."""
    generated = Corpus(2 * documents, seed=1).documents()
    made = [Document(document.external_id, document.title, document.text) for document in generated]
    with server_home() as folder:
        servers = CitusServer(folder, 3)
        # If the first database with the schema is distributed, the roles are created on the nodes too.
        with servers.database():
            pass
        measure(servers, made, documents)
    print(describe_machine(machine()))
