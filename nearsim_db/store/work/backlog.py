"""The work of all generations: counts of what waits, and each piece of work as listed for people."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from nearsim_db.records import CollectionId, GenerationId, WorkStage
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run, stream_rows
from nearsim_db.store.work.leases import LeaseHolder, list_workers
from nearsim_db.store.work.queue import STAGES

_TRIGGERS = (
    "document_capture_inserted",
    "document_capture_updated",
    "document_capture_deleted",
    "document_capture_truncated",
    "document_set_revision",
)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Waiting and running work by stage, what was set aside, and captured changes not yet dispatched.

    `held` is work that waits for a build to finish or resume, or that cannot be done here; `by_stage` does not include
    it. `oldest_seconds` is the age of the oldest waiting work, 0 if none waits; a generation that catches up after its
    build does not count. Of the `attached` tables some are `not_followed`: what waits there is not in other counts, but
    in the age, since the problem was found. `workers` are those of all collections.
    """

    by_stage: dict[WorkStage, int]
    set_aside: int
    oldest_seconds: float
    changes: int
    leases: int
    held: int
    attached: int
    not_followed: int
    workers: tuple[LeaseHolder, ...]


def read_backlog(
    connection: Connection, collection_id: CollectionId | None, without: Iterable[GenerationId] = ()
) -> Backlog:
    """Count waiting work over the whole queue. Work of generations in `without`, which cannot be done here, is held."""
    counts, set_aside, oldest, changes, leased, held, attached, not_followed = run(
        connection, "read_backlog", collection_id=collection_id, stages=list(STAGES), without=list(without)
    ).row()
    return Backlog(
        dict(zip(STAGES, counts, strict=True)),
        set_aside,
        float(oldest),
        changes,
        leased,
        held,
        attached,
        not_followed,
        tuple(list_workers(connection)),
    )


def count_changes(connection: Connection, collection_id: CollectionId | None) -> int:
    """Return how many captured changes of a collection, or of all, are not dispatched."""
    return int(run(connection, "count_changes", collection_id=collection_id).value())


def list_idle_triggers(connection: Connection) -> list[str]:
    """Return the triggers of documents that are disabled or do not exist, so that changes are not indexed."""
    return run(connection, "list_idle_triggers", names=list(_TRIGGERS)).values()


def has_remaining_work(
    connection: Connection, collection_id: CollectionId | None, without: list[GenerationId]
) -> bool:
    """Whether work remains other than what was set aside, except in the generations in `without`."""
    return bool(run(connection, "has_remaining_work", collection_id=collection_id, without=without).value())


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
