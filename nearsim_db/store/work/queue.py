"""The work queue of a generation: queue, take under a lease, finish, fail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from psycopg import sql

from nearsim_db.records import CollectionId, GenerationId, WorkStage
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.locks import Lock, take_transaction_lock, try_transaction_lock
from nearsim_db.store.driver.statements import Leaves, run, statement

if TYPE_CHECKING:
    from nearsim_db.similarity.arrays import Ints

STAGES: tuple[WorkStage, ...] = get_args(WorkStage)  # in the order in which each queues work for the next

WHOLE = 0  # the doc_id of work on a whole generation

# Delays before the second and later attempts; after the last failed work is set aside.
DELAYS_SECONDS = (0.0, 1.0, 10.0, 60.0)
# (least attempts so far, most, divisor of a batch): smaller batches isolate what may have ended a worker.
_RETAKEN = ((1, 1, 16), (2, 32_767, 1_000_000))


@dataclass(frozen=True, slots=True)
class Task:
    """A document to process, with its attempt count; `reached` is how far an anchor has searched its buckets."""

    doc_id: int
    reached: int
    attempts: int

    @property
    def is_deadly(self) -> bool:
        """Whether every attempt, the last ones on this document alone, ended with the worker's death."""
        return self.attempts > len(DELAYS_SECONDS)


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents that a worker signs and then searches under its lease, stored as one row; doc_ids in order."""

    batch_id: int
    doc_ids: list[int]


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
    batches = {GenerationId(row[2]): Batch(*row[3:]) for row in rows if row[2] is not None}
    return Dispatched(changes, bool(whole), batches)


def discard_indexed_changes(connection: Connection, leaves: Leaves, collection_id: CollectionId) -> int:
    """Delete the captured writes that a build has indexed already; return their number."""
    take_transaction_lock(connection, Lock.CHANGES, 0)
    return run(connection, "discard_indexed_changes", leaves, collection_id=collection_id).count


def discard_indexed_work(
    connection: Connection,
    leaves: Leaves,
    collection_id: CollectionId,
    age_seconds: int | None,
    after: int,
    batch: int,
) -> int | None:
    """Delete work to sign documents with a current signature among the next ones after a doc_id; return the last.

    No dispatcher may run meanwhile; see `await_dispatchers`.
    """
    parameters = {"collection_id": collection_id, "age": age_seconds, "after": after, "batch": batch}
    last: int | None = run(connection, "discard_indexed_work", leaves, **parameters).value()
    return last


def vacuum_changes(connection: Connection) -> None:
    """Vacuum the table of captured changes; the connection must be in autocommit."""
    autocommitting(connection).execute(statement("vacuum_changes"))


def await_dispatchers(connection: Connection) -> None:
    """Wait until changes taken by other dispatchers are queued as work."""
    take_transaction_lock(connection, Lock.DISPATCH, 0)


def queue_pending(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, age_seconds: int | None
) -> None:
    """Queue documents whose index rows are outdated; those older than the age are to be removed."""
    run(connection, "queue_outdated", leaves, collection_id=collection_id, age=age_seconds)


def queue_work(
    connection: Connection,
    leaves: Leaves,
    stage: WorkStage,
    doc_ids: "Sequence[int] | Ints",
    delay_seconds: float = 0.0,
) -> None:
    """Queue documents for a stage, due after a delay."""
    if len(doc_ids):
        run(connection, "queue_work", leaves, stage=stage, doc_ids=packed_ids(doc_ids), delay=delay_seconds)


def find_work(
    connection: Connection, collection_id: CollectionId | None
) -> list[tuple[GenerationId, WorkStage]]:
    """Return the (generation, stage) with work due, of one collection or of all."""
    rows = run(connection, "find_work", collection_id=collection_id, stages=list(STAGES)).rows()
    return [(generation_id, stage) for generation_id, stage in rows]


def take(
    connection: Connection, leaves: Leaves, stage: WorkStage, lease_id: int, batch: int
) -> list[list[Task]]:
    """Lease the next documents of a stage: a batch of new ones, and small batches of earlier failures."""
    parameters = {"stage": stage, "lease_id": lease_id, "batch": batch}
    new = _take(connection, leaves, "take_work", parameters)
    return [*([new] if new else []), *take_retries(connection, leaves, stage, lease_id, batch)]


def take_retries(
    connection: Connection, leaves: Leaves, stage: WorkStage, lease_id: int, batch: int
) -> list[list[Task]]:
    """Lease earlier failures of a stage, in small batches."""
    parameters = {"stage": stage, "lease_id": lease_id}
    taken = []
    for least, most, share in _RETAKEN:
        again = {**parameters, "least": least, "most": most, "batch": max(1, batch // share)}
        taken.append(_take(connection, leaves, "take_retries", again))
    return [tasks for tasks in taken if tasks]


def _take(connection: Connection, leaves: Leaves, name: str, parameters: Mapping[str, object]) -> list[Task]:
    return sorted(run(connection, name, leaves, **parameters).all(Task), key=_by_id)


def _by_id(task: Task) -> int:
    return task.doc_id


def finish(
    connection: Connection, leaves: Leaves, stage: WorkStage, lease_id: int, doc_ids: Sequence[int]
) -> list[int]:
    """Remove documents from a stage's queue; return those still under the lease."""
    if not doc_ids:
        return []
    parameters = {"stage": stage, "lease_id": lease_id, "doc_ids": packed_ids(doc_ids)}
    finished: list[int] = run(connection, "finish_work", leaves, **parameters).values()
    if len(finished) < len(doc_ids):
        finished += run(connection, "requeue_work", leaves, **parameters).values()
    return sorted(finished)


