"""Dropping a generation: who reads or writes others never waits for it; it waits for who still reads its tables."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection
from tenacity import RetryError, Retrying, retry_if_exception, stop_after_delay, wait_random

from nearsim_db.database import Database
from nearsim_db.errors import NotFoundError
from nearsim_db.store import catalog, generations, partitions
from nearsim_db.store.catalog import Generation, State
from nearsim_db.store.attachments import limit_lock_wait
from nearsim_db.store.engine import is_lock_timeout, translated
from nearsim_db.store.locks import Lock, give_lock_back, hold_lock, take_lock

_WAIT_MILLISECONDS = 40
_DROPPABLE: tuple[State, ...] = (*generations.COMING, "retired", "abandoned")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A generation that is to go; unless `finished`, the sessions `held_by` still read it, and a worker drops it later."""

    generation: Generation
    finished: bool
    held_by: list[str]


def drop(database: Database, generation: Generation, patience_seconds: float = 10.0) -> Dropped:
    """Drop a generation that does not answer, with its tables and its queue. Killed anywhere, it can be run again."""
    with database.transaction() as connection:
        generations.give_up(connection, generation, _DROPPABLE, drop=True)
    return Dropped(generation, *finish(database, generation, patience_seconds))


def finish(database: Database, generation: Generation, patience_seconds: float) -> tuple[bool, list[str]]:
    """Drop the tables of one that is being dropped: whether that is done, and by which sessions it is held if not."""
    autocommit = {"isolation_level": "AUTOCOMMIT"}
    with translated(), database.engine.connect().execution_options(**autocommit) as connection:
        if not take_lock(connection, Lock.DROP, 0, wait=False):
            return False, []
        try:
            _patiently(patience_seconds, partial(_detach, connection, generation))
            _patiently(patience_seconds, partial(_drop, database, generation))
        except RetryError:
            return False, partitions.read_holders(connection, generation.leaves)
        finally:
            partitions.wait_shortly(connection, 0)
            give_lock_back(connection, Lock.DROP, 0)
    return True, []


def _patiently(seconds: float, action: Callable[[], Result]) -> Result:
    """Try an action again while it meets locks that it waits for only shortly. Raises RetryError."""
    attempts = Retrying(
        retry=retry_if_exception(is_lock_timeout), stop=stop_after_delay(seconds), wait=wait_random(0.05, 0.2)
    )
    return attempts(action)


def _detach(connection: Connection, generation: Generation) -> None:
    partitions.wait_shortly(connection, _WAIT_MILLISECONDS)
    partitions.detach(connection, generation.leaves)


def _drop(database: Database, generation: Generation) -> None:
    """Whoever builds, stores or links is let finish first: they lock the tables in another order than DROP."""
    with database.engine.connect() as connection, suppress(NotFoundError):
        limit_lock_wait(connection, _WAIT_MILLISECONDS)
        for lock in (Lock.REINDEX, Lock.STORE, Lock.LINK):
            hold_lock(connection, lock, generation.generation_id)
        catalog.reread(connection, generation)
        catalog.drop_generation(connection, generation)
        connection.commit()
