"""The worker: follows documents as they change, through lost databases, until it is told to stop."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from nearsim_db.errors import DatabaseError
from nearsim_db.indexing.collections import open_database
from nearsim_db.records import Notable, Tell
from nearsim_db.store.work.leases import SILENCE_SECONDS
from nearsim_db.worker import session
from nearsim_db.worker.metrics import Monitor
from nearsim_db.worker.session import Shift

_LONGEST_PAUSE_SECONDS = 30.0
_SLICE_SECONDS = 0.1


class Worker:
    """Works on one collection, or on all lasting ones; any number of workers may, on any number of machines.

    `url` as in `Database.connect`. Work of workers that were silent for `silence_seconds` is taken from them. Events
    older than `keep_events` are removed: an age such as "7 days", or none, if given, else as the settings say.
    """

    def __init__(
        self,
        url: str | None = None,
        collection: str | None = None,
        *,
        tell: Tell = lambda notable: None,
        monitor: Monitor | None = None,
        silence_seconds: float = SILENCE_SECONDS,
        keep_events: str | None = None,
    ) -> None:
        self.monitor = monitor or Monitor()
        self._url = url
        self._collection = collection
        self._tell = tell
        self._silence_seconds = silence_seconds
        self._keep_events = keep_events
        self._stopping = False
        self._lost = False

    def stop(self) -> None:
        """Finish the batch at hand and end; to be called from anywhere, a signal's handler too."""
        self._stopping = True

    def run(self) -> None:
        """Work until stopped. A lost database is waited for, with growing pauses."""
        attempts = Retrying(
            retry=retry_if_exception_type(DatabaseError),
            wait=wait_random_exponential(multiplier=0.2, max=_LONGEST_PAUSE_SECONDS),
            sleep=self._pause,
            before_sleep=self._say_lost,
        )
        for attempt in attempts:
            with attempt:
                self._work(attempt.retry_state)

    def drain(self) -> int:
        """Work until nothing is left to do, what others are at included; returns how many documents are set aside.

        Raises the errors of the database, and those of generations that cannot be worked on here.
        """
        with self._shift() as at_work:
            while not self._stopping:
                if not at_work.round():
                    if not at_work.is_anything_left():
                        break
                    at_work.rest()
            for error in at_work.troubles.values():
                raise error
            return at_work.read_backlog().set_aside

    def _work(self, state: RetryCallState) -> None:
        if self._stopping:
            return
        with self._shift() as at_work:
            while not self._stopping:
                done = at_work.round()
                state.attempt_number = 1
                self._say_found()
                if not done:
                    at_work.rest()

    @contextmanager
    def _shift(self) -> Iterator[Shift]:
        with (
            open_database(self._url) as database,
            session.begin(
                database,
                self._collection,
                self._tell,
                self.monitor,
                lambda: self._stopping,
                self._silence_seconds,
                self._keep_events,
            ) as begun,
        ):
            yield begun

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < until:
            time.sleep(_SLICE_SECONDS)

    def _say_lost(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self.monitor.troubled(str(error))
        if not self._lost:
            self._lost = True
            self._tell(Notable("lost", f"{error}; trying again until it answers", "error"))

    def _say_found(self) -> None:
        if self._lost:
            self._lost = False
            self._tell(Notable("reconnected", "the database answers again"))
