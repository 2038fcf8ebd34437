"""Events of pairs, clusters and survivors: read them, follow them across lost connections, and remove old ones."""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from nearsim_db.errors import DatabaseError, MissedEventsError, RecipeError
from nearsim_db.search.live_generation import refuse_profile
from nearsim_db.similarity.recipe import retained_seconds
from nearsim_db.store.access import collection_rows
from nearsim_db.store.clusters import events
from nearsim_db.store.clusters.events import Event, EventFilter, Kind
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import retry_conflicts, translate_errors
from nearsim_db.store.generations import generation_rows

if TYPE_CHECKING:
    from tenacity import AttemptManager, RetryCallState

_EVENTS_PER_BATCH = 1_000
_PRUNED_PER_BATCH = 10_000
_POLL_SECONDS = 1.0
# A request to stop is noticed within this time.
_WAIT_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 30.0

_log = logging.getLogger("nearsim.events")


def choose(
    database: Database,
    collection: str | None = None,
    profile: str | None = None,
    kinds: list[Kind] | None = None,
) -> EventFilter:
    """Return a filter for the events of a collection, and of one profile.

    Raises NotFoundError, which lists the existing names, if there is no such collection or profile.
    """
    if collection is None:
        return EventFilter(kinds=kinds)

    with database.transaction() as connection:
        collection_id = collection_rows.get_collection(connection, collection).collection_id
        generations = generation_rows.list_generations(connection, collection_id)
    if profile is None:
        return EventFilter(collection_id, None, kinds)
    profile_ids = {generation.profile: generation.profile_id for generation in generations}
    if profile not in profile_ids:
        refuse_profile(collection, profile, generations)
    return EventFilter(collection_id, profile_ids[profile], kinds)


def read(
    database: Database, event_filter: EventFilter, after: int | None = None
) -> Generator[Event, None, None]:
    """Stream the stored events. A consumer that has read all events up to number `after` gets only later events.

    Raises MissedEventsError if events after number `after` were removed.
    """
    follower = Follower(database, event_filter, after)
    with translate_errors(), database.engine.connect() as connection:
        before = -1
        while follower.after != before:
            before = follower.after
            batch = follower.read_batch(connection)
            connection.commit()
            yield from batch


