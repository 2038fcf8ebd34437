"""Compare indexes on one server and on Citus clusters, which must be equal, and measure the work of each server.

    NEARSIM_CITUS_PG=BIN python -m benchmarks scale-out --corpus F.jsonl.gz [--nodes 0 --nodes 2] [--limits 64]
    NEARSIM_CITUS_PG=BIN python -m benchmarks scale-out --documents 100000 --nodes 2 --limits 64 [--block 10000]

Ingests corpora with `nearsim ingest` for each bucket limit (0: no limit) on each number of nodes (0: one server without
Citus). The servers are started from the programs in the folder NEARSIM_CITUS_PG, with full-page images and flushing
turned off. Prints whether the pairs with their figures, the clusters and the survivors equal those of the first number
of nodes. For each server it prints processor seconds and write-ahead log of the ingest, band rows with their bytes, the
messages and bytes that reached the coordinator, the processor seconds of the statement that finds all links, and the
processor time of adding documents to the live index ten at a time, with the median milliseconds of a batch.

With --traffic, relays count the messages. The figures do not include the relays, but the relays delay the servers. With
--block, generated corpora repeat the documents of a corpus of that size in other letters, so that a document has the
same number of pairs in a corpus of any size.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Annotated

import psycopg
from typer import Option

from benchmarks.corpus import Corpus, write_corpus
from benchmarks.measure import describe_machine, machine
from benchmarks.options import RECIPE, RecipeFile
from benchmarks.processes import processor_seconds, run_measured
from benchmarks.relay import Traffic, relay
from benchmarks.repeated import repeated
from nearsim_db import Document, Index
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.embedded.cluster import PostgresCluster
from nearsim_db.store.generations.tables import GenerationTables
from tests.servers.citus import CitusServer
from tests.servers.homes import server_home

_ADDED = 300
_AT_ONCE = 10
# Bucket hashes are stored as bigint.
_EVERY_BUCKET = (-(2**63), 2**63 - 1)
# Documents are identified by their order, because their doc_ids may differ between databases.
_DIGEST = """
WITH position AS (
    SELECT doc_id, row_number() OVER (ORDER BY doc_id) AS place FROM nearsim.signature
)
SELECT
    (SELECT md5(string_agg(concat_ws(',', l.place, r.place, similarity, estimate, shared_bands), ';'
        ORDER BY l.place, r.place))
    FROM nearsim.similar_pair JOIN position AS l ON l.doc_id = left_id JOIN position AS r ON r.doc_id = right_id)
    || (SELECT md5(string_agg(concat_ws(',', p.place, c.place, is_survivor), ';' ORDER BY p.place))
    FROM nearsim.cluster_member AS member JOIN position AS p USING (doc_id) JOIN position AS c ON c.doc_id = cluster_id)
