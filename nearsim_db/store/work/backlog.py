"""The work of all generations: counts of what waits, lists for people, and failed work retried or discarded."""

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
    """Numbers of documents that wait, of leases and of attached tables."""

    by_stage: dict[WorkStage, int]  # waiting or being done, without `held`
    set_aside: int
    oldest_seconds: (
        float  # age of the oldest waiting work, 0 if none; without generations that catch up after a build
    )
    changes: int  # captured and not dispatched
    leases: int
    held: int  # until a build is finished or resumed, or because it cannot be done here
    attached: int
    not_followed: int  # attached tables with a problem; it counts in `oldest_seconds` since it was found
    workers: tuple[LeaseHolder, ...]  # of all collections


def read_backlog(
    connection: Connection, collection_id: CollectionId | None, without: Iterable[GenerationId] = ()
) -> Backlog:
    """Count waiting work of one collection or of all; `without` are generations whose work cannot be done here."""
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
    """Return the triggers of documents that are disabled or missing; without them changes are not indexed."""
    return run(connection, "list_idle_triggers", names=list(_TRIGGERS)).values()


def has_remaining_work(
    connection: Connection, collection_id: CollectionId | None, without: list[GenerationId]
) -> bool:
    """Whether work remains that was not set aside, in generations that are not in `without`."""
    return bool(run(connection, "has_remaining_work", collection_id=collection_id, without=without).value())


WorkState = Literal["waiting", "being done", "failing", "set aside"]


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Work on one document, or on a whole generation."""

    id: str  # external id; # and the doc_id if the document was deleted; #0 for a whole generation
    collection: str
    profile: str
    generation: int
    stage: WorkStage
    state: WorkState
    attempts: int
    due_at: datetime  # when it may be taken
    queued_at: datetime
    worker: str | None  # the process that does it now, as host:process
    error: str | None


def stream_work(
    connection: Connection, collection_id: CollectionId | None, stage: WorkStage | None, *, failed: bool
) -> Iterator[WorkItem]:
    """Yield work of one collection or of all, work that was set aside first; with `failed` only failed work."""
    parameters = {"collection_id": collection_id, "stage": stage, "failed": failed}
    return stream_rows(connection, WorkItem, "list_work", **parameters)


def retry(connection: Connection, collection_id: CollectionId | None, ids: Sequence[str] | None) -> list[str]:
    """Make failed and set-aside work due now, of some ids or all; return the ids."""
    return _run_on_failed(connection, "retry_work", collection_id, ids)


def discard(
    connection: Connection, collection_id: CollectionId | None, ids: Sequence[str] | None
) -> list[str]:
    """Delete failed and set-aside work, of some ids or all; return the ids."""
    return _run_on_failed(connection, "discard_work", collection_id, ids)


def _run_on_failed(
    connection: Connection, name: str, collection_id: CollectionId | None, ids: Sequence[str] | None
) -> list[str]:
    return run(connection, name, collection_id=collection_id, ids=None if ids is None else list(ids)).values()
