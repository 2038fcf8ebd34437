"""The speed of a live index: look-ups, latency from a commit to the pair, and throughput of workers.

    python -m benchmarks speed [--documents 200000] [--new 20000] [--workers 2] [--writers 1] [--only latency]

The index has the synthetic corpus, in which 2 % of the documents are in families from templates, whose buckets exceed
the limit. Documents of the same kind are added while the index is measured. The server has the default durability
settings.
"""

import time
from collections.abc import Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated

import numpy as np
import psutil
from typer import Option

from benchmarks.feed import insert_all, mixed_documents, running_writers
from benchmarks.living_system import (
    COLLECTION,
    Connection,
    System,
    living_system,
    read_backlog,
    running_workers,
)
from benchmarks.options import RECIPE, Changes, Major, RecipeFile, Seed
from benchmarks.processes import processor_seconds
from benchmarks.wal import describe, make_readable
from nearsim_db.index import Index
from nearsim_db.records import Document
from nearsim_db.similarity.recipe import load, override

_POLL_SECONDS = 0.002
# Poll less often here, because counting the waiting work is work for the server too.
_DRAIN_POLL_SECONDS = 0.1
_GIVE_UP_SECONDS = 600.0
_WARM_UP = 200
# Take documents in no cluster: under the bucket limit, a document of a large bucket may not be paired with its copy.
_SINGLES = """
SELECT doc_id, title, body FROM nearsim.document JOIN nearsim.signature USING (doc_id)
WHERE generation_id = %s AND feature_count > 100 AND NOT EXISTS (
    SELECT FROM nearsim.cluster_member AS member
    WHERE member.generation_id = signature.generation_id AND member.doc_id = document.doc_id)
ORDER BY hashint8(doc_id) LIMIT %s
"""
_INSERT = """
INSERT INTO nearsim.document (collection_id, external_id, title, body) VALUES (%s, %s, %s, %s) RETURNING doc_id
"""
_HAS_PAIR = """
SELECT EXISTS (SELECT FROM nearsim.similar_pair WHERE generation_id = %s AND left_id = %s AND right_id = %s)
"""


class Part(StrEnum):
    """The parts of the measurement, in their order."""

    LOOKUP = "lookup"
    LATENCY = "latency"
    THROUGHPUT = "throughput"


