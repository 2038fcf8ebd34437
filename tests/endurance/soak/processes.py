"""The processes of a soak: writers, workers and commands, forked from a process that has imported everything."""

import multiprocessing
import os
import random
import sys
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from nearsim_db.store.generations import partitions
from tests.endurance.soak.writer import run_writer

PRELOADED = [
    "tests.endurance.soak.processes",
    "nearsim_db.admin.reindex",
    "nearsim_db.cli.app",
    "nearsim_db.index",
    "nearsim_db.worker.worker",
]
_CONTEXT = multiprocessing.get_context("forkserver")


def start_fork_server() -> None:
    """Start the process that the others are forked from. It has no threads, and NumPy's kernels."""
    os.environ |= {"NEARSIM_BACKEND": "numpy", "NEARSIM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    _CONTEXT.set_forkserver_preload(PRELOADED)
    first = _CONTEXT.Process(target=int)
    first.start()
    first.join()


@dataclass(frozen=True)
class Child:
    """A process with its output in a file; `kind` is writer, worker or command."""

    kind: str
    process: ForkServerProcess
    log: Path
    arguments: tuple[str, ...] = ()

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process.is_alive()

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.process.kill()
        self.process.join()


class Starter:
    """Starts processes on one database."""

    def __init__(self, url: str, collections: list[int], folder: Path, rng: random.Random) -> None:
        self._url, self._collections, self._folder, self._rng = url, collections, folder, rng
        self._number = 0

    def writer(self) -> Child:
        """Start a writer."""
        log, seed = self._next("writer"), self._rng.random().hex()
        process = _CONTEXT.Process(
            target=_run, args=(log, run_writer, self._url, self._collections, seed), daemon=True
        )
        return self._started("writer", process, log, ())

    def worker(self, *arguments: str) -> Child:
        """Start a worker with batches of random sizes."""
        return self._command("worker", ("worker", "--quiet", *arguments))

    def command(self, *arguments: str) -> Child:
        """Start a nearsim command."""
        return self._command("command", arguments)

    def _command(self, kind: str, arguments: tuple[str, ...]) -> Child:
        log, seed = self._next(kind), self._rng.choice([None, self._rng.random()])
        process = _CONTEXT.Process(
            target=_run,
            args=(log, run_nearsim, self._url, arguments, seed, partitions.MAX_SHARED_DOCUMENTS),
            daemon=True,
        )
        return self._started(kind, process, log, arguments)

    def _started(self, kind: str, process: ForkServerProcess, log: Path, arguments: tuple[str, ...]) -> Child:
        process.start()
        return Child(kind, process, log, arguments)

    def _next(self, kind: str) -> Path:
        self._number += 1
        return self._folder / f"{self._number}-{kind}.log"


def run_nearsim(url: str, arguments: tuple[str, ...], seed: float | None, most_shared: int) -> None:
    """Run the command line in this process; with a seed in small batches, which are killed at more places.

    Collections of at most `most_shared` documents share their tables.
    """
    from nearsim_db.cli import main
    from nearsim_db.indexing.queue import runner, stages

    os.environ["NEARSIM_DATABASE_URL"] = url
    partitions.MAX_SHARED_DOCUMENTS = most_shared
    if seed is not None:
        rng = random.Random(seed)
        runner._BATCH_DOCUMENTS = {stage: rng.choice([1, 2, 5, 20]) for stage in runner._BATCH_DOCUMENTS}
        stages._MEMBERS_PER_BATCH = rng.choice([1, 3, 100])
        stages._CANDIDATES_PER_BATCH = rng.choice([1, 5, 100])
    sys.argv = ["nearsim", *arguments]
    main()


def _run(log: Path, target: object, *arguments: object) -> None:
    """Run with standard output and error in a file."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    assert callable(target)
    target(*arguments)
