"""The cost of many collections: the same queries and commands, with growing numbers of small collections.

    python -m benchmarks collections [--collections 1 --collections 10000] [--own 50] [--major 15]

A dedicated server has collections of four documents each, which are copied in SQL from an indexed collection. In
addition, `--own N` creates N collections with separate tables. "server" is the execution and planning time of all
statements, measured by pg_stat_statements. "clients" are sessions that each read the documents of all collections and
write a document. All of their transactions are open at the same time, and max_locks_per_transaction has its default.
"""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Annotated, LiteralString

import psutil
import psycopg
from psycopg import sql
from typer import Option

from benchmarks.measure import take_turns
from benchmarks.options import Major
from benchmarks.own_server import own_server
from benchmarks.processes import run_measured
from nearsim_db import Index
from nearsim_db.admin.reindex import Reindex
from tests.builders.many_collections import DOCUMENTS, TEMPLATE, fill

_SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_planning": "on",
    "max_connections": "100",
}
_NEARSIM = (sys.executable, "-m", "nearsim_db")
_COMMANDS = (
    "worker --once",
    "doctor",
    "collection list",
    "server status",
    "work list",
    "stats",
    "reindex status",
)
_OF_COLLECTION = {"stats", "reindex status"}
_CLIENTS = 64
_OWN = "own-00001"
# The maximum number of collections that a session reads before its memory is measured.
_MAX_COLLECTIONS_READ = 1_000
_ROUNDS = 5
_FIRST_DOCUMENT: LiteralString = """
SELECT min(doc_id) FROM nearsim.document JOIN nearsim.collection USING (collection_id) WHERE name = %s
"""
_VIEWS: Mapping[str, LiteralString] = {
    "view pairs": "SELECT * FROM nearsim.pairs WHERE collection = {name} AND left_id = {document}",
    "pairs by left_id alone": "SELECT * FROM nearsim.pairs WHERE left_id = {document}",
    "view documents": "SELECT * FROM nearsim.documents WHERE collection = {name}",
    "view duplicates": "SELECT * FROM nearsim.duplicates WHERE collection = {name}",
    "dedupe in SQL": "SELECT * FROM nearsim.dedupe(ARRAY(SELECT doc_id FROM nearsim.document ORDER BY doc_id LIMIT 4))",
}
_INSERT: LiteralString = """
INSERT INTO nearsim.document (collection_id, external_id, title, body)
SELECT document.collection_id, %s, document.title, document.body || ' again'
FROM nearsim.document JOIN nearsim.collection USING (collection_id) WHERE name = %s AND external_id = '1'
"""
_IS_INDEXED: LiteralString = """
SELECT count(*) FROM nearsim.pairs WHERE collection = %s AND %s IN (left_external_id, right_external_id)
"""
_PATIENCE_SECONDS = 120.0

Session = psycopg.Connection[tuple[object, ...]]


def read(session: Session, query: LiteralString, *parameters: object) -> int:
    """Return the number that a query returns."""
    row = session.execute(query, parameters).fetchone()
    assert row is not None
    return round(float(str(row[0])))


def fill_own(url: str, collections: int) -> None:
    """Create collections whose signatures and bands are in separate tables."""
    for number in range(1, collections + 1):
        with Index.connect(url, collection=f"own-{number:05}") as index:
            index.add(DOCUMENTS)
            reindex = Reindex(index.database, index.collection)
            reindex.start(tables="own")
            reindex.promote()


def plan(session: Session, query: sql.Composed) -> Iterator[float]:
    """Yield the milliseconds of planning and of execution: medians of several runs, after a run that fills caches."""
    runs = []
    for _ in range(_ROUNDS + 1):
        lines = session.execute(sql.SQL("EXPLAIN (ANALYZE, SUMMARY) ") + query).fetchall()
        runs.append([float(str(line).split(": ")[1].split()[0]) for (line,) in lines[-2:]])
    yield from (statistics.median(column) for column in zip(*runs[1:], strict=True))


def measure_views(url: str, collection: str) -> dict[str, object]:
    """Measure the planning, execution and locks of queries on one collection."""
    figures: dict[str, object] = {}
    for name, query in _VIEWS.items():
        with psycopg.connect(url) as session:
            document = read(session, _FIRST_DOCUMENT, collection)
            session.rollback()
            planning, execution = plan(session, sql.SQL(query).format(name=collection, document=document))
            locks = read(session, "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()")
        figures[f"{collection}, {name}: planning, execution, ms; locks"] = (
            f"{planning:.1f}, {execution:.1f}; {locks}"
        )
    return figures


def measure_memory(url: str, collections: int) -> float:
    """Return the megabytes of a session that has read three views for each of up to 1,000 collections."""
    with psycopg.connect(url, autocommit=True) as session:
        for number in range(1, min(collections, _MAX_COLLECTIONS_READ) + 1):
            for view in ("pairs", "documents", "duplicates"):
                query = sql.SQL("SELECT * FROM nearsim.{} WHERE collection = %s")
                session.execute(query.format(sql.Identifier(view)), (f"tenant-{number:05}",))
        return read(session, "SELECT sum(total_bytes) FROM pg_backend_memory_contexts") / 1e6