def main(
    documents: Annotated[int, Option(help="Number of indexed documents.")] = 200_000,
    new: Annotated[int, Option(help="Number of documents to insert.")] = 20_000,
    lookups: Annotated[int, Option(help="Number of look-ups.")] = 2_000,
    copies: Annotated[int, Option(help="Number of near-copies for the latency from commit to pair.")] = 100,
    workers: Annotated[int, Option(help="Number of worker processes.")] = 2,
    writers: Annotated[int, Option(help="Number of writing processes.")] = 2,
    hot_share: Annotated[float, Option(help="Share of documents in families of a template.")] = 0.02,
    max_waiting: Annotated[
        int, Option("--most-waiting", help="Writers pause while more than N documents wait to be searched.")
    ] = 5_000,
    only: Annotated[list[Part], Option(help="Measure only this part (repeatable).")] = [],
    recipe: RecipeFile = RECIPE,
    changes: Changes = ["match.bucket_limit=64"],
    seed: Seed = 1,
    major: Major = 18,
) -> dict[str, object]:
    """Index the corpus, then measure look-ups, latency and throughput."""
    generated = mixed_documents(documents + lookups + new, seed, hot_share)
    results: dict[str, object] = {"indexed": documents}
    with living_system(major, override(load(recipe), changes), islice(generated, documents)) as system:
        looked_up, inserted = list(islice(generated, lookups)), list(generated)
        measures = {
            Part.LOOKUP: lambda: measure_lookup(system, looked_up),
            Part.LATENCY: lambda: measure_latency(system, copies),
            Part.THROUGHPUT: lambda: measure_throughput(system, inserted, workers, writers, max_waiting),
        }
        for part in only or Part:
            results[part] = measures[part]()
    return results


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return the median, the 95th and 99th percentile and the maximum, in milliseconds."""
    quantiles = np.quantile(np.array(milliseconds), [0.5, 0.95, 0.99, 1.0]).tolist()
    return {
        name: round(value, 3) for name, value in zip(("p50", "p95", "p99", "max"), quantiles, strict=True)
    }


def measure_throughput(
    system: System, documents: Sequence[Document], workers: int, writers: int, max_waiting: int
) -> dict[str, object]:
    """Return documents per second from the first commit until all documents are searched, while writers insert them.

    The first tenth of the documents is only a warm-up for the workers.
    """
    first, documents = documents[: len(documents) // 10], documents[len(documents) // 10 :]
    with system.connect() as connection, running_workers(system, workers) as running:
        insert_all(system.url, system.collection_id, first, max_waiting)
        _wait_until_drained(connection, time.perf_counter())
        worker_processes = [psutil.Process(process.pid) for process in running.processes]
        processes = {"server": [system.postmaster()], "workers": worker_processes}
        before = {name: sum(map(processor_seconds, group)) for name, group in processes.items()}
        first_id, wal, wal_start = _newest(connection), _wal_bytes(connection), make_readable(connection)
        started, url = time.perf_counter(), system.url
        with running_writers(url, system.collection_id, documents, writers, max_waiting):
            while _newest(connection) == first_id:
                started = time.perf_counter()
                time.sleep(_POLL_SECONDS)

        written = time.perf_counter() - started
        searched, linked = _wait_until_drained(connection, started)
        used = {name: sum(map(processor_seconds, group)) - before[name] for name, group in processes.items()}
        wal = _wal_bytes(connection) - wal
        described = describe(connection, wal_start, len(documents))
        set_aside = read_backlog(connection).set_aside
        ended = sum(process.poll() is not None for process in running.processes)
    return {
        "documents": len(documents),
        "seconds until written": round(written, 2),
        "seconds until searched": round(searched, 2),
        "seconds until clustered": round(linked, 2),
        "documents/s committed and searched": round(len(documents) / searched),
        "WAL bytes a document": round(wal / len(documents)),
        "of these": described,
        "cores used": {name: round(seconds / linked, 2) for name, seconds in used.items()},
        "workers that ended": ended,
        "set aside": set_aside,
    }


def measure_latency(system: System, copies: int, seed: int = 1) -> dict[str, object]:
    """Return milliseconds from the commit of a near-copy until its pair is visible, with one idle worker."""
    rng = np.random.Generator(np.random.PCG64(seed))
    with system.connect() as connection, running_workers(system, 1):
        _warm_up(system, connection)
        waits = []
        for number, (head, title, body) in enumerate(_singles(connection, system, copies)):
            time.sleep(float(rng.uniform(0.05, 0.25)))
            name = f"copy-{number}"
            row = connection.execute(
                _INSERT, (system.collection_id, name, title, f"{body} and so on")
            ).fetchone()
            waits.append(1_000 * _wait_for_pair(connection, system, head, int(str(row[0])) if row else 0))
            _wait_until_drained(connection, time.perf_counter())
    return {"copies": len(waits), "milliseconds from commit to pair": percentiles(waits)}


def measure_lookup(system: System, documents: Sequence[Document]) -> dict[str, object]:
    """Return the milliseconds of checking documents against the index in this process, after a warm-up.

    The figures are also divided by the number of matches, because it takes long to list hundreds of identical texts.
    """
    by_matches: dict[str, list[float]] = {"none": [], "1 to 64": [], "more": []}
    with Index.connect(system.url, collection=COLLECTION) as index:
        for document in documents[:_WARM_UP]:
            index.check(document)

        for document in documents:
            started = time.perf_counter()
            matches = len(index.check(document))
            passed = 1_000 * (time.perf_counter() - started)
            by_matches["more" if matches > 64 else "1 to 64" if matches else "none"].append(passed)
    return {
        "documents": len(documents),
        "milliseconds": percentiles(
            [milliseconds for group in by_matches.values() for milliseconds in group]
        ),
        "milliseconds by matches": {
            name: {"documents": len(group), **percentiles(group)}
            for name, group in by_matches.items()
            if group
        },
    }


def _warm_up(system: System, connection: Connection) -> None:
    """Let the worker index a document, so that its compiled code is loaded and its statements are prepared."""
    ((head, title, body),) = _singles(connection, system, 1)
    name = f"warm-{time.time_ns()}"
    row = connection.execute(_INSERT, (system.collection_id, name, title, f"{body} {name}")).fetchone()
    _wait_for_pair(connection, system, head, int(str(row[0])) if row else 0)
    _wait_until_drained(connection, time.perf_counter())


def _singles(connection: Connection, system: System, count: int) -> list[tuple[int, str, str]]:
    rows = connection.execute(_SINGLES, (system.generation_id, count))
    return [(int(str(doc_id)), str(title), str(body)) for doc_id, title, body in rows]


def _wait_for_pair(connection: Connection, system: System, left_id: int, right_id: int) -> float:
    started = time.perf_counter()
    while (waited := time.perf_counter() - started) < _GIVE_UP_SECONDS:
        row = connection.execute(_HAS_PAIR, (system.generation_id, left_id, right_id)).fetchone()
        if row and row[0]:
            return time.perf_counter() - started
        time.sleep(_POLL_SECONDS)
    raise RuntimeError(f"the pair of {left_id} and {right_id} was not found in {waited:.0f} s")


def _wait_until_drained(connection: Connection, started: float) -> tuple[float, float]:
    """Wait until all work is done; return the seconds from `started` until all is searched, and until all is linked."""
    searched = None
    while (now := time.perf_counter() - started) < _GIVE_UP_SECONDS:
        backlog = read_backlog(connection)
        if not backlog.searching:
            searched = searched or now
            if not backlog.linking:
                return searched, now
        time.sleep(_DRAIN_POLL_SECONDS)
    raise RuntimeError(f"work was left after {_GIVE_UP_SECONDS:.0f} s: {backlog}")


def _newest(connection: Connection) -> int:
    row = connection.execute("SELECT coalesce(max(doc_id), 0) FROM nearsim.document").fetchone()
    assert row is not None
    return int(str(row[0]))


def _wal_bytes(connection: Connection) -> int:
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    return int(str(row[0]))
