"""Wait for queued work: do it here, together with other workers, until none of it is left."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from nearsim_db.errors import DatabaseError
from nearsim_db.records import Progress, WorkStage
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import retry_conflicts
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.generations import partitions
from nearsim_db.store.work import leases, queue

_POLL_SECONDS = 0.05
_CHECK_SECONDS = 1.0  # to look for the end costs more than to take the next batch
_LARGE_BATCH = 500
_VACUUM_EVERY = 50_000

_PROGRESS_STEPS = {
    "compare": "changes",
    "sign": "sign",
    "search": "search",
    "anchor": "search",
    "link": "clusters",
}


def finish_stages(
    engine: Engine,
    leaves: Leaves,
    lease_id: int,
    work: Mapping[WorkStage, Callable[[], int]],
    progress: Progress,
) -> None:
    """Work on one stage after the other until what was queued before is done.

    `work` does a batch of a stage and returns how many documents it took, 0 where another process has the rest.
    """
    with engine.connect() as connection:
        for stage, do_batch in work.items():
            _Stage(engine, connection, leaves, stage, lease_id, progress).finish(do_batch)
        connection.commit()


@dataclass(frozen=True, slots=True)
class _Stage:
    engine: Engine
    connection: Connection
    leaves: Leaves
    stage: WorkStage
    lease_id: int
    progress: Progress

    def finish(self, do_batch: Callable[[], int]) -> None:
        before, done, taken, check_at = queue.server_time(self.connection), 0, 0, 0.0
        # Work queued from now on is not waited for: other clients may write faster than this ends.
        while True:
            # After a large batch more is likely to follow, so a look for the end can wait.
            if taken < _LARGE_BATCH or time.monotonic() >= check_at:
                if not self._has_unfinished_work(before):
                    return
                check_at = time.monotonic() + _CHECK_SECONDS
            taken = do_batch()
            done += taken
            if taken:
                self.progress(_PROGRESS_STEPS[self.stage], done, None)
                if done // _VACUUM_EVERY > (done - taken) // _VACUUM_EVERY:
                    self._vacuum()
            elif self._has_unfinished_work(before):
                self._wait_for_other_workers()

    def _has_unfinished_work(self, before: datetime) -> bool:
        found = queue.has_unfinished_work(self.connection, self.leaves, self.stage, before)
        self.connection.commit()
        return found

    def _wait_for_other_workers(self) -> None:
        retry_conflicts(self.connection, partial(leases.release_lost_work, self.connection))
        if not leases.renew_lease(self.connection, self.lease_id):
            raise DatabaseError(
                "this process's lease expired because it sent no heartbeat; run the same command again"
            )
        self.connection.commit()
        time.sleep(_POLL_SECONDS)

    def _vacuum(self) -> None:
        with self.engine.connect(autocommit=True) as connection:
            queue.vacuum_work(connection)
            partitions.analyze_refilled(connection)