def measure_first_document(url: str, collection: str) -> tuple[float, int]:
    """Add the first document of a new collection; return the server's milliseconds and the number of statements."""
    with psycopg.connect(url, autocommit=True) as session, Index.connect(url, collection=collection) as index:
        session.execute("SELECT pg_stat_statements_reset()")
        index.add(DOCUMENTS[:1])
        spent = read(
            session,
            "SELECT 1000 * sum(total_exec_time + total_plan_time) FROM pg_stat_statements "
            "WHERE query !~ 'pg_stat_'",
        )
        return spent / 1e3, read(
            session, "SELECT sum(calls) FROM pg_stat_statements WHERE query !~ 'pg_stat_'"
        )


def measure_lookup(url: str) -> float:
    """Return the median milliseconds of looking up a text."""
    with Index.connect(url, collection=TEMPLATE) as index:
        text = DOCUMENTS[0].body or ""
        index.similar_to_text(text)
        runs: Mapping[str, Callable[[], object]] = {"": lambda: index.similar_to_text(text)}
        return 1e3 * statistics.median(take_turns(runs, 10 * _ROUNDS)[""])


@contextmanager
def running_worker(url: str) -> Iterator[None]:
    """Run a worker process during the block; wait until it has opened its session."""
    environment = {**os.environ, "NEARSIM_DATABASE_URL": url}
    with psycopg.connect(url, autocommit=True) as session:
        newest_lease = read(session, "SELECT coalesce(max(lease_id), 0) FROM nearsim_index.lease")
        process = subprocess.Popen([*_NEARSIM, "worker", "--quiet"], env=environment)
        try:
            _await(session, "SELECT count(*) FROM nearsim_index.lease WHERE lease_id > %s", newest_lease)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _await(session: Session, query: LiteralString, *parameters: object) -> float:
    """Wait until a query returns a number other than 0; return the seconds."""
    began = time.monotonic()
    while not read(session, query, *parameters):
        if time.monotonic() - began > _PATIENCE_SECONDS:
            raise RuntimeError(f"nothing after {_PATIENCE_SECONDS:.0f} s: {query}")
        time.sleep(0.01)
    return time.monotonic() - began


def measure_worker(url: str, collection: str) -> float:
    """Return the seconds from an insert in SQL, the first that a new worker sees, until the document has a pair."""
    external_id = "inserted"
    with running_worker(url), psycopg.connect(url, autocommit=True) as session:
        session.execute(_INSERT, (external_id, collection))
        return _await(session, _IS_INDEXED, collection, external_id)


def count_failures(url: str) -> int:
    """Return how many of 64 sessions fail. Each reads all documents and writes one, in transactions open together."""
    failed = 0
    with ExitStack() as opened:
        sessions = [opened.enter_context(psycopg.connect(url)) for _ in range(_CLIENTS)]
        for at, session in enumerate(sessions):
            try:
                session.execute("SELECT count(*) FROM nearsim.documents WHERE external_id = '1'")
                session.execute(_INSERT, (f"client-{at}", TEMPLATE))
            except psycopg.Error:
                failed += 1
        for session in sessions:
            session.rollback()
    return failed


def measure_commands(url: str, server: psutil.Process) -> dict[str, object]:
    """Measure commands: seconds on the clock, and processor seconds of client and server."""
    figures: dict[str, object] = {}
    for command in _COMMANDS:
        words = [*_NEARSIM, *command.split(), *(["--collection", TEMPLATE] * (command in _OF_COLLECTION))]
        costs = [run_measured(words, {"NEARSIM_DATABASE_URL": url}, server)[0] for _ in range(3)]
        clock, used = min(cost.wall for cost in costs), min(cost.client + cost.server for cost in costs)
        figures[f"nearsim {command}: clock, processor, s"] = f"{clock:.2f}, {used:.2f}"
    return figures


def measure(url: str, server: psutil.Process, collections: int, own: int) -> dict[str, object]:
    """Measure a database that has the given number of collections."""
    figures: dict[str, object] = {}
    for collection in (TEMPLATE, *([_OWN] * bool(own))):
        figures |= measure_views(url, collection)
    figures |= measure_commands(url, server)

    names = [f"new {collections} {number}" for number in range(3)]
    first = min(measure_first_document(url, name) for name in names)
    figures["first document: server, ms; statements"] = f"{first[0]:.1f}; {first[1]}"
    figures["first insert until indexed, s"] = f"{min(measure_worker(url, name) for name in names):.2f}"

    figures["look-up of a text, ms"] = f"{measure_lookup(url):.2f}"
    figures[f"session after {_MAX_COLLECTIONS_READ:,} collections, MB"] = (
        f"{measure_memory(url, collections):.1f}"
    )
    figures[f"failed of {_CLIENTS} clients"] = count_failures(url)
    with psycopg.connect(url) as session:
        figures["relations in the catalogue"] = read(
            session,
            "SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
            "WHERE starts_with(CAST(nspname AS text), 'nearsim')",
        )
    return figures


def main(
    collections: Annotated[list[int], Option(help="Number of collections.")] = [1, 100, 1_000, 10_000],
    own: Annotated[int, Option(help="Number of additional collections with separate tables.")] = 0,
    major: Major = 18,
) -> str:
    """Measure a server as the number of its collections grows."""
    columns = {}
    with own_server(major, _SETTINGS) as cluster:
        url, running = cluster.dsn(), cluster.status()
        assert running is not None
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("CREATE EXTENSION pg_stat_statements")
        fill_own(url, own)
        for size in sorted(collections):
            fill(url, size)
            columns[size] = measure(url, running.process, size, own)
    rows = ["| | " + " | ".join(f"{size:,}" for size in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in next(iter(columns.values())):
        rows.append(f"| {name} | " + " | ".join(str(figures[name]) for figures in columns.values()) + " |")
    return "\n".join(rows)
