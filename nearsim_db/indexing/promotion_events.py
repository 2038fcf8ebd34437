"""Telling: what a generation holds that went live becomes events, slice by slice, by whoever comes by.

That needs none of its sketches, so that also what this code could not have made is told.
"""

from functools import partial

from nearsim_db.store import events
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import again_after_conflicts, is_passing
from nearsim_db.store.driver.locks import Lock, hold_lock
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import queue
from nearsim_db.store.work.queue import WHOLE

# While a slice is told, whoever changes pairs or clusters waits to commit.
_TOLD_AT_ONCE = 5_000


def tell_once(engine: Engine, leaves: Leaves, lease_id: int) -> int:
    """One slice of a generation that is to be told of; returns 0 where there is none, or others are at it."""
    with engine.connect() as connection:
        batches = queue.take(connection, leaves, "tell", lease_id, 1)
        connection.commit()
        for _ in batches:
            try:
                again_after_conflicts(connection, partial(tell_slice, connection, leaves, lease_id))
            except Exception as error:
                connection.rollback()
                if is_passing(error):
                    raise
                told = f"{type(error).__name__}: {error}"
                queue.fail(connection, leaves, "tell", lease_id, [WHOLE], told)
                connection.commit()
    return len(batches)


def tell_slice(connection: Connection, leaves: Leaves, lease_id: int) -> None:
    """One transaction: the next pairs and clusters, and what is left stays queued."""
    # Who purges texts or drops the generation has this lock alone.
    hold_lock(connection, Lock.STORE, leaves.generation_id, shared=True)
    # Rows are locked as by who promotes: the generation, its work, and only then EVENT.
    events.hold_telling(connection, leaves)
    if queue.hold(connection, leaves, "tell", lease_id, WHOLE):
        if events.tell_slice(connection, leaves, _TOLD_AT_ONCE):
            queue.continue_later(connection, leaves, "tell", lease_id, WHOLE, 0)
        else:
            queue.finish(connection, leaves, "tell", lease_id, [WHOLE])
    connection.commit()
