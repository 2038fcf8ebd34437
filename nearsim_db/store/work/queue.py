"""The work queue of a generation: queueing work, taking it under a lease, finishing it, and recording failures.

Waiting work has a row for each document; work under a lease has a row for each batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast, get_args

from psycopg import sql

from nearsim_db.messages import count_of
from nearsim_db.records import CollectionId, GenerationId, WorkStage
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.locks import Lock, take_transaction_lock, try_transaction_lock
from nearsim_db.store.driver.statements import GenerationStatements, run, statement

if TYPE_CHECKING:
    from nearsim_db.similarity.arrays import Ints

# The stages in order; each queues work for the next one.
STAGES: tuple[WorkStage, ...] = get_args(WorkStage)

# Work on a whole generation has this number in place of a doc_id.
WHOLE_GENERATION = 0

# Delays before the second and later attempts. Work that fails again after the last delay is set aside.
DELAYS_SECONDS = (0.0, 1.0, 10.0, 60.0)

_MAX_SMALLINT = 32_767
# (lowest number of failed attempts, highest number, divisor): work that failed so often is retried in batches that are
# smaller by the divisor. Small batches isolate a document that may have killed a worker.
_RETRY_BATCHES = ((1, 1, 16), (2, _MAX_SMALLINT, 1_000_000))


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents that a worker processes in one stage under its lease; a batch is one row of the queue."""

    batch_id: int
    stage: WorkStage
    doc_ids: list[int]  # ascending
    attempts: int = 0  # number of failed attempts of each of the documents
    reached: int = 0  # the doc_id up to which anchors have searched their buckets

    @property
    def subject(self) -> str:
        """The documents in the words of messages, such as "3 documents" or "all documents"."""
        is_whole = self.doc_ids == [WHOLE_GENERATION]
        return "all documents" if is_whole else count_of(len(self.doc_ids), "document")

    @property
    def is_deadly(self) -> bool:
        """Whether every attempt killed the worker, including the last attempts, which ran the document alone."""
        return self.attempts > len(DELAYS_SECONDS)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The result of turning captured changes into work."""

    changes: int  # number of changes, including those that another session took first
    whole: bool  # whether any of them concerns all documents
    batches: Mapping[GenerationId, Batch]  # new work to sign, which is under the worker's lease


def dispatch(
    connection: Connection,
    batch: int,
    lease_id: int | None = None,
    generation_ids: Sequence[GenerationId] = (),
) -> Dispatched:
    """Turn up to `batch` captured changes into work.

    New work to sign for the generations in `generation_ids` is put under the lease `lease_id`.
    """
    # Workers often call this when nothing was captured, and dispatch_changes takes much longer to plan than this query.
    if not run(connection, "has_changes").value():
        return Dispatched(0, False, {})

    # Changes are locked first only if other sessions take changes at the same time.
    take_transaction_lock(connection, Lock.DISPATCH, 0, shared=True)
    is_alone = try_transaction_lock(connection, Lock.CHANGES, 0)
    locking = sql.SQL("" if is_alone else "FOR UPDATE SKIP LOCKED")
    parameters = {"batch": batch, "lease_id": lease_id, "generation_ids": list(generation_ids)}
    rows = run(connection, statement("dispatch_changes", skipping_locked=locking), **parameters).rows()

    # Every row has the totals. If there is no batch, there is one row, whose other columns are NULL.
    changes, whole = rows[0][:2]
    batches = {
        GenerationId(generation_id): Batch(batch_id, "sign", doc_ids)
        for _, _, generation_id, batch_id, doc_ids in rows
        if generation_id is not None
    }
    return Dispatched(changes, bool(whole), batches)


def vacuum_changes(connection: Connection) -> None:
    """Vacuum the table of captured changes; the connection must be in autocommit mode."""
    autocommitting(connection).execute(statement("vacuum_changes"))


def await_dispatchers(connection: Connection) -> None:
    """Wait until the changes that other dispatchers have taken are queued as work."""
    take_transaction_lock(connection, Lock.DISPATCH, 0)


def find_work(
    connection: Connection, collection_id: CollectionId | None
) -> list[tuple[GenerationId, WorkStage]]:
    """Return each (generation, stage) with work that is due, for one collection or for all."""
    rows = run(connection, "find_work", collection_id=collection_id, stages=list(STAGES)).rows()
    return [(generation_id, stage) for generation_id, stage in rows]


def server_time(connection: Connection) -> datetime:
    """Return the time of the server's clock."""
    now: datetime = run(connection, "SELECT clock_timestamp()").value()
    return now


def vacuum_work(connection: Connection) -> None:
    """Vacuum the queue; the connection must be in autocommit mode."""
    autocommitting(connection).execute(statement("vacuum_work"))


