"""The work of all generations as people see it: what waits, what is being done, what failed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement
from nearsim_db.store.work.queue import Stage

WorkState = Literal["waiting", "being done", "failing", "set aside"]
_Row = tuple[
    str, str, str, int, Stage, WorkState, int, datetime, datetime, str | None, str | None
]  # as list_work says


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Work on one document; `id` is its external id, or its number after a # where the document is gone.

    The number 0 stands for a whole generation. `worker` is who is at it, `due_at` when it may be taken.
    """

    id: str
    collection: str
    profile: str
    generation: int
    stage: Stage
    state: WorkState
    attempts: int
    due_at: datetime
    queued_at: datetime
    worker: str | None
    error: str | None


def stream_work(
    connection: Connection, collection_id: CollectionId | None, stage: Stage | None, *, failed: bool
) -> Iterator[WorkItem]:
    """Work of one collection or of all lasting ones, what was set aside first; with `failed` only what went wrong."""
    parameters = {"collection_id": collection_id, "stage": stage, "failed": failed}
    with driver(connection).cursor(name="nearsim_list_work") as cursor:
        cursor.itersize = 5000
        cursor.execute(statement("list_work"), parameters)
        for row in cursor:
            yield WorkItem(*cast(_Row, row))


def retry(connection: Connection, collection_id: CollectionId | None, ids: Sequence[str] | None) -> list[str]:
    """Make work that failed or was set aside due now, of some ids or of all; returns whose it was."""
    return _on_failed(connection, "retry_work", collection_id, ids)


def discard(
    connection: Connection, collection_id: CollectionId | None, ids: Sequence[str] | None
) -> list[str]:
    """Take work that failed or was set aside off the queue, of some ids or of all; returns whose it was."""
    return _on_failed(connection, "discard_work", collection_id, ids)


def _on_failed(
    connection: Connection, name: str, collection_id: CollectionId | None, ids: Sequence[str] | None
) -> list[str]:
    parameters = {"collection_id": collection_id, "ids": None if ids is None else list(ids)}
    return [str(row[0]) for row in driver(connection).execute(statement(name), parameters).fetchall()]
