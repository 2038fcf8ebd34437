"""The runner of workers and commands: it takes batches of a generation's queued work under a lease, and does them."""

import time
from datetime import datetime

from nearsim_db.errors import DatabaseError, NearsimError, NotFoundError
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.queue.stages import STAGE_WORK
from nearsim_db.records import Progress, WorkStage
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import attempts, is_transient, retry_conflicts
from nearsim_db.store.generations import generation_rows, partitions
from nearsim_db.store.work import leases, queue
from nearsim_db.store.work.queue import STAGES, Batch

_BATCH_DOCUMENTS: dict[WorkStage, int] = {
    "compare": 1,
    "sign": 1_000,
    "search": 1_000,
    "anchor": 16,
    "link": 2_000,
}
_PROGRESS_STEPS: dict[WorkStage, str] = {
    "compare": "changes",
    "sign": "sign",
    "search": "search",
    "anchor": "search",
    "link": "clusters",
}
_POLL_SECONDS = 0.05
# Checking for the end costs more than taking the next batch, so after large batches it is done once a second.
_CHECK_SECONDS = 1.0
_MIN_LARGE_BATCH_DOCUMENTS = 500
_DOCUMENTS_BETWEEN_VACUUMS = 50_000


class Runner:
    """Does the work that is queued for a generation."""

    def __init__(self, engine: Engine, context: Context) -> None:
        self._engine = engine
        self._context = context

    def take(self, stage: WorkStage, lease_id: int) -> list[Batch]:
        """Take the next work of a stage under a lease: a batch of new work, and small batches of failed work."""
        with self._engine.connect() as connection:
            # The generation may be dropped at the same time.
            for attempt in attempts(connection):
                with attempt:
                    work = self._context.tables(connection).work
                    batches = work.take(stage, lease_id, _BATCH_DOCUMENTS[stage])
                    connection.commit()
        return batches

    def run(self, batch: Batch) -> Batch | None:
        """Do a batch, and return the batch that follows it, if any: documents that were signed are searched next.

        If the batch fails, its documents are retried later in separate batches, and set aside after a few attempts.
        Errors that are not due to the documents (a lost connection, a full disk) are raised.
        """
        context, following = self._context, None
        with self._engine.connect() as connection:
            try:
                if batch.is_deadly:
                    raise NearsimError("each worker that took this task died or lost its lease")
                for attempt in attempts(connection):
                    with attempt:
                        context.findings.clear()
                        following = STAGE_WORK[batch.stage](connection, context, batch)
            except Exception as error:
                connection.rollback()
                if is_transient(error):
                    raise
                self._record_failure(connection, batch, error)

        return following

    def _record_failure(self, connection: Connection, batch: Batch, error: Exception) -> None:
        """Record an error, and remove documents that cannot be signed, as their stored signatures are outdated."""
        context = self._context
        context.findings.clear()
        try:
            generation_rows.reread(connection, context.generation)
        except NotFoundError:  # another session dropped the generation
            return

        reason = f"{type(error).__name__}: {error}"
        failed, set_aside = context.tables(connection).work.fail(batch, reason)
        if batch.stage == "sign" and set_aside:
            steps.store_signatures(connection, context, set_aside, steps.sign_documents(context, []))
        connection.commit()

        if failed or set_aside:
            context.totals.update({"failed": len(failed), "set aside": len(set_aside)})
            context.warn(
                f"{batch.stage} of {batch.subject} failed, {len(set_aside)} of them set aside: {reason}"
            )

    def work(self, stage: WorkStage, lease_id: int) -> int:
        """Take work of a stage, do it and all batches that follow from it; return how many documents were taken."""
        batches = self.take(stage, lease_id)
        for batch in batches:
            following: Batch | None = batch
            while following is not None:
                following = self.run(following)
        return sum(len(batch.doc_ids) for batch in batches)

    def drain(self, lease_id: int, progress: Progress) -> None:
        """Work, stage after stage, until this or another worker has done everything that is queued now."""
        with self._engine.connect() as connection:
            queue.await_dispatchers(connection)
            connection.commit()
            for stage in STAGES:
                self._finish(connection, stage, lease_id, progress)

    def _finish(self, connection: Connection, stage: WorkStage, lease_id: int, progress: Progress) -> None:
        """Work on a stage until everything that was queued for it before this call is done."""
        # Do not wait for work that is queued later: other clients may write faster than it can be done.
        before, done, taken, check_at = queue.server_time(connection), 0, 0, 0.0
        while True:
            # After a large batch another one is likely to follow, so the check for the end can wait.
            if taken < _MIN_LARGE_BATCH_DOCUMENTS or time.monotonic() >= check_at:
                if not self._has_unfinished_work(connection, stage, before):
                    return
                check_at = time.monotonic() + _CHECK_SECONDS

            taken = self.work(stage, lease_id)
            done += taken
            if taken:
                progress(_PROGRESS_STEPS[stage], done, None)
                if done // _DOCUMENTS_BETWEEN_VACUUMS > (done - taken) // _DOCUMENTS_BETWEEN_VACUUMS:
                    self._vacuum()
            elif self._has_unfinished_work(connection, stage, before):
                self._wait_for_other_workers(connection, lease_id)

    def _has_unfinished_work(self, connection: Connection, stage: WorkStage, before: datetime) -> bool:
        is_unfinished = self._context.tables(connection).work.has_unfinished(stage, before)
        connection.commit()
        return is_unfinished

    def _wait_for_other_workers(self, connection: Connection, lease_id: int) -> None:
        retry_conflicts(connection, leases.release_lost_work, connection)
        if not leases.renew_lease(connection, lease_id):
            raise DatabaseError(
                "this process's lease expired because it sent no heartbeat; run the same command again"
            )
        connection.commit()
        time.sleep(_POLL_SECONDS)

    def _vacuum(self) -> None:
        with self._engine.connect(autocommit=True) as connection:
            queue.vacuum_work(connection)
            partitions.analyze_refilled(connection)