class WorkQueue(GenerationStatements):
    """The work queue of a generation."""

    __slots__ = ()

    def discard_indexed_changes(self, collection_id: CollectionId) -> int:
        """Delete captured changes whose revision a build has signed; return their number."""
        # The lock keeps out dispatchers, which take changes without locking their rows first.
        take_transaction_lock(self.connection, Lock.CHANGES, 0)
        return self.run("discard_indexed_changes", collection_id=collection_id).count

    def discard_indexed_work(
        self,
        collection_id: CollectionId,
        after: int,
        batch: int,
    ) -> int | None:
        """Delete unnecessary work to sign, because the present revision is signed already, in a slice of the queue.

        The slice has the next `batch` documents after the doc_id `after`. Returns the last doc_id of the slice, or None
        if it is empty. No dispatcher may run at the same time; see `await_dispatchers`.
        """
        parameters = {"collection_id": collection_id, "after": after, "batch": batch}
        last: int | None = self.run("discard_indexed_work", **parameters).value()
        return last

    def add_outdated(self, collection_id: CollectionId) -> None:
        """Queue documents whose present revision is not signed, and signatures of expired or deleted documents."""
        self.run("queue_outdated", collection_id=collection_id)

    def add(
        self,
        stage: WorkStage,
        doc_ids: "Sequence[int] | Ints",
        delay_seconds: float = 0.0,
    ) -> None:
        """Queue documents for a stage, due after a delay."""
        if len(doc_ids):
            self.run("queue_work", stage=stage, doc_ids=packed_ids(doc_ids), delay=delay_seconds)

    def take(self, stage: WorkStage, lease_id: int, max_documents: int) -> list[Batch]:
        """Put the next work of a stage under a lease, as a batch of new work and smaller batches of failed work."""
        parameters = {"stage": stage, "lease_id": lease_id}
        batches = self.run("take_work", **parameters, batch=max_documents).all(Batch)
        for min_attempts, max_attempts, divisor in _RETRY_BATCHES:
            retries = {
                "min_attempts": min_attempts,
                "max_attempts": max_attempts,
                "batch": max(1, max_documents // divisor),
            }
            batches += self.run("take_retries", **parameters, **retries).all(Batch)
        return batches

    def lock(self, batch: Batch) -> list[int]:
        """Lock a batch until the transaction ends, and return its documents.

        Documents that were purged after the batch was taken are left out. Returns no documents if the lease was lost.
        """
        rows = self.run("lock_batch", stage=batch.stage, batch_id=batch.batch_id).rows()
        return cast(list[int], rows[0][0]) if rows else []

    def continue_with_search(self, batch: Batch, doc_ids: "Sequence[int] | Ints") -> Batch | None:
        """Replace a locked batch of signed documents by work to search for `doc_ids`; if there are none, finish it."""
        if not len(doc_ids):
            self.finish(batch)
            return None
        searching = Batch(batch.batch_id, "search", sorted(map(int, doc_ids)))
        self.run("continue_batch", batch_id=batch.batch_id, doc_ids=packed_ids(searching.doc_ids))
        return searching

    def continue_anchors(self, reached: Mapping[int, int]) -> None:
        """Queue anchors to continue after the member that each has reached.

        Anchors that were queued again meanwhile begin from the start.
        """
        if reached:
            parameters = {"doc_ids": packed_ids(list(reached)), "reached": packed_ids(list(reached.values()))}
            self.run("continue_anchors", **parameters)

    def finish(self, batch: Batch) -> list[int]:
        """Remove a batch, in the transaction that stores its result; return its documents as `lock` does."""
        rows = self.run("finish_batch", stage=batch.stage, batch_id=batch.batch_id).rows()
        return cast(list[int], rows[0][0]) if rows else []

    def fail(self, batch: Batch, error: str) -> tuple[list[int], list[int]]:
        """Turn a failed batch into separate work for each of its documents.

        Returns the doc_ids that will be retried, and the doc_ids that were set aside. Each retry is due after a longer
        delay. Documents that were queued again meanwhile remain new work.
        """
        parameters = {"stage": batch.stage, "batch_id": batch.batch_id, "error": error}
        rows = self.run("fail_batch", **parameters, delays=list(DELAYS_SECONDS)).rows()
        retried = [doc_id for doc_id, is_set_aside in rows if not is_set_aside]
        return retried, [doc_id for doc_id, is_set_aside in rows if is_set_aside]

    def has_unfinished(self, stage: WorkStage, before: datetime) -> bool:
        """Whether work of a stage that was queued before a time of the server's clock is unfinished."""
        return bool(self.run("has_unfinished_work", stage=stage, before=before).value())

    def has_any(self) -> bool:
        """Whether a generation has work that was not set aside; waits for dispatchers first."""
        await_dispatchers(self.connection)
        return bool(self.run("has_work").value())

    def count(self) -> tuple[int, int]:
        """Return the number of queued documents that are not set aside, and the number of those that are."""
        queued, set_aside = self.run("count_work").row()
        return queued, set_aside