def continue_later(
    connection: Connection, leaves: Leaves, stage: WorkStage, lease_id: int, doc_id: int, reached: int
) -> bool:
    """Requeue an anchor item at `reached` after one slice; False if the lease was lost."""
    parameters = {"stage": stage, "lease_id": lease_id, "doc_id": doc_id, "reached": reached}
    return run(connection, "continue_work", leaves, **parameters).count == 1


def release(
    connection: Connection, leaves: Leaves, stage: WorkStage, lease_id: int, doc_ids: Sequence[int]
) -> None:
    """Release work without counting an attempt."""
    run(connection, "release_work", leaves, stage=stage, lease_id=lease_id, doc_ids=packed_ids(doc_ids))


def fail(
    connection: Connection,
    leaves: Leaves,
    stage: WorkStage,
    lease_id: int,
    doc_ids: Sequence[int],
    error: str,
) -> list[int]:
    """Record a failure, to be retried with growing delays; return what was set aside instead."""
    parameters = {
        "stage": stage,
        "lease_id": lease_id,
        "doc_ids": packed_ids(doc_ids),
        "error": error,
        "delays": list(DELAYS_SECONDS),
    }
    rows = run(connection, "fail_work", leaves, **parameters).rows()
    return [doc_id for doc_id, set_aside in rows if set_aside]


def server_time(connection: Connection) -> datetime:
    """Return the time of the server's clock."""
    now: datetime = run(connection, "SELECT clock_timestamp()").value()
    return now


def has_unfinished_work(connection: Connection, leaves: Leaves, stage: WorkStage, before: datetime) -> bool:
    """Whether work of a stage, queued before a time of the server's clock, is unfinished."""
    return bool(run(connection, "has_unfinished_work", leaves, stage=stage, before=before).value())


def has_work(connection: Connection, leaves: Leaves) -> bool:
    """Whether a generation has work, other than what was set aside, once changes taken by others are queued."""
    await_dispatchers(connection)
    return bool(run(connection, "has_work", leaves).value())


def vacuum_work(connection: Connection) -> None:
    """Vacuum the queue; the connection must be in autocommit."""
    autocommitting(connection).execute(statement("vacuum_work"))


def count_work(connection: Connection, leaves: Leaves) -> tuple[int, int]:
    """Return the length of a generation's queue, and the number of documents set aside."""
    queued, set_aside = run(connection, "count_work", leaves).row()
    return queued, set_aside
