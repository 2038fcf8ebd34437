"""The work queue of a generation: queue, take under a lease, finish, fail.

Waiting work has a row for each document, work under a lease a row for each batch.
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

# In the order in which each stage queues work for the next.
STAGES: tuple[WorkStage, ...] = get_args(WorkStage)

# Takes the place of a doc_id in work on a whole generation.
WHOLE_GENERATION = 0

# Before the second and later attempts; work that fails once more is set aside.
DELAYS_SECONDS = (0.0, 1.0, 10.0, 60.0)

_MAX_SMALLINT = 32_767
# Attempts so far (from, to) and the divisor of a batch: small batches isolate a document that may have ended a worker.
_RETRY_BATCHES = ((1, 1, 16), (2, _MAX_SMALLINT, 1_000_000))


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents of one stage that a worker has under its lease, stored as one row of the queue."""

    batch_id: int
    stage: WorkStage
    doc_ids: list[int]  # ascending
    attempts: int = 0  # that failed before, for each of the documents
    reached: int = 0  # doc_id up to which anchors have searched their buckets

    @property
    def subject(self) -> str:
        """The documents as named in messages, such as "3 documents" or "all documents"."""
        is_whole = self.doc_ids == [WHOLE_GENERATION]
        return "all documents" if is_whole else count_of(len(self.doc_ids), "document")

    @property
    def is_deadly(self) -> bool:
        """Whether every attempt, the last ones on one document alone, ended with the worker's death."""
        return self.attempts > len(DELAYS_SECONDS)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """Captured changes that became work."""

    changes: int  # with changes that another session took first
    whole: bool  # one of them means every document
    batches: Mapping[GenerationId, Batch]  # new work to sign that is under the worker's lease


def dispatch(
    connection: Connection,
    batch: int,
    lease_id: int | None = None,
    generation_ids: Sequence[GenerationId] = (),
) -> Dispatched:
    """Turn up to `batch` captured changes into work.

    New work to sign of `generation_ids` goes under the lease `lease_id`.
    """
    # dispatch_changes takes far longer to plan, and workers often ask when nothing was captured.
    if not run(connection, "has_changes").value():
        return Dispatched(0, False, {})

    # Only if others take changes at the same time are changes locked first.
    take_transaction_lock(connection, Lock.DISPATCH, 0, shared=True)
    is_alone = try_transaction_lock(connection, Lock.CHANGES, 0)
    locking = sql.SQL("" if is_alone else "FOR UPDATE SKIP LOCKED")
    parameters = {"batch": batch, "lease_id": lease_id, "generation_ids": list(generation_ids)}
    rows = run(connection, statement("dispatch_changes", skipping_locked=locking), **parameters).rows()

    # Every row has the totals; all except them are NULL if there is no batch.
    changes, whole = rows[0][:2]
    batches = {
        GenerationId(generation_id): Batch(batch_id, "sign", doc_ids)
        for _, _, generation_id, batch_id, doc_ids in rows
        if generation_id is not None
    }
    return Dispatched(changes, bool(whole), batches)


def vacuum_changes(connection: Connection) -> None:
    """Vacuum the table of captured changes; the connection must be in autocommit."""
    autocommitting(connection).execute(statement("vacuum_changes"))


def await_dispatchers(connection: Connection) -> None:
    """Wait until changes taken by other dispatchers are queued as work."""
    take_transaction_lock(connection, Lock.DISPATCH, 0)


def find_work(
    connection: Connection, collection_id: CollectionId | None
) -> list[tuple[GenerationId, WorkStage]]:
    """Return the (generation, stage) with work due, of one collection or of all."""
    rows = run(connection, "find_work", collection_id=collection_id, stages=list(STAGES)).rows()
    return [(generation_id, stage) for generation_id, stage in rows]


def server_time(connection: Connection) -> datetime:
    """Return the time of the server's clock."""
    now: datetime = run(connection, "SELECT clock_timestamp()").value()
    return now


