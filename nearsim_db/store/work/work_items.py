"""Work of all generations as listed for people: waiting, in progress, failed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from nearsim_db.records import CollectionId, WorkStage
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run, stream_rows

WorkState = Literal["waiting", "being done", "failing", "set aside"]


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Work on one document; `id` is its external id, or # and its doc_id if the document was deleted.

    The doc_id 0 stands for a whole generation. `worker` is processing it, `due_at` is when it may be taken.
    """

    id: str
    collection: str
    profile: str
    generation: int
    stage: WorkStage
    state: WorkState
    attempts: int
    due_at: datetime
    queued_at: datetime
    worker: str | None
    error: str | None


def stream_work(
    connection: Connection, collection_id: CollectionId | None, stage: WorkStage | None, *, failed: bool
) -> Iterator[WorkItem]:
    """Yield work of one collection or of all, set aside first; with `failed` only failed work."""
    parameters = {"collection_id": collection_id, "stage": stage, "failed": failed}
    return stream_rows(connection, WorkItem, "list_work", **parameters)


def retry(connection: Connection, collection_id: CollectionId | None, ids: Sequence[str] | None) -> list[str]:
    """Make failed and set-aside work due now, of some ids or all; return the ids."""
    return _on_failed(connection, "retry_work", collection_id, ids)


def discard(
    connection: Connection, collection_id: CollectionId | None, ids: Sequence[str] | None
) -> list[str]:
    """Delete failed and set-aside work, of some ids or all; return the ids."""
    return _on_failed(connection, "discard_work", collection_id, ids)


def _on_failed(
    connection: Connection, name: str, collection_id: CollectionId | None, ids: Sequence[str] | None
) -> list[str]:
    return run(connection, name, collection_id=collection_id, ids=None if ids is None else list(ids)).values()
