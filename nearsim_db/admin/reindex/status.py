"""Progress of the generations of a collection."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearsim_db.admin.reindex.estimate import StageProgress, estimate, seconds_by_stage
from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import profiles
from nearsim_db.similarity.recipe.writing import differing_keys
from nearsim_db.store import build_slices, collection_rows, generation_rows, partitions
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.generations import MAINTAINED, PENDING, is_attended, is_unattended, state_label
from nearsim_db.store.work import leases, queue


@dataclass(frozen=True, slots=True)
class Status:
    """A generation and its progress.

    `done` of `total` documents have completed its stage, None if unknown. `waiting` is work queued for it, `set_aside`
    work that failed for good. `is_attended` means that a process builds it now; a build that is neither attended nor
    detached was left behind. `percent` is of the whole build and the queue; `seconds_left` is None if no process will
    continue. `waits_for_worker` means that only a worker can continue and none runs. `differs` are the recipe's keys
    that differ from the live generation's, such as shingle.k.
    """

    generation: Generation
    is_attended: bool
    waits_for_worker: bool
    done: int | None
    total: int | None
    percent: float | None
    seconds_left: float | None
    waiting: int
    set_aside: int
    bytes: int
    differs: Mapping[str, Any]

    @property
    def is_left_behind(self) -> bool:
        """Whether the process that built it died, so that a person has to resume or abandon it."""
        return is_unattended(self.generation, attended=self.is_attended)

    @property
    def remedy_where_refused(self) -> str | None:
        """What to do if this version would make different sketches and so cannot write to it, else None."""
        return profiles.remedy(self.generation) if profiles.is_refused(self.generation) else None

    @property
    def state_label(self) -> str:
        """Its state in words."""
        return state_label(self.generation, attended=self.is_attended)


def read_status(connection: Connection, collection: str, profile: str | None) -> list[Status]:
    """Return the generations of a profile or of all profiles, oldest first. Raises NotFoundError."""
    collection_id = collection_rows.get_collection(connection, collection).collection_id
    generations = generation_rows.list_generations(connection, collection_id)
    names = {one.profile for one in generations}
    if profile is not None and profile not in names:
        existing = ", ".join(sorted(names)) or "none yet"
        raise NotFoundError(
            f"collection {collection!r} has no profile {profile!r}; existing profiles: {existing}"
        )
    live = {one.profile_id: one for one in generations if one.state == "live"}
    chosen = [one for one in generations if profile in (None, one.profile)]
    return [_status(connection, one, live.get(one.profile_id)) for one in chosen]


def _status(connection: Connection, generation: Generation, live: Generation | None) -> Status:
    waiting, set_aside = queue.count_work(connection, generation.leaves)
    if generation.state == "abandoned":
        waiting = set_aside = 0  # work that was in progress when it was abandoned
    attended = generation.state in PENDING and is_attended(connection, generation)
    is_detached_build = generation.state == "building" and generation.detached
    needs_worker = (is_detached_build or generation.state == "catching_up") and not attended
    waits_for_worker = needs_worker and not leases.count_responsive(connection)
    done, total = _count_done(connection, generation)
    percent, left = _estimate(connection, generation, live, done, total, waiting)
    continues = attended or generation.detached or generation.state in MAINTAINED
    if generation.state == "paused" or waits_for_worker or not continues:
        left = None
    return Status(
        generation,
        attended,
        waits_for_worker,
        done,
        total,
        percent,
        left,
        waiting,
        set_aside,
        partitions.read_bytes(connection, generation.leaves),
        _differences(generation, live),
    )


def _count_done(connection: Connection, generation: Generation) -> tuple[int | None, int | None]:
    """Count the documents that have completed the stage of a build, and all of them."""
    figures = generation.figures
    if generation.state not in ("building", "paused") or "began" not in figures:
        return None, None
    match generation.stage:
        case "bands":
            return figures.get("done"), figures.get("total")
        case "sign" | "pairs":
            slices = build_slices.read_progress(connection, generation.leaves, generation.stage)
            return (slices.done, slices.documents) if slices.slices else (None, None)
        case _:
            return None, None


def _estimate(
    connection: Connection,
    generation: Generation,
    live: Generation | None,
    done: int | None,
    total: int | None,
    waiting: int,
) -> tuple[float | None, float | None]:
    if generation.state in ("ready", "abandoned", "live", "retired"):
        return None, None
    began = generation.figures.get("began", {})
    documents = generation.figures.get("documents")
    if documents is None:
        documents = collection_rows.count_documents(connection, generation.collection_id)
    is_current = began.get("stage") == generation.stage
    elapsed = queue.server_time(connection).timestamp() - began["at"] if is_current else 0.0
    share = None if done is None or not total else min(done / total, 1.0)
    share_before = began.get("done", 0) / total if is_current and total else 0.0
    progress = StageProgress(generation.stage, documents, share, share_before, max(elapsed, 0.0), waiting)
    usual = seconds_by_stage(live.figures if live is not None else {})
    spent = generation.figures.get("seconds", {})
    return estimate(progress, usual, spent, generation.figures.get("work_per_second"))


def _differences(generation: Generation, live: Generation | None) -> dict[str, Any]:
    """Return the generation's values of the keys in which its recipe differs from the live one's."""
    if live is None or live.generation_id == generation.generation_id:
        return {}
    return {key: new for key, (_, new) in sorted(differing_keys(live.recipe, generation.recipe).items())}
