"""A living system to measure: a collection in a server of its own, and worker processes that follow it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil
import psycopg

from benchmarks.own_server import own_server
from nearsim_db.index import Index
from nearsim_db.readers import from_documents
from nearsim_db.records import Document
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.embedded.cluster import Cluster

Connection = psycopg.Connection[tuple[object, ...]]

COLLECTION, PROFILE = "living", "benchmark"
_BACKLOG = """
SELECT (SELECT count(*) FROM nearsim.change)
    + (SELECT count(*) FROM nearsim.work WHERE set_aside_at IS NULL AND stage <> 'link'),
    (SELECT count(*) FROM nearsim.work WHERE set_aside_at IS NULL AND stage = 'link'),
    (SELECT count(*) FROM nearsim.work WHERE set_aside_at IS NOT NULL)
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits: changes and documents to sign and search, documents to link into clusters, work set aside."""

    searching: int
    linking: int
    set_aside: int


@dataclass(frozen=True, slots=True)
class System:
    """A server, and in it a collection with one live generation of one profile."""

    cluster: Cluster
    generation_id: int
    collection_id: int

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.cluster.dsn()

    def connect(self) -> Connection:
        """A connection in autocommit, as any application would open it."""
        return psycopg.connect(self.url, autocommit=True)

    def postmaster(self) -> psutil.Process:
        """The server's first process. Raises RuntimeError when the server does not run."""
        found = self.cluster.status()
        if found is None:
            raise RuntimeError("the server does not run")
        return found.process

    def kill_server(self) -> None:
        """kill -9 of the postmaster, and a new one, which recovers."""
        postmaster = self.postmaster()
        postmaster.kill()
        with suppress(psutil.TimeoutExpired):
            postmaster.wait(10)
        self.cluster.start()

    def run(self, *arguments: str) -> int:
        """Run a nearsim command to its end, what it says going to stderr; returns its exit code."""
        done = subprocess.run(_command(*arguments), env=self._environment(), stdout=sys.stderr, check=False)
        return done.returncode

    def start_worker(self) -> "subprocess.Popen[bytes]":
        """A worker process of the collection."""
        command = _command("worker", "--collection", COLLECTION)
        return subprocess.Popen(command, env=self._environment(), stdout=sys.stderr)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "NEARSIM_DATABASE_URL": self.url}


class Workers:
    """A fixed number of worker processes; one that ends by itself is started again and counted."""

    def __init__(self, system: System, count: int) -> None:
        self._system = system
        self.processes = [system.start_worker() for _ in range(count)]
        self.ended = 0

    def mind(self) -> None:
        """Start again those that have ended."""
        for place, process in enumerate(self.processes):
            if process.poll() is not None:
                self.ended += 1
                self.processes[place] = self._system.start_worker()

    def kill(self, place: int) -> None:
        """kill -9 of one, and another in its place at once."""
        self.processes[place].kill()
        self.processes[place].wait()
        self.processes[place] = self._system.start_worker()

    def stop(self, timeout_seconds: float = 60) -> list[int]:
        """SIGTERM to all; their exit codes, that of one which had to be killed being -9."""
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
    """Workers that end with the block."""
    workers = Workers(system, count)
    try:
        yield workers
    finally:
        workers.stop()


@contextmanager
def living_system(major: int, recipe: Recipe, documents: Iterable[Document] = ()) -> Iterator[System]:
    """A server of its own with a collection of these documents, indexed at once by a generation that is now live."""
    with own_server(major) as cluster:
        with Index.connect(cluster.dsn(), collection=COLLECTION) as index:
            index.create_profile(PROFILE, recipe)
            index.ingest(from_documents(documents))
        yield open_system(cluster)


def open_system(cluster: Cluster) -> System:
    """The system in a server, whose collection is there already."""
    with psycopg.connect(cluster.dsn()) as connection:
        row = connection.execute(
            "SELECT generation_id, collection_id FROM nearsim.generation JOIN nearsim.profile USING (profile_id) "
            "JOIN nearsim.collection USING (collection_id) WHERE collection.name = %s AND state = 'live'",
            (COLLECTION,),
        ).fetchone()
    assert row is not None
    return System(cluster, int(row[0]), int(row[1]))


def read_backlog(connection: Connection) -> Backlog:
    """What waits now."""
    row = connection.execute(_BACKLOG).fetchone()
    assert row is not None
    return Backlog(*(int(str(value)) for value in row))


def processor_seconds(process: psutil.Process) -> float:
    """User and system time of a process, its living children and those that have ended."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system if one == process else 0.0
    return total


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nearsim_db", *arguments]