class Follower:
    """Follows events as they are committed, yields each once, and reconnects when the connection is lost.

    It starts with the first event after number `after`, with the oldest event if `after` is None, or with the next
    event if `new` is true. The attribute `after` is the number of the last event that was read.
    """

    def __init__(
        self,
        database: Database,
        event_filter: EventFilter,
        after: int | None = None,
        *,
        new: bool = False,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.after: int = 0 if after is None else after
        self._database = database
        self._event_filter = event_filter
        self._may_miss = after is None
        self._new = new
        self._stopping = stopping
        self._reconnecting = Reconnecting(_log, stopping)

    def follow(self) -> Generator[Event, None, None]:
        """Yield events until stopped. If the connection is lost, reconnect after increasing pauses.

        Raises MissedEventsError if events were removed before they were read.
        """
        for attempt in self._reconnecting.attempts():
            with attempt:
                for batch in self._batches():
                    self._reconnecting.succeeded(attempt)
                    yield from batch

    def read_batch(self, connection: Connection) -> list[Event]:
        """Return the next batch of events; `after` does not change if there are none."""
        newest = events.read_newest(connection)
        if self._new:
            self.after, self._new = newest, False
        rows = events.read_events(connection, self._event_filter, self.after, newest, _EVENTS_PER_BATCH)

        removed = [event.event_id for event, is_pruned in rows if is_pruned]
        if removed and not self._may_miss:
            raise MissedEventsError(self.after, removed[-1])
        self.after = rows[-1][0].event_id if len(rows) == _EVENTS_PER_BATCH else max(self.after, newest)
        # Marks of pruned events come before all other events. So once a batch has other events, or is not full, the
        # oldest event has been reached, and later marks would mean missed events.
        self._may_miss &= len(removed) == _EVENTS_PER_BATCH
        return [event for event, is_pruned in rows if not is_pruned]

    def _batches(self) -> Generator[list[Event], None, None]:
        if self._stopping():
            return

        with translate_errors(), self._database.engine.connect(autocommit=True) as connection:
            connection.listen()
            while not self._stopping():
                before = self.after
                batch = self.read_batch(connection)
                yield batch
                if self.after == before:
                    self._await_notice(connection)

    def _await_notice(self, connection: Connection) -> None:
        deadline = time.monotonic() + _POLL_SECONDS
        while not self._stopping() and time.monotonic() < deadline:
            if connection.await_notice(_WAIT_SECONDS):
                return


class Following(Generator[Event, None, None]):
    """The events that a `Follower` yields, until any thread calls `stop`."""

    def __init__(
        self, database: Database, event_filter: EventFilter, after: int | None = None, *, new: bool = False
    ) -> None:
        stopped = threading.Event()
        self.stop: Callable[[], None] = stopped.set
        self._events = Follower(database, event_filter, after, new=new, stopping=stopped.is_set).follow()

    def send(self, value: None, /) -> Event:
        """Return the next event."""
        return self._events.send(value)

    def throw(self, *error: Any) -> Event:
        """Raise an error at the place where the events are read."""
        return self._events.throw(*error)


class Reconnecting:
    """Repeats work that needs the database until it is stopped, with increasing pauses while the connection is lost.

    `lost` is called with the error of each failed attempt. An error is logged if it differs from the previous error.
    The first success after an error is logged too.
    """

    def __init__(
        self,
        log: logging.Logger,
        stopping: Callable[[], bool],
        lost: Callable[[BaseException | None], None] = lambda error: None,
    ) -> None:
        self._log = log
        self._stopping = stopping
        self._lost = lost
        self._lost_by: str | None = None

    def attempts(self) -> "Iterator[AttemptManager]":
        """Yield attempts, each a context manager for the work, until an attempt does not raise DatabaseError."""
        from tenacity import Retrying, retry_if_exception_type, wait_random_exponential

        return iter(
            Retrying(
                retry=retry_if_exception_type(DatabaseError),
                wait=wait_random_exponential(multiplier=0.2, max=_MAX_PAUSE_SECONDS),
                sleep=self._pause,
                before_sleep=self._log_lost,
            )
        )

    def succeeded(self, attempt: "AttemptManager") -> None:
        """Record that the database has answered in an attempt, so that the next pause is short again."""
        attempt.retry_state.attempt_number = 1
        if self._lost_by is not None:
            self._lost_by = None
            self._log.info("reconnected to the database", extra={"event": "reconnected"})

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._stopping() and time.monotonic() < deadline:
            time.sleep(_WAIT_SECONDS)

    def _log_lost(self, state: "RetryCallState") -> None:
        error = state.outcome.exception() if state.outcome else None
        self._lost(error)
        # The first error may only say that the connection is lost; the next error may give the reason.
        if str(error) != self._lost_by:
            self._lost_by = str(error)
            self._log.error(f"{error}; retrying until the server answers", extra={"event": "lost"})


def kept_seconds(age: str, name: str) -> int | None:
    """Return an age such as "7 days" in seconds, or None for "none".

    Raises RecipeError, which contains the option's `name`, for anything else.
    """
    try:
        return retained_seconds(age)
    except RecipeError as error:
        raise RecipeError(str(error).replace("retain.age", name)) from error


def prune(engine: Engine, age_seconds: int, limit: int | None = None) -> int:
    """Remove events older than an age, with a transaction for each batch; return how many were removed.

    Stops once at least `limit` events are removed.
    """
    removed = 0
    with translate_errors(), engine.connect() as connection:
        while limit is None or removed < limit:
            pruned = retry_conflicts(connection, events.prune, connection, age_seconds, _PRUNED_PER_BATCH)
            connection.commit()
            removed += pruned
            if pruned < _PRUNED_PER_BATCH:
                break
    return removed
