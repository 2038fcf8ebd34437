"""Work that is still to be done on one generation: queued, taken under a lease, finished or failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.locks import Lock, hold_lock
from nearsim_db.store.driver.statements import Leaves, statement

Stage = Literal["compare", "sign", "search", "anchor", "link", "tell"]
STAGES: tuple[Stage, ...] = get_args(Stage)  # in the order in which one brings work to the next

WHOLE = 0  # the doc_id of work that is a whole generation's

# How long failed work waits before the second attempt and so on; after the last it is set aside.
DELAYS_SECONDS = (0.0, 1.0, 10.0, 60.0)
# (least attempts so far, most, share of a batch): what may have killed a worker is narrowed down.
_RETAKEN = ((1, 1, 16), (2, 32_767, 1_000_000))


@dataclass(frozen=True, slots=True)
class Task:
    """A document that was taken, for the how manieth time; `reached` is how far an anchor has searched its buckets."""

    doc_id: int
    reached: int
    attempts: int

    @property
    def is_deadly(self) -> bool:
        """Whether all attempts, the last ones at this document alone, ended with the worker's death."""
        return self.attempts > len(DELAYS_SECONDS)


def dispatch(connection: Connection, batch: int) -> tuple[int, bool]:
    """Turn up to `batch` noted changes into work: how many they were, and whether one of them says 'everything'."""
    hold_lock(connection, Lock.DISPATCH, 0, shared=True)
    row = driver(connection).execute(statement("dispatch_changes"), {"batch": batch}).fetchone()
    assert row is not None
    return int(str(row[0])), bool(row[1])


def await_dispatchers(connection: Connection) -> None:
    """Wait until changes that others have taken are queued as work."""
    hold_lock(connection, Lock.DISPATCH, 0)


def queue_pending(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, age_seconds: int | None
) -> None:
    """Queue the documents that the index does not reflect; those older than the age are not to be in it."""
    parameters = {"collection_id": collection_id, "age": age_seconds}
    driver(connection).execute(statement("queue_outdated", leaves), parameters)


def queue_work(
    connection: Connection,
    leaves: Leaves,
    stage: Stage,
    doc_ids: Sequence[int] | NDArray[np.int64],
    delay_seconds: float = 0.0,
) -> None:
    """Queue documents for a stage, to be taken after a delay at the earliest."""
    if len(doc_ids):
        parameters = {"stage": stage, "doc_ids": packed_ids(doc_ids), "delay": delay_seconds}
        driver(connection).execute(statement("queue_work", leaves), parameters)


def find_work(connection: Connection, collection_id: CollectionId | None) -> list[tuple[GenerationId, Stage]]:
    """What can be taken now: (generation, stage) of one collection, or of all lasting ones."""
    parameters = {"collection_id": collection_id, "stages": list(STAGES)}
    rows = driver(connection).execute(statement("find_work"), parameters).fetchall()
    return [(GenerationId(int(str(generation))), stage) for generation, stage in rows]  # type: ignore[misc]


def take(connection: Connection, leaves: Leaves, stage: Stage, lease_id: int, batch: int) -> list[list[Task]]:
    """Lease the next documents of a stage: a batch of new ones, and a few that failed before, apart from those."""
    parameters = {"stage": stage, "lease_id": lease_id, "batch": batch}
    taken = [_take(connection, leaves, "take_work", parameters)]
    for least, most, share in _RETAKEN:
        again = {**parameters, "least": least, "most": most, "batch": max(1, batch // share)}
        taken.append(_take(connection, leaves, "take_retries", again))
    return [tasks for tasks in taken if tasks]


def _take(connection: Connection, leaves: Leaves, name: str, parameters: Mapping[str, object]) -> list[Task]:
    rows = driver(connection).execute(statement(name, leaves), parameters).fetchall()
    return sorted((Task(*cast(tuple[int, int, int], row)) for row in rows), key=_by_id)


def _by_id(task: Task) -> int:
    return task.doc_id


def finish(
    connection: Connection, leaves: Leaves, stage: Stage, lease_id: int, doc_ids: Sequence[int]
) -> list[int]:
    """Take documents off a stage's queue; returns those that the lease still holds, and nobody else has taken over."""
    parameters = {"stage": stage, "lease_id": lease_id, "doc_ids": packed_ids(doc_ids)}
    rows = driver(connection).execute(statement("finish_work", leaves), parameters).fetchall()
    return [int(str(row[0])) for row in rows]


def hold(connection: Connection, leaves: Leaves, stage: Stage, lease_id: int, doc_id: int) -> bool:
    """Keep work under a lease until the transaction ends; False when the lease was lost."""
    parameters = {"stage": stage, "lease_id": lease_id, "doc_id": doc_id}
    return driver(connection).execute(statement("lock_work", leaves), parameters).fetchone() is not None


def continue_later(
    connection: Connection, leaves: Leaves, stage: Stage, lease_id: int, doc_id: int, reached: int
) -> bool:
    """Put work back with a slice of it done; False when the lease was lost."""
    parameters = {"stage": stage, "lease_id": lease_id, "doc_id": doc_id, "reached": reached}
    return driver(connection).execute(statement("continue_work", leaves), parameters).rowcount == 1


def release(
    connection: Connection, leaves: Leaves, stage: Stage, lease_id: int, doc_ids: Sequence[int]
) -> None:
    """Give work back as it was taken."""
    parameters = {"stage": stage, "lease_id": lease_id, "doc_ids": packed_ids(doc_ids)}
    driver(connection).execute(statement("release_work", leaves), parameters)


def fail(
    connection: Connection, leaves: Leaves, stage: Stage, lease_id: int, doc_ids: Sequence[int], error: str
) -> list[int]:
    """Work went wrong: it is tried again later, each time later; returns what was set aside instead."""
    parameters = {
        "stage": stage,
        "lease_id": lease_id,
        "doc_ids": packed_ids(doc_ids),
        "error": error,
        "delays": list(DELAYS_SECONDS),
    }
    rows = driver(connection).execute(statement("fail_work", leaves), parameters).fetchall()
    return [int(str(doc_id)) for doc_id, set_aside in rows if set_aside]


def server_time(connection: Connection) -> datetime:
    """What the server's clock says."""
    row = driver(connection).execute("SELECT clock_timestamp()").fetchone()
    assert row is not None and isinstance(row[0], datetime)
    return row[0]


def unfinished(connection: Connection, leaves: Leaves, stage: Stage, before: datetime) -> bool:
    """Whether work of a stage that was queued before a moment of the server's clock is still to be done."""
    parameters = {"stage": stage, "before": before}
    row = driver(connection).execute(statement("has_unfinished_work", leaves), parameters).fetchone()
    return row is not None and bool(row[0])


def count_work(connection: Connection, leaves: Leaves) -> tuple[int, int]:
    """How much work is queued for a generation, and how much was set aside."""
    row = driver(connection).execute(statement("count_work", leaves)).fetchone()
    assert row is not None
    return int(str(row[0])), int(str(row[1]))
