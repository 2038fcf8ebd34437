"""The work queue of a generation: queue, take under a lease, finish, fail.

Work that waits is a row for each document. Work under a lease is a row for each batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast, get_args

from psycopg import sql

from nearsim_db.errors import count_of
from nearsim_db.records import CollectionId, GenerationId, WorkStage
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.locks import Lock, take_transaction_lock, try_transaction_lock
from nearsim_db.store.driver.statements import GenerationStatements, run, statement

if TYPE_CHECKING:
    from nearsim_db.similarity.arrays import Ints

STAGES: tuple[WorkStage, ...] = get_args(WorkStage)  # in the order in which each queues work for the next

WHOLE = 0  # the doc_id of work on a whole generation

# Delays before the second and later attempts; after the last failed work is set aside.
DELAYS_SECONDS = (0.0, 1.0, 10.0, 60.0)
# (least attempts so far, most, divisor of a batch): smaller batches isolate what may have ended a worker.
_RETAKEN = ((1, 1, 16), (2, 32_767, 1_000_000))


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents of one stage that a worker has under its lease, stored as one row of the queue.

    `doc_ids` are in order. `attempts` of each failed before. `reached` is how far anchors have searched their buckets.
    """

    batch_id: int
    stage: WorkStage
    doc_ids: list[int]
    attempts: int = 0
    reached: int = 0

    @property
    def subject(self) -> str:
        """What messages call the documents: "3 documents", or "all documents" for work on a whole generation."""
        return "all documents" if self.doc_ids == [WHOLE] else count_of(len(self.doc_ids), "document")

    @property
    def is_deadly(self) -> bool:
        """Whether every attempt, the last ones on one document alone, ended with the worker's death."""
        return self.attempts > len(DELAYS_SECONDS)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """Changes that became work: their number, with any that another session took, and whether one means every document.

    `batches` have the new work to sign that is under the worker's lease, by generation.
    """

    changes: int
    whole: bool
    batches: Mapping[GenerationId, Batch]


def dispatch(
    connection: Connection,
    batch: int,
    lease_id: int | None = None,
    generation_ids: Sequence[GenerationId] = (),
) -> Dispatched:
    """Turn up to `batch` captured changes into work; new work to sign of some generations under a worker's lease."""
    # The statement below takes far longer to plan, and workers often ask when nothing was captured.
    if not run(connection, "has_changes").value():
        return Dispatched(0, False, {})
    take_transaction_lock(connection, Lock.DISPATCH, 0, shared=True)
    parameters = {"batch": batch, "lease_id": lease_id, "generation_ids": list(generation_ids)}
    alone = try_transaction_lock(connection, Lock.CHANGES, 0)
    skipping = sql.SQL("" if alone else "FOR UPDATE SKIP LOCKED")
    rows = run(connection, statement("dispatch_changes", skipping_locked=skipping), **parameters).rows()
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
        """Delete the captured writes that a build has indexed already; return their number."""
        take_transaction_lock(self.connection, Lock.CHANGES, 0)
        return self.run("discard_indexed_changes", collection_id=collection_id).count

    def discard_indexed_work(
        self,
        collection_id: CollectionId,
        after: int,
        batch: int,
    ) -> int | None:
        """Delete work to sign documents with a current signature among the next ones after a doc_id; return the last.

        No dispatcher may run meanwhile; see `await_dispatchers`.
        """
        parameters = {"collection_id": collection_id, "after": after, "batch": batch}
        last: int | None = self.run("discard_indexed_work", **parameters).value()
        return last

    def add_outdated(self, collection_id: CollectionId) -> None:
        """Queue documents whose index rows are outdated; expired ones are to be removed."""
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

    def take(self, stage: WorkStage, lease_id: int, most: int) -> list[Batch]:
        """Put the next work of a stage under a lease: a batch of new work, and small batches of earlier failures."""
        parameters = {"stage": stage, "lease_id": lease_id}
        batches = self.run("take_work", **parameters, batch=most).all(Batch)
        for least, most_attempts, share in _RETAKEN:
            again = {"least": least, "most": most_attempts, "batch": max(1, most // share)}
            batches += self.run("take_retries", **parameters, **again).all(Batch)
        return batches

    def lock(self, batch: Batch) -> list[int]:
        """Lock a batch until the transaction ends; return its documents, none if the lease was lost.

        Those that were purged are no longer in it.
        """
        rows = self.run("lock_batch", stage=batch.stage, batch_id=batch.batch_id).rows()
        return cast(list[int], rows[0][0]) if rows else []

    def continue_with_search(self, batch: Batch, doc_ids: "Sequence[int] | Ints") -> Batch | None:
        """Have a locked batch of signed documents search for these; without any it is finished."""
        if not len(doc_ids):
            self.finish(batch)
            return None
        searching = Batch(batch.batch_id, "search", sorted(map(int, doc_ids)))
        self.run("continue_batch", batch_id=batch.batch_id, doc_ids=packed_ids(searching.doc_ids))
        return searching

    def continue_anchors(self, reached: Mapping[int, int]) -> None:
        """Queue anchors to search on from the member reached, or from the start if they were queued again meanwhile."""
        if reached:
            parameters = {"doc_ids": packed_ids(list(reached)), "reached": packed_ids(list(reached.values()))}
            self.run("continue_anchors", **parameters)

    def finish(self, batch: Batch) -> list[int]:
        """Remove a batch in the transaction that stores its result; return what `lock` does."""
        rows = self.run("finish_batch", stage=batch.stage, batch_id=batch.batch_id).rows()
        return cast(list[int], rows[0][0]) if rows else []

    def fail(self, batch: Batch, error: str) -> tuple[list[int], list[int]]:
        """Turn a batch that failed into work of its documents; return those to be retried, and those set aside.

        Each retry is due after a longer delay. Documents that were queued again meanwhile are new work.
        """
        parameters = {"stage": batch.stage, "batch_id": batch.batch_id, "error": error}
        rows = self.run("fail_batch", **parameters, delays=list(DELAYS_SECONDS)).rows()
        retried = [doc_id for doc_id, is_aside in rows if not is_aside]
        return retried, [doc_id for doc_id, is_aside in rows if is_aside]

    def has_unfinished(self, stage: WorkStage, before: datetime) -> bool:
        """Whether work of a stage, queued before a time of the server's clock, is unfinished."""
        return bool(self.run("has_unfinished_work", stage=stage, before=before).value())

    def has_any(self) -> bool:
        """Whether a generation has work, other than what was set aside, once changes taken by others are queued."""
        await_dispatchers(self.connection)
        return bool(self.run("has_work").value())

    def count(self) -> tuple[int, int]:
        """Return the length of a generation's queue, and the number of documents set aside."""
        queued, set_aside = self.run("count_work").row()
        return queued, set_aside
