"""The work of all generations: counting and listing it, and retrying or discarding failed work."""

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
    """Numbers of waiting documents, of leases and of attached tables."""

    by_stage: dict[WorkStage, int]  # documents that wait or are being processed, by stage, except `held` ones
    set_aside: int  # documents that were set aside

    # Age of the oldest waiting work, 0 if there is none. Work of generations that catch up after a build does not
    # count.
    oldest_seconds: float

    changes: int  # captured changes that are not dispatched
    leases: int
    held: int  # documents whose work waits for a build to be finished or resumed, or cannot be done here
    attached: int  # attached tables
    not_followed: int  # attached tables with a recorded trouble, whose age counts in `oldest_seconds`
    workers: tuple[LeaseHolder, ...]  # the workers of all collections


def read_backlog(
    connection: Connection, collection_id: CollectionId | None, without: Iterable[GenerationId] = ()
) -> Backlog:
    """Count the waiting work of one collection or of all.

    `without`: generations whose work cannot be done here
    """
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
    """Return the number of captured changes of one collection, or of all, that are not dispatched."""
    return int(run(connection, "count_changes", collection_id=collection_id).value())


def list_idle_triggers(connection: Connection) -> list[str]:
    """Return the triggers on nearsim.document that are disabled or missing, so that changes are not indexed."""
    return run(connection, "list_idle_triggers", names=list(_TRIGGERS)).values()


def has_remaining_work(
    connection: Connection, collection_id: CollectionId | None, without: list[GenerationId]
) -> bool:
    """Whether any work remains that was not set aside, except work of the generations in `without`."""
    return bool(run(connection, "has_remaining_work", collection_id=collection_id, without=without).value())


WorkState = Literal["waiting", "being done", "failing", "set aside"]


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Work on one document, or on a whole generation."""

    id: str  # external id; "#" and the doc_id if the document was deleted; "#0" for a whole generation
    collection: str
    profile: str
    generation: int
    stage: WorkStage
    state: WorkState
    attempts: int
    due_at: datetime  # when a worker may take it
    queued_at: datetime
    worker: str | None  # the process that is doing it now, as host:process
    error: str | None


def stream_work(
    connection: Connection, collection_id: CollectionId | None, stage: WorkStage | None, *, failed: bool
) -> Iterator[WorkItem]:
    """Yield the work of one collection or of all, set-aside work first; with `failed`, only failed work."""
    parameters = {"collection_id": collection_id, "stage": stage, "failed": failed}
    return stream_rows(connection, WorkItem, "list_work", **parameters)


def retry(connection: Connection, collection_id: CollectionId | None, ids: Sequence[str] | None) -> list[str]:
    """Make failed and set-aside work due now, for these ids or for all; return the ids of the documents."""
    return _run_on_failed(connection, "retry_work", collection_id, ids)


def discard(
    connection: Connection, collection_id: CollectionId | None, ids: Sequence[str] | None
) -> list[str]:
    """Delete failed and set-aside work, for these ids or for all; return the ids of the documents."""
    return _run_on_failed(connection, "discard_work", collection_id, ids)


def _run_on_failed(
    connection: Connection, name: str, collection_id: CollectionId | None, ids: Sequence[str] | None
) -> list[str]:
    return run(connection, name, collection_id=collection_id, ids=None if ids is None else list(ids)).values()
