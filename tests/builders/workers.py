"""Worker processes, concurrent applications, and waiting for conditions in the database."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Thread
from typing import Any

import psycopg
import pytest

PATIENCE_SECONDS = 60.0
IDLE = "SELECT NOT EXISTS (SELECT FROM nearsim.change) AND NOT EXISTS (SELECT FROM nearsim.work)"
BLOCKED = "SELECT count(*) > 0 FROM pg_catalog.pg_locks WHERE NOT granted"

Application = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True)
class LoggedEvent:
    """An event as a worker logged it."""

    event: str
    level: str
    message: str
    facts: Mapping[str, object]


class WorkerLog:
    """The events that have been logged so far."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def events(self, name: str | None = None, level: str | None = None) -> list[LoggedEvent]:
        """The events in order."""
        records = [record for record in self._caplog.records if record.name.startswith("nearsim.")]
        logged = [
            LoggedEvent(
                record.__dict__["event"],
                record.levelname.lower(),
                record.getMessage(),
                record.__dict__.get("facts", {}),
            )
            for record in records
        ]
        return [event for event in logged if name in (None, event.event) and level in (None, event.level)]


class WorkerProcess:
    """`nearsim worker` in a process of its own, and its lines on standard error. `module` runs the command line."""

    def __init__(
        self,
        url: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        module: str = "nearsim_db",
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "worker", *arguments],
            env={
                **os.environ,
                "NEARSIM_DATABASE_URL": url,
                "NEARSIM_BACKEND": "numpy",
                **(environment or {}),
            },
            stderr=subprocess.PIPE,
            text=True,
        )

        self.lines: list[str] = []
        self._unread: Queue[str] = Queue()
        # This thread always reads, because a full pipe would stop the worker.
        self._listener = Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._unread.put(line.rstrip())

    def wait_for_line(self, words: str) -> str:
        """Wait for a line that contains these words, and return it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        for line in self.lines:
            if words in line:
                return line
        while time.monotonic() < deadline:
            with suppress(Empty):
                self.lines.append(self._unread.get(timeout=0.5))
                if words in self.lines[-1]:
                    return self.lines[-1]
        raise AssertionError(f"the worker printed no line with {words!r}: {self.lines}")

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait until the process exits, and return its exit code."""
        code = self.process.wait(PATIENCE_SECONDS)
        self._listener.join()
        while not self._unread.empty():
            self.lines.append(self._unread.get())
        return code


@contextmanager
def running(url: str, *arguments: str, module: str = "nearsim_db") -> Iterator[WorkerProcess]:
    """A worker process that is killed at the end of the block."""
    worker = WorkerProcess(url, *arguments, module=module)
    try:
        yield worker
    finally:
        # This does nothing if the process has ended.
        worker.process.kill()
        worker.wait()
        assert worker.process.stderr is not None
        worker.process.stderr.close()


@contextmanager
def application(url: str) -> Iterator[Application]:
    """The connection of another application, in autocommit."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def ask(connection: psycopg.Connection[Any], question: str, *values: object) -> Any:
    """The first value that a query returns."""
    # psycopg's types accept a str only if it is a literal.
    row = connection.execute(question.encode(), values or None).fetchone()
    assert row is not None
    return row[0]


def wait_until(connection: Application, condition: str) -> None:
    """Wait until a condition holds in the database."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ask(connection, condition):
        assert time.monotonic() < deadline, condition
        connection.execute("SELECT pg_sleep(0.02)")


def await_first_round(application: Application) -> None:
    """Wait until a worker on an empty index takes work. By then, everything that it does at its start is done."""
    application.execute(
        "WITH written AS (SELECT collection_id FROM nearsim.collection WHERE name = 'default')"
        " INSERT INTO nearsim.document (collection_id, external_id) SELECT collection_id, 'passing' FROM written"
    )
    application.execute("DELETE FROM nearsim.document WHERE external_id = 'passing'")
    wait_until(application, IDLE)