def vacuum_work(connection: Connection) -> None:
    """Vacuum the queue; the connection must be in autocommit."""
    autocommitting(connection).execute(statement("vacuum_work"))


class WorkQueue(GenerationStatements):
    """The work of a generation."""

    __slots__ = ()

    def discard_indexed_changes(self, collection_id: CollectionId) -> int:
        """Delete captured changes whose revision a build has signed; return their number."""
        # Keeps away dispatchers that take changes without locking them.
        take_transaction_lock(self.connection, Lock.CHANGES, 0)
        return self.run("discard_indexed_changes", collection_id=collection_id).count

    def discard_indexed_work(
        self,
        collection_id: CollectionId,
        after: int,
        batch: int,
    ) -> int | None:
        """Delete needless work to sign, whose documents have a current signature, in a slice of the queue.

        The slice is the next `batch` documents after a doc_id; returns its last doc_id, None if it is empty. No
        dispatcher may run meanwhile; see `await_dispatchers`.
        """
        parameters = {"collection_id": collection_id, "after": after, "batch": batch}
        last: int | None = self.run("discard_indexed_work", **parameters).value()
        return last

    def add_outdated(self, collection_id: CollectionId) -> None:
        """Queue documents that have no current signature, and signatures of expired or deleted documents."""
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
        """Put the next work of a stage under a lease: a batch of new work, and smaller batches of failed work."""
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
        """Lock a batch until the transaction ends; return its documents without those purged since it was taken.

        Returns no documents if the lease was lost.
        """
        rows = self.run("lock_batch", stage=batch.stage, batch_id=batch.batch_id).rows()
        return cast(list[int], rows[0][0]) if rows else []

    def continue_with_search(self, batch: Batch, doc_ids: "Sequence[int] | Ints") -> Batch | None:
        """Turn a locked batch of signed documents into the search for `doc_ids`; without any it is finished."""
        if not len(doc_ids):
            self.finish(batch)
            return None
        searching = Batch(batch.batch_id, "search", sorted(map(int, doc_ids)))
        self.run("continue_batch", batch_id=batch.batch_id, doc_ids=packed_ids(searching.doc_ids))
        return searching

    def continue_anchors(self, reached: Mapping[int, int]) -> None:
        """Queue anchors to continue after the member reached, or from the start if they were queued again meanwhile."""
        if reached:
            parameters = {"doc_ids": packed_ids(list(reached)), "reached": packed_ids(list(reached.values()))}
            self.run("continue_anchors", **parameters)

    def finish(self, batch: Batch) -> list[int]:
        """Remove a batch in the transaction that stores its result; return its documents as `lock` does."""
        rows = self.run("finish_batch", stage=batch.stage, batch_id=batch.batch_id).rows()
        return cast(list[int], rows[0][0]) if rows else []

    def fail(self, batch: Batch, error: str) -> tuple[list[int], list[int]]:
        """Turn a failed batch into work of its documents; return the doc_ids to be retried and the doc_ids set aside.

        Each retry is due after a longer delay. Documents that were queued again meanwhile stay new work.
        """
        parameters = {"stage": batch.stage, "batch_id": batch.batch_id, "error": error}
        rows = self.run("fail_batch", **parameters, delays=list(DELAYS_SECONDS)).rows()
        retried = [doc_id for doc_id, is_set_aside in rows if not is_set_aside]
        return retried, [doc_id for doc_id, is_set_aside in rows if is_set_aside]

    def has_unfinished(self, stage: WorkStage, before: datetime) -> bool:
        """Whether work of a stage, queued before a time of the server's clock, is unfinished."""
        return bool(self.run("has_unfinished_work", stage=stage, before=before).value())

    def has_any(self) -> bool:
        """Whether a generation has work that was not set aside; waits for dispatchers first."""
        await_dispatchers(self.connection)
        return bool(self.run("has_work").value())

    def count(self) -> tuple[int, int]:
        """Return the number of documents queued without those set aside, and the number of documents set aside."""
        queued, set_aside = self.run("count_work").row()
        return queued, set_aside
