"""A system to measure: a collection on a dedicated server, and worker processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import psycopg

from benchmarks.own_server import own_server
from nearsim_db.index import Index
from nearsim_db.readers import from_documents
from nearsim_db.records import Document
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.embedded.cluster import PostgresCluster

Connection = psycopg.Connection[tuple[object, ...]]

COLLECTION, PROFILE = "living", "benchmark"
_BACKLOG = """
SELECT (SELECT count(*) FROM nearsim.change)
    + (SELECT count(*) FROM nearsim_index.queued_work WHERE set_aside_at IS NULL AND stage <> 'link'),
    (SELECT count(*) FROM nearsim.work WHERE set_aside_at IS NULL AND stage = 'link'),
    (SELECT count(*) FROM nearsim.work WHERE set_aside_at IS NOT NULL)
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Numbers of documents in the work queue."""

    searching: int  # captured changes, and documents to sign or search
    linking: int  # documents to link into clusters
    set_aside: int


@dataclass(frozen=True, slots=True)
class System:
    """A server with a collection that has a single profile, with a live generation."""

    cluster: PostgresCluster
    generation_id: int
    collection_id: int

    @property
    def url(self) -> str:
        """The URL of the database."""
        return self.cluster.dsn()

    def connect(self) -> Connection:
        """Open a connection in autocommit mode, as an application would."""
        return psycopg.connect(self.url, autocommit=True)

    def postmaster(self) -> psutil.Process:
        """Return the main process of the server. Raises RuntimeError if the server does not run."""
        status = self.cluster.status()
        if status is None:
            raise RuntimeError("the server does not run")
        return status.process

    def start_worker(self) -> "subprocess.Popen[bytes]":
        """Start a worker process for the collection."""
        command = _command("worker", "--collection", COLLECTION)
        return subprocess.Popen(command, env=self._environment(), stdout=sys.stderr)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "NEARSIM_DATABASE_URL": self.url}


class Workers:
    """A fixed number of worker processes."""

    def __init__(self, system: System, count: int) -> None:
        self.processes = [system.start_worker() for _ in range(count)]

    def stop(self, timeout_seconds: float = 60) -> list[int]:
        """Send SIGTERM to all workers; return their exit codes, -9 for a worker that had to be killed."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout_seconds
        for process in self.processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        return [process.wait() for process in self.processes]


@contextmanager
def running_workers(system: System, count: int) -> Iterator[Workers]:
    """Run workers during the block."""
    workers = Workers(system, count)
    try:
        yield workers
    finally:
        workers.stop()


@contextmanager
def living_system(major: int, recipe: Recipe, documents: Iterable[Document] = ()) -> Iterator[System]:
    """Start a server with a collection of the documents, and build its index."""
    with own_server(major) as cluster:
        with Index.connect(cluster.dsn(), collection=COLLECTION) as index:
            index.create_profile(PROFILE, recipe)
            index.ingest(from_documents(documents))
        yield open_system(cluster)


def open_system(cluster: PostgresCluster) -> System:
    """Return the system of a server that already has the collection."""
    with psycopg.connect(cluster.dsn()) as connection:
        row = connection.execute(
            "SELECT generation_id, collection_id FROM nearsim.generation JOIN nearsim.profile USING (profile_id) "
            "JOIN nearsim.collection USING (collection_id) WHERE collection.name = %s AND state = 'live'",
            (COLLECTION,),
        ).fetchone()
    assert row is not None
    return System(cluster, int(row[0]), int(row[1]))


def read_backlog(connection: Connection) -> Backlog:
    """Return the current backlog."""
    row = connection.execute(_BACKLOG).fetchone()
    assert row is not None
    return Backlog(*(int(str(value)) for value in row))


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nearsim_db", *arguments]
