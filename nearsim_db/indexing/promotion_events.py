"""Events of a promoted generation, published in slices by any worker.

Publishing reads no sketches, so it works for generations that this version cannot reproduce.
"""

from functools import partial

from nearsim_db.indexing.settle import settle
from nearsim_db.records import Progress
from nearsim_db.store import events
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import is_transient, retry_conflicts
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import queue
from nearsim_db.store.work.queue import WHOLE

# While a slice is published, transactions that change pairs or clusters wait to commit.
_ROWS_PER_SLICE = 5_000


def publish_all(engine: Engine, leaves: Leaves, lease_id: int, progress: Progress) -> None:
    """Publish all events of a promoted generation, together with other workers."""
    settle(engine, leaves, lease_id, {"publish": partial(publish_batch, engine, leaves, lease_id)}, progress)


def publish_batch(engine: Engine, leaves: Leaves, lease_id: int) -> int:
    """Publish one slice of a promoted generation; return 0 if nothing is queued or another process publishes."""
    with engine.connect() as connection:
        batches = queue.take(connection, leaves, "publish", lease_id, 1)
        connection.commit()
        for _ in batches:
            try:
                retry_conflicts(connection, partial(publish_promotion_batch, connection, leaves, lease_id))
            except Exception as error:
                connection.rollback()
                if is_transient(error):
                    raise
                reason = f"{type(error).__name__}: {error}"
                queue.fail(connection, leaves, "publish", lease_id, [WHOLE], reason)
                connection.commit()
    return len(batches)


def publish_promotion_batch(connection: Connection, leaves: Leaves, lease_id: int) -> None:
    """Publish the next pairs and clusters in one transaction; what remains stays queued."""
    # Purging texts and dropping the generation take this lock exclusively.
    take_transaction_lock(connection, Lock.STORE, leaves.generation_id, shared=True)
    # The same lock order as a promotion: the generation, its work, then EVENT.
    events.lock_generation(connection, leaves)
    if queue.lock_work(connection, leaves, "publish", lease_id, WHOLE):
        if events.publish_promotion_batch(connection, leaves, _ROWS_PER_SLICE):
            queue.continue_later(connection, leaves, "publish", lease_id, WHOLE, 0)
        else:
            queue.finish(connection, leaves, "publish", lease_id, [WHOLE])
    connection.commit()