"""
_WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"


@dataclass(frozen=True, slots=True)
class Work:
    """The work of servers; the coordinator comes first."""

    processor: Sequence[float]  # seconds
    wal: Sequence[int]  # bytes
    sent: Sequence[tuple[int, int]]  # messages and bytes that nodes sent

    def since(self, before: "Work") -> "Work":
        """Return the work done since an earlier reading."""
        return Work(
            [new - old for new, old in zip(self.processor, before.processor, strict=True)],
            [new - old for new, old in zip(self.wal, before.wal, strict=True)],
            [(new[0] - old[0], new[1] - old[1]) for new, old in zip(self.sent, before.sent, strict=True)],
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """An index, and the work of the client and the servers."""

    digest: str  # of its answers
    figures: Mapping[str, int]
    client: float  # processor seconds of the ingest
    ingest: Work
    links: Work  # of the statement that finds all links
    added: Work  # of adding documents to the live index
    milliseconds: float  # median time of adding a batch
    stored: Sequence[tuple[int, int]]  # band rows, and their bytes, by node


class Bench:
    """A coordinator and nodes. If their traffic is counted, the nodes are behind relays."""

    def __init__(self, folder: Path, nodes: int, stack: ExitStack, *, counts_traffic: bool) -> None:
        self._servers = CitusServer(folder, nodes)
        self._hosts = [folder / f"relay{number}" for number in range(nodes)] if counts_traffic else []
        self._traffic = [Traffic()] * nodes
        if counts_traffic:
            self._traffic = [
                stack.enter_context(relay(node.socket_directory, host))
                for node, host in zip(self._servers.nodes, self._hosts, strict=True)
            ]
        # If the first database with the schema is distributed, the roles are created on the nodes too.
        with self.database(nodes):
            pass

    def database(self, nodes: int) -> AbstractContextManager[str]:
        """Return a context with the URL of a database on this number of nodes, 0 for one without Citus."""
        if not nodes:
            return self._servers.plain_database()
        return self._servers.database(nodes=nodes, hosts=self._hosts)

    def work(self, nodes: int) -> Work:
        """Return the work of the servers so far."""
        servers = [self._servers.coordinator, *self._servers.nodes[:nodes]]
        return Work(
            [_processor_seconds(server) for server in servers],
            [_written(server) for server in servers],
            [(traffic.messages, traffic.bytes) for traffic in self._traffic[:nodes]],
        )


def _processor_seconds(cluster: PostgresCluster) -> float:
    postmaster = cluster.status()
    assert postmaster is not None
    return processor_seconds(postmaster.process)


def _written(cluster: PostgresCluster) -> int:
    with psycopg.connect(cluster.dsn("postgres")) as connection:
        row = connection.execute(_WAL).fetchone()
    assert row is not None
    return int(row[0])


def measure(bench: Bench, nodes: int, file: Path, recipe: Path, bucket_limit: int) -> Outcome:
    """Ingest a corpus into a new database, and measure the index."""
    with bench.database(nodes) as url:
        command, named = [sys.executable, "-m", "nearsim_db"], ["--collection", "measured", "--quiet"]
        settings = ["--recipe", str(recipe), "--set", f"match.bucket_limit={bucket_limit}"]
        environment = {"NEARSIM_DATABASE_URL": url}
        run_measured([*command, "profile", "create", "default", *settings, *named], environment)

        before = bench.work(nodes)
        cost, _ = run_measured([*command, "ingest", str(file), *named], environment)
        built = bench.work(nodes)

        with Index.connect(url, collection="measured") as index:
            leaves, figures = index.serving().context.leaves, index.stats(recount=True)
            with index.database.engine.connect() as connection:
                stored = placement.measure_nodes(connection) if nodes else []
                began = bench.work(nodes)
                links = count_links(connection, leaves, bucket_limit)
                linked = bench.work(nodes)
            milliseconds = add_some(index)
            added = bench.work(nodes)
        return Outcome(
            read_digest(url),
            {name: int(figures[name]) for name in ("documents", "pairs", "clusters")} | {"links": links},
            cost.client,
            built.since(before),
            linked.since(began),
            added.since(linked),
            milliseconds,
            [(node.rows, node.bytes) for node in stored],
        )


def add_some(index: Index) -> float:
    """Add documents to the live index in batches; return the median milliseconds of a batch."""
    documents = [
        Document(f"added {document.external_id}", document.title, document.text)
        # The seed differs from that of the generated corpora, so that these documents are no copies.
        for document in Corpus(_ADDED, seed=2).documents()
    ]
    milliseconds = []
    for at in range(0, _ADDED, _AT_ONCE):
        started = time.perf_counter()
        index.add(documents[at : at + _AT_ONCE])
        milliseconds.append(1_000 * (time.perf_counter() - started))
    return median(milliseconds)


def count_links(connection: Connection, leaves: Leaves, bucket_limit: int) -> int:
    """Find the links of all buckets with the statement of a build; return their number."""
    with closing(
        GenerationTables(connection, leaves).bands.stream_links(bucket_limit, _EVERY_BUCKET)
    ) as links:
        return sum(len(batch.left) for batch in links)


def describe(name: str, bucket_limit: int, nodes: int, outcome: Outcome, base: Outcome) -> str:
    """Return a line with the figures of an index, and whether its answers equal those of the first number of nodes."""
    figures = ", ".join(f"{amount:,} {key}" for key, amount in outcome.figures.items())
    same = "equal" if outcome.digest == base.digest else "DIFFERENT"
    return f"{name}, bucket_limit {bucket_limit or 'none'}, {nodes} nodes: {figures}: {same}"


def table(nodes: int, outcome: Outcome) -> str:
    """Return a table with a line for each server: its work and, for nodes, what they store and sent."""
    lines = [
        "| | ingest, s | WAL, MB | band rows | MB | messages | MB | links, s | messages | MB |",
        "|---" * 10 + "|",
    ]
    for at in range(nodes + 1):
        cells = [f"node {at}" if at else "coordinator"]
        cells += [f"{outcome.ingest.processor[at]:.2f}", f"{outcome.ingest.wal[at] / 1e6:.1f}"]
        cells += _amounts(outcome.stored, at) + _amounts(outcome.ingest.sent, at)
        cells += [f"{outcome.links.processor[at]:.2f}", *_amounts(outcome.links.sent, at)]
        lines.append(f"| {' | '.join(cells)} |")

    milliseconds = outcome.ingest.processor[0] * 1e3 / outcome.figures["documents"]
    lines += [f"client: {outcome.client:.2f} s; coordinator: {milliseconds:.4f} ms a document"]
    each = ", ".join(f"{1e3 * seconds / _ADDED:.2f}" for seconds in outcome.added.processor)
    written = ", ".join(f"{amount / 1e3 / _ADDED:.2f}" for amount in outcome.added.wal)
    lines += [
        f"{_AT_ONCE} documents added: {outcome.milliseconds:.0f} ms; a document, by server: "
        f"{each} ms of processor time, {written} KB of WAL"
    ]
    return "\n".join(lines)


def _amounts(by_node: Sequence[tuple[int, int]], at: int) -> list[str]:
    return [f"{by_node[at - 1][0]:,}", f"{by_node[at - 1][1] / 1e6:.2f}"] if at else ["", ""]


def read_digest(url: str) -> str:
    """Return a digest of the pairs, clusters and survivors of a database with one generation."""
    with psycopg.connect(url) as connection:
        digest = connection.execute(_DIGEST).fetchone()
    assert digest is not None
    return str(digest[0])


def corpora(files: Sequence[Path], sizes: Sequence[int], block: int | None, folder: Path) -> Iterator[Path]:
    """Yield the files of the corpora; generated corpora are written to the folder."""
    yield from files
    for size in sizes:
        file = folder / f"generated-{size}.jsonl.gz"
        documents = Corpus(block or size, seed=1).documents()
        write_corpus(repeated(list(documents), size) if block else documents, file, None)
        yield file


def main(
    corpus: Annotated[list[Path], Option(metavar="FILE", help="File of a corpus (repeatable).")] = [],
    documents: Annotated[
        list[int], Option(metavar="N", help="Size of a generated corpus (repeatable).")
    ] = [],
    block: Annotated[int | None, Option(help="Repeat a block of N documents in generated corpora.")] = None,
    nodes: Annotated[list[int], Option(metavar="N", help="Numbers of nodes.")] = [0, 2, 4],
    limits: Annotated[list[int], Option(metavar="N", help="Bucket limits.")] = [8, 64, 0],
    traffic: Annotated[bool, Option("--traffic", help="Count messages of the nodes.")] = False,
    recipe: RecipeFile = RECIPE,
) -> None:
    """Ingest corpora on each number of nodes."""
    with server_home() as folder, ExitStack() as stack:
        bench = Bench(folder, max(nodes), stack, counts_traffic=traffic)
        for file, bucket_limit in product(corpora(corpus, documents, block, folder), limits):
            base = None
            for number in nodes:
                outcome = measure(bench, number, file, recipe, bucket_limit)
                base = base or outcome
                print(describe(file.name, bucket_limit, number, outcome, base))
                print(f"\n{table(number, outcome)}\n", flush=True)
    print(describe_machine(machine()))
