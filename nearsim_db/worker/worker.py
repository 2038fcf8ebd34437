"""The worker: keeps indexes up to date with their documents until it is stopped, across lost connections."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from nearsim_db.errors import DatabaseError, NearsimError
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import cause_of_interruption
from nearsim_db.store.settings import from_environment
from nearsim_db.store.work.leases import SILENCE_SECONDS
from nearsim_db.worker.metrics import Monitor
from nearsim_db.worker.session import Session, WorkerOptions, open_session

_LONGEST_PAUSE_SECONDS = 30.0
_SLICE_SECONDS = 0.1

_log = logging.getLogger("nearsim.worker")


class Worker:
    """Works on one collection, or on all; any number of workers may run, on any number of machines.

    `url` as in `Database.connect`; the rest as in `WorkerOptions`. Events are logged to the logger `nearsim.worker`:
    each record has `event`, its name, and mostly `facts`, a mapping.
    """

    def __init__(
        self,
        url: str | None = None,
        collection: str | None = None,
        *,
        monitor: Monitor | None = None,
        silence_seconds: float = SILENCE_SECONDS,
        keep_events: str | None = None,
    ) -> None:
        self.monitor = monitor or Monitor()
        settings = from_environment()
        if url is None and settings.database_url is None:
            self.monitor.watch_disk("data", settings.home)
        self._url = url
        self._options = WorkerOptions(collection, silence_seconds, keep_events)
        self._stopping = False
        self._lost_by: str | None = None
        self._lost_leases: list[int] = []

    def stop(self) -> None:
        """Finish the current batch and end; safe to call from other threads and from signal handlers."""
        self._stopping = True

    def run(self) -> None:
        """Work until stopped. A lost connection is retried with growing pauses."""
        attempts = Retrying(
            retry=retry_if_exception_type(DatabaseError),
            wait=wait_random_exponential(multiplier=0.2, max=_LONGEST_PAUSE_SECONDS),
            sleep=self._pause,
            before_sleep=self._log_disconnected,
        )
        for attempt in attempts:
            with attempt:
                self._run_session(attempt.retry_state)

    def drain(self) -> int:
        """Work until the queue is empty, including work held by other processes; return how many documents are set
        aside.

        Raises DatabaseError, the error of any generation that cannot be worked on here, and NearsimError if an attached
        table is not followed.
        """
        with self._session() as session:
            while not self._stopping:
                if not session.run_once():
                    if not session.has_work():
                        break
                    session.wait()
            for error in session.failures.values():
                raise error
            if problems := session.check_attached_tables():
                raise NearsimError("; ".join(problems))
            return session.read_backlog().set_aside

    def _run_session(self, state: RetryCallState) -> None:
        if self._stopping:
            return
        with self._session() as session:
            while not self._stopping:
                done = session.run_once()
                state.attempt_number = 1
                self._log_reconnected()
                if not done:
                    session.wait()

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with (
            Database.connect(self._url) as database,
            open_session(
                database, self._options, self.monitor, lambda: self._stopping, self._lost_leases
            ) as session,
        ):
            yield session

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < until:
            time.sleep(_SLICE_SECONDS)

    def _log_disconnected(self, state: RetryCallState) -> None:
        failure = state.outcome.exception() if state.outcome else None
        error = str(failure)
        self.monitor.database_lost(error, cause_of_interruption(failure))
        # The first error may only say that the connection is lost, and the next one why.
        if error != self._lost_by:
            self._lost_by = error
            _log.error(f"{error}; retrying until the server answers", extra={"event": "lost"})

    def _log_reconnected(self) -> None:
        if self._lost_by is not None:
            self._lost_by = None
            _log.info("reconnected to the database", extra={"event": "reconnected"})
