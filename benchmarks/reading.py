"""From a file to the table `document`, without an index: what a document costs, by parts of the file.

    python -m benchmarks.reading [--documents 100000 400000] [--parts 4]

A corpus of each size is generated (see corpus.py), read three times without a database for the client's share, and
ingested into a server of its own. Figures are microseconds of processor time for a document, which are valid on a busy
machine, and bytes of the write-ahead log; each part of the file has a line, so that growth shows.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
import psycopg

from benchmarks.corpus import Corpus, write_corpus
from benchmarks.measure import describe_machine, machine
from benchmarks.own_server import own_server
from benchmarks.processes import processor_seconds
from nearsim_db.indexing.ingest import Ingest
from nearsim_db.readers import RejectWriter, Source
from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import ReadDocument, Reject
from nearsim_db.store.database import Database

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """Totals when some documents had been read: processor seconds, and bytes of the write-ahead log."""

    documents: int
    client: float
    server: float
    log_bytes: int

    def since(self, before: "Reading") -> str:
        """Return the costs of a document since an earlier reading, as a row of a table."""
        documents = self.documents - before.documents
        client = (self.client - before.client) * 1e6 / documents
        server = (self.server - before.server) * 1e6 / documents
        log = (self.log_bytes - before.log_bytes) / documents
        return f"| {self.documents:,} | {client:.1f} | {server:.1f} | {log:,.0f} |"


def microseconds(read: Callable[[], Iterable[object]]) -> float:
    """Return the processor time of reading one item, the least of some rounds."""
    costs = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        items = sum(1 for _ in read())
        costs.append((time.process_time() - began) * 1e6 / max(1, items))
    return min(costs)


def ingest_parts(url: str, server: psutil.Process, file: Path, boundaries: Iterable[int]) -> list[Reading]:
    """Ingest a file into a new collection; return a reading at the begin, at each boundary and at the end.

    Up to two batches that were read before a boundary are written after it.
    """
    with Database.connect(url) as database, psycopg.connect(url, autocommit=True) as watching:
        collection = database.create_collection(f"reading-{os.getpid()}-{file.name}")

        def now(documents: int) -> Reading:
            row = watching.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()
            assert row is not None
            return Reading(documents, time.process_time(), processor_seconds(server), int(row[0]))

        readings = [now(0)]
        due = iter(sorted(boundaries))
        boundary = next(due, None)

        def note(step: str, done: int, total: int | None) -> None:
            nonlocal boundary
            if boundary is not None and done >= boundary:
                readings.append(now(done))
                boundary = next(due, None)

        with RejectWriter(None) as rejects:
            run = Ingest(database, collection.collection_id, rejects)
            records: Iterable[ReadDocument | Reject] = Source([file])
            run.write(records, note)
        return [*readings, now(run.summary.read)]


def report(documents: int, parts: int, folder: Path) -> None:
    """Generate one corpus and print its tables."""
    file = folder / f"{documents}.jsonl.gz"
    write_corpus(Corpus(documents, seed=1).documents(), file, None)
    lines = microseconds(lambda: InputFile(file).lines())
    records = microseconds(lambda: Source([file]))
    print(f"{documents:,} documents: decompressed lines {lines:.1f} us, records {records:.1f} us")
    print("| documents | client us | server us | log bytes |\n|---|---|---|---|")
    with own_server(18) as cluster:
        postmaster = cluster.status()
        assert postmaster is not None
        boundaries = [documents * part // parts for part in range(1, parts)]
        readings = ingest_parts(cluster.dsn(), postmaster.process, file, boundaries)
    for before, after in pairwise(readings):
        print(after.since(before))


def main() -> None:
    """Measure each size in turn."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument(
        "--documents", type=int, nargs="+", default=(100_000, 400_000), help="default: %(default)s"
    )
    parser.add_argument("--parts", type=int, default=4, help="of each file (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for documents in options.documents:
            report(documents, options.parts, Path(folder))
    print(describe_machine(machine()))


if __name__ == "__main__":
    main()
