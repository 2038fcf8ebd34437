"""Wait for queued work: do it here, together with other workers, until none of it is left."""

import time
from collections.abc import Callable, Mapping
from functools import partial

from nearsim_db.errors import DatabaseError
from nearsim_db.records import Progress
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import retry_conflicts
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import leases, queue
from nearsim_db.store.work.queue import Stage

_POLL_SECONDS = 0.05

_PROGRESS_STEPS = {
    "compare": "compare",
    "sign": "sign",
    "search": "search",
    "anchor": "search",
    "link": "clusters",
    "tell": "events",
}


def settle(
    engine: Engine,
    leaves: Leaves,
    lease_id: int,
    work: Mapping[Stage, Callable[[], int]],
    progress: Progress,
) -> None:
    """Work on one stage after the other until what was queued before is done.

    `work` does a batch of a stage and returns how many documents it took, 0 where another process has the rest.
    """
    with engine.connect() as connection:
        for stage, do_batch in work.items():
            _settle_stage(connection, leaves, stage, lease_id, do_batch, progress)
        connection.commit()


def _settle_stage(
    connection: Connection,
    leaves: Leaves,
    stage: Stage,
    lease_id: int,
    do_batch: Callable[[], int],
    progress: Progress,
) -> None:
    before, done = queue.server_time(connection), 0
    # Work queued from now on is not waited for: other clients may write faster than this ends.
    while queue.has_unfinished_work(connection, leaves, stage, before):
        connection.commit()
        taken = do_batch()
        if taken:
            done += taken
            progress(_PROGRESS_STEPS[stage], done, None)
            continue
        retry_conflicts(connection, partial(leases.release_lost_work, connection))
        if not leases.renew_lease(connection, lease_id):
            raise DatabaseError(
                "this process's lease expired because it sent no heartbeat; run the same command again"
            )
        connection.commit()
        time.sleep(_POLL_SECONDS)
