"""Work that is still to be done on one generation."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.engine import driver
from nearsim_db.store.statements import Leaves, statement

Ids = NDArray[np.int64]


def dispatch(connection: Connection, batch: int) -> tuple[int, bool]:
    """Turn up to `batch` noted changes into work: how many they were, and whether one of them says 'everything'."""
    row = driver(connection).execute(statement("dispatch_changes"), {"batch": batch}).fetchone()
    assert row is not None
    return int(str(row[0])), bool(row[1])


def queue_pending(connection: Connection, leaves: Leaves, collection_id: CollectionId) -> None:
    """Queue the documents that the index does not reflect."""
    driver(connection).execute(statement("queue_pending", leaves), {"collection_id": collection_id})


def queue_work(connection: Connection, leaves: Leaves, stage: str, doc_ids: Sequence[int]) -> None:
    """Queue documents for a stage."""
    parameters = {"stage": stage, "doc_ids": list(doc_ids)}
    driver(connection).execute(statement("queue_work", leaves), parameters)


def next_work(connection: Connection, leaves: Leaves, stage: str, batch: int) -> list[int]:
    """The next documents queued for a stage, in doc_id order."""
    parameters = {"stage": stage, "batch": batch}
    rows = driver(connection).execute(statement("next_work", leaves), parameters).fetchall()
    return [int(str(row[0])) for row in rows]


def finish_work(connection: Connection, leaves: Leaves, stage: str, doc_ids: Sequence[int]) -> None:
    """Take documents off a stage's queue."""
    parameters = {"stage": stage, "doc_ids": list(doc_ids)}
    driver(connection).execute(statement("finish_work", leaves), parameters)


def count_work(connection: Connection, leaves: Leaves) -> int:
    """How much work is queued for a generation."""
    row = driver(connection).execute(statement("count_work", leaves)).fetchone()
    assert row is not None
    return int(str(row[0]))


def take_work(connection: Connection, leaves: Leaves, stage: str, after: int, batch: int) -> list[int]:
    """Take the documents that follow `after` off a stage's queue, in doc_id order; without a commit they are back."""
    parameters = {"stage": stage, "after": after, "batch": batch}
    rows = driver(connection).execute(statement("take_work", leaves), parameters).fetchall()
    return sorted(int(str(row[0])) for row in rows)
