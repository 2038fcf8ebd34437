"""Compare one server with Citus clusters of two nodes and different numbers of shards: look-ups and adding documents.

    NEARSIM_CITUS_PG=BIN python -m benchmarks shards [--corpus F.jsonl.gz] [--shards 0 --shards 4 --shards 128]

A database with each number of shards (0: one server without Citus) ingests the same documents, in turns with the other
databases. The servers are started from the programs in the folder NEARSIM_CITUS_PG. First, `--first` documents are
added at once. Then `--few` documents are added ten at a time, and each time texts that are not in the index are looked
up. Then the remaining documents are added at once. Prints milliseconds, and processor milliseconds of all servers, with
their ratios to the first number of shards. Also prints whether the pairs with their figures, the clusters and the
survivors are equal.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from typer import Option

from benchmarks.corpus import Corpus
from benchmarks.options import RECIPE, CorpusFile, RecipeFile
from benchmarks.processes import processor_seconds
from benchmarks.scale_out import read_digest
from benchmarks.speed import percentiles
from benchmarks.truth import read_documents
from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import load
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.servers.citus import CitusServer
from tests.servers.homes import server_home

_AT_ONCE = 10
_LOOKUPS_PER_TURN = 25
_MATCHES = 20


@dataclass(slots=True)
class Subject:
    """A measured database, with milliseconds by kind of call."""

    url: str
    index: Index
    servers: Sequence[PostgresCluster]
    # Wall-clock time of each call.
    clock: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    # Mean processor time of a call, one value for each run.
    processor: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def run(self, name: str, calls: Sequence[Callable[[], object]]) -> None:
        """Run calls one after the other, and record their times."""
        before = self._used()
        for call in calls:
            started = time.perf_counter()
            call()
            self.clock[name].append(1_000 * (time.perf_counter() - started))
        self.processor[name].append(1_000 * (self._used() - before) / len(calls))

    def _used(self) -> float:
        running = [status.status() for status in self.servers]
        return sum(processor_seconds(status.process) for status in running if status is not None)


@contextmanager
def subject(servers: CitusServer, shards: int, recipe: Path) -> Iterator[Subject]:
    """Create a database with this number of shards and an empty index."""
    with ExitStack() as stack:
        if shards:
            url = stack.enter_context(servers.empty_database())
            name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
            setting = sql.SQL("ALTER DATABASE {} SET citus.shard_count = {}").format(name, shards)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(setting)
            Database.initialise(url, citus="yes")
        else:
            url = stack.enter_context(servers.plain_database())
        index = stack.enter_context(Index.connect(url))
        index.create_profile("default", load(recipe))
        yield Subject(url, index, [servers.coordinator, *(servers.nodes if shards else [])])


def measure(subjects: Sequence[Subject], documents: Sequence[Document], first: int, few: int) -> None:
    """Add the documents to all databases, in turns, and look up texts."""
    last = documents[first + few :]
    for tested in subjects:
        tested.run("first documents", [partial(tested.index.add, documents[:first])])
        with psycopg.connect(tested.url, autocommit=True) as connection:
            # In normal operation, autovacuum does this.
            connection.execute("VACUUM (ANALYZE) nearsim.band")

    for turn, at in enumerate(range(first, first + few, _AT_ONCE)):
        asked = [
            last[place % len(last)]
            for place in range(turn * _LOOKUPS_PER_TURN, (turn + 1) * _LOOKUPS_PER_TURN)
        ]
        for tested in subjects:
            tested.run("ten documents", [partial(tested.index.add, documents[at : at + _AT_ONCE])])
            look_up = partial(tested.index.similar_to_text, limit=_MATCHES)
            tested.run("look-up", [partial(look_up, text.body or "", text.title) for text in asked])
    for tested in subjects:
        tested.run("last documents", [partial(tested.index.add, last)])


def table(shards: Sequence[int], subjects: Sequence[Subject]) -> Iterator[str]:
    """Yield the lines of a table of all measurements."""
    named = [f"{number} shards" if number else "one server" for number in shards]
    base = subjects[next(place for place, number in enumerate(shards) if number)]
    yield f"| ms | {' | '.join(named)} |"
    yield "|---" * (len(shards) + 1) + "|"
    for name in base.clock:
        for percentile in ("p50", "p99"):
            values = [percentiles(tested.clock[name])[percentile] for tested in subjects]
            yield _line(f"{name}, {percentile}", values, percentiles(base.clock[name])[percentile])
        used = [fmean(tested.processor[name]) for tested in subjects]
        yield _line(f"{name}, processors", used, fmean(base.processor[name]))


def _line(name: str, values: Sequence[float], base: float) -> str:
    return f"| {name} | {' | '.join(f'{value:,.1f} ({value / base:.2f})' for value in values)} |"


def main(
    corpus: CorpusFile = None,
    shards: Annotated[list[int], Option(metavar="N", help="Numbers of shards.")] = [0, 4, 32, 128],
    first: Annotated[int, Option(help="Number of documents to add first, at once.")] = 7_000,
    few: Annotated[int, Option(help="Number of documents to add then, ten at a time.")] = 200,
    last: Annotated[int, Option(help="Number of generated documents to add last, at once.")] = 3_800,
    recipe: RecipeFile = RECIPE,
) -> str:
    """Ingest documents into databases with each number of shards."""
    if corpus is None:
        generated = Corpus(first + few + last, seed=1).documents()
        documents = [Document(made.external_id, made.title, made.text) for made in generated]
    else:
        documents = read_documents(corpus)

    with server_home() as folder, ExitStack() as stack:
        servers = CitusServer(folder, 2)
        # If the first database with the schema is distributed, the roles are created on the nodes too.
        with servers.database():
            pass
        subjects = [stack.enter_context(subject(servers, number, recipe)) for number in shards]
        measure(subjects, documents, first, few)
        digests = {read_digest(tested.url) for tested in subjects}
        answers = "equal" if len(digests) == 1 else "DIFFERENT"
        return "\n".join([*table(shards, subjects), f"\nanswers: {answers}"])
