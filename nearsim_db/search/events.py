"""Events: what happened to pairs, clusters and survivors, read once or followed; and how long they are kept."""

import logging
import time
from collections.abc import Callable, Generator
from functools import partial

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from nearsim_db.errors import DatabaseError, MissedEventsError, NearsimError, NotFoundError, RecipeError
from nearsim_db.similarity.recipe import retained_seconds
from nearsim_db.store import catalog, events
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, Engine, notify
from nearsim_db.store.driver.engine import again_after_conflicts, translated
from nearsim_db.store.events import Event, Kind, Wanted

__all__ = ["Event", "Follower", "Kind", "Wanted", "choose", "kept_seconds", "prune", "read"]

_AT_ONCE = 1_000
_PRUNED_AT_ONCE = 10_000
_POLL_SECONDS = 1.0
_SLICE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 30.0

_log = logging.getLogger("nearsim.events")


def choose(
    database: Database,
    collection: str | None = None,
    profile: str | None = None,
    kinds: list[Kind] | None = None,
) -> Wanted:
    """The events of a collection, and a profile of it, by name. Raises NotFoundError, saying what there is."""
    if collection is None:
        return Wanted(kinds=kinds)
    with database.transaction() as connection:
        found = catalog.get_collection(connection, collection)
        generations = catalog.list_generations(connection, found.collection_id)
    if profile is None:
        return Wanted(found.collection_id, None, kinds)
    profiles = {one.profile: one.profile_id for one in generations}
    if profile not in profiles:
        known = ", ".join(profiles) or "none yet"
        raise NotFoundError(f"collection {collection!r} has no profile {profile!r}; there are: {known}")
    return Wanted(found.collection_id, profiles[profile], kinds)


def read(database: Database, wanted: Wanted, after: int | None = None) -> Generator[Event, None, None]:
    """The events there are, those after one if it is given; for a consumer that has read up to there.

    Raises MissedEventsError where some of those after it were removed.
    """
    follower = Follower(database, wanted, after)
    with translated(), database.engine.connect() as connection:
        before = -1
        while follower.after != before:
            before = follower.after
            batch = follower.read_on(connection)
            connection.commit()
            yield from batch


class Follower:
    """Reads events as they come, each once, through lost databases.

    Events after `after` come first, or all there are if it is None; `after` moves on with those that were given.
    `new` leaves out those there are.
    """

    def __init__(
        self,
        database: Database,
        wanted: Wanted,
        after: int | None = None,
        *,
        new: bool = False,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.after = 0 if after is None else after
        self._database = database
        self._wanted = wanted
        self._may_miss = after is None
        self._new = new
        self._stopping = stopping
        self._lost = False

    def follow(self) -> Generator[Event, None, None]:
        """Yield events until stopped; a lost database is waited for, with growing pauses.

        Raises MissedEventsError where some were removed before they were read.
        """
        attempts = Retrying(
            retry=retry_if_exception_type(DatabaseError),
            wait=wait_random_exponential(multiplier=0.2, max=_LONGEST_PAUSE_SECONDS),
            sleep=self._pause,
            before_sleep=self._log_lost,
        )
        for attempt in attempts:
            with attempt:
                for batch in self._batches():
                    attempt.retry_state.attempt_number = 1
                    yield from batch

    def read_on(self, connection: Connection) -> list[Event]:
        """The next events there are; `after` stays as it is if all were read."""
        newest = events.read_newest(connection)
        if self._new:
            self.after, self._new = newest, False
        found = events.read_events(connection, self._wanted, self.after, newest, _AT_ONCE)
        removed = [event.event_id for event, pruned in found if pruned]
        if removed and not self._may_miss:
            raise MissedEventsError(self.after, removed[-1])
        self.after = found[-1][0].event_id if len(found) == _AT_ONCE else max(self.after, newest)
        # Marks come before all that is there, so the first event shows that the beginning was found.
        self._may_miss &= len(removed) == _AT_ONCE
        return [event for event, pruned in found if not pruned]

    def _batches(self) -> Generator[list[Event], None, None]:
        if self._stopping():
            return
        autocommit = {"isolation_level": "AUTOCOMMIT"}
        with translated(), self._database.engine.connect().execution_options(**autocommit) as connection:
            notify.listen(connection)
            while not self._stopping():
                before = self.after
                batch = self.read_on(connection)
                self._log_reconnected()
                yield batch
                if self.after == before:
                    self._rest(connection)

    def _rest(self, connection: Connection) -> None:
        until = time.monotonic() + _POLL_SECONDS
        while not self._stopping() and time.monotonic() < until:
            if notify.await_notice(connection, _SLICE_SECONDS):
                return

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping() and time.monotonic() < until:
            time.sleep(_SLICE_SECONDS)

    def _log_lost(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if not self._lost:
            self._lost = True
            _log.error(f"{error}; retrying until the server answers", extra={"event": "lost"})

    def _log_reconnected(self) -> None:
        if self._lost:
            self._lost = False
            _log.info("reconnected to the database", extra={"event": "reconnected"})


def kept_seconds(age: str) -> int | None:
    """The seconds of an age such as "7 days", None for "none". Raises NearsimError for what is no age."""
    try:
        return retained_seconds(age)
    except RecipeError as error:
        raise NearsimError(str(error).replace("retain.age", "the age of events")) from error


def prune(engine: Engine, age_seconds: int, most: int | None = None) -> int:
    """Remove events of more than an age, a batch a transaction, `most` at most or a few more; returns how many went."""
    removed = 0
    with translated(), engine.connect() as connection:
        while most is None or removed < most:
            gone = again_after_conflicts(
                connection, partial(events.prune, connection, age_seconds, _PRUNED_AT_ONCE)
            )
            connection.commit()
            removed += gone
            if gone < _PRUNED_AT_ONCE:
                break
    return removed
