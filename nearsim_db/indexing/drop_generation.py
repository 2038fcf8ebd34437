"""Dropping a generation: who reads or writes others never waits for it; it waits for who still reads its tables."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tenacity import RetryError, Retrying, retry_if_exception, stop_after_delay, wait_random

from nearsim_db.errors import NotFoundError
from nearsim_db.store import catalog, generations, partitions
from nearsim_db.store.attached.attachments import limit_lock_wait
from nearsim_db.store.catalog import Generation, State
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import again_after_conflicts, is_lock_timeout, translated
from nearsim_db.store.driver.locks import Lock, give_lock_back, hold_lock, take_lock

_TABLE_MILLISECONDS = 40  # readers and writers queue behind who waits for a table
_BUILDER_MILLISECONDS = 1_000  # only builders and workers queue behind these locks
_DROPPABLE: tuple[State, ...] = (*generations.COMING, "retired", "abandoned")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A generation that is to go; unless `finished`, it waits for sessions, `held_by`, and a worker drops it."""

    generation: Generation
    finished: bool
    held_by: list[str]


class _Busy(Exception):
    """Somebody else takes partitions out of their parents right now."""


def drop(engine: Engine, generation: Generation, patience_seconds: float = 10.0) -> Dropped:
    """Drop a generation that does not answer, with its tables and its queue. Killed anywhere, it can be run again."""
    with translated(), suppress(NotFoundError):
        with engine.begin() as connection:
            catalog.reread(connection, generation)
            generations.give_up(connection, generation, _DROPPABLE, drop=True)
        return finish(engine, generation, patience_seconds)
    return Dropped(generation, True, [])


def finish(engine: Engine, generation: Generation, patience_seconds: float = math.inf) -> Dropped:
    """Drop the tables of a generation for which nothing is done any more, unless others hold them on and on."""
    autocommit = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    with translated(), autocommit as connection:
        try:
            _patiently(patience_seconds, partial(_detach, connection, generation))
            _patiently(patience_seconds, partial(_drop, engine, generation))
        except RetryError:
            return Dropped(generation, False, partitions.read_holders(connection, generation.leaves))
    return Dropped(generation, True, [])


def _patiently(seconds: float, action: Callable[[], None]) -> None:
    """Try an action again while it meets locks, which it waits for only shortly. Raises RetryError."""
    attempts = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, _Busy) or is_lock_timeout(error)),
        stop=stop_after_delay(seconds),
        wait=wait_random(0.05, 0.2),
    )
    attempts(action)


def _detach(connection: Connection, generation: Generation) -> None:
    if not take_lock(connection, Lock.DROP, 0, wait=False):
        raise _Busy
    try:
        partitions.wait_shortly(connection, _TABLE_MILLISECONDS)
        partitions.detach(connection, generation.leaves)
    finally:
        partitions.wait_shortly(connection, 0)
        give_lock_back(connection, Lock.DROP, 0)


def _drop(engine: Engine, generation: Generation) -> None:
    with engine.connect() as connection, suppress(NotFoundError):
        again_after_conflicts(connection, partial(_drop_alone, connection, generation))
        connection.commit()


def _drop_alone(connection: Connection, generation: Generation) -> None:
    """Whoever builds, stores or links is let finish first: they lock the tables in another order than DROP."""
    limit_lock_wait(connection, _BUILDER_MILLISECONDS)
    for lock in (Lock.REINDEX, Lock.STORE, Lock.LINK):
        hold_lock(connection, lock, generation.generation_id)
    limit_lock_wait(connection, _TABLE_MILLISECONDS)
    catalog.reread(connection, generation)
    catalog.drop_generation(connection, generation)
