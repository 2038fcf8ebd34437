"""Progress of the generations of a collection, and the remaining time of a build by the speed of its stages so far."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nearsim_db.indexing import profiles
from nearsim_db.search.live_generation import list_of_collection, refuse_profile
from nearsim_db.similarity.recipe.conversion import differing_keys
from nearsim_db.store.access import collection_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.generations.generation_states import (
    MAINTAINED,
    PENDING,
    is_attended,
    is_unattended,
    state_label,
)
from nearsim_db.store.work import leases, queue

STAGES = ("sign", "bands", "pairs", "clusters")
# Seconds per document with the default recipe, measured on 6,000 Reuters stories on a busy machine. Only their
# proportions matter: the speed is that of the current build.
_SECONDS = {"sign": 0.0007, "bands": 0.0011, "pairs": 0.0005, "clusters": 0.0001}
_WORK_PER_SECOND = 1_000.0  # assumed until measured
_LEAST_DOCUMENTS = 1_000  # of a build whose seconds are meaningful
_REPORT_SECONDS = 2.0
_ALMOST_DONE = 0.95


@dataclass(frozen=True, slots=True)
class StageProgress:
    """Progress of a build: its documents, the share of its stage that is done (None if unknown), the seconds since that
    stage was started or resumed, the share done before that, and the work queued for after the build."""

    stage: str
    documents: int
    share: float | None
    share_before: float
    elapsed_seconds: float
    queued: int


def seconds_by_stage(live: Mapping[str, Any]) -> dict[str, float]:
    """Return seconds per document of each stage from the figures of a built generation, or defaults without them."""
    documents, seconds = live.get("documents", 0), live.get("seconds", {})
    if documents < _LEAST_DOCUMENTS or any(stage not in seconds for stage in STAGES):
        return _SECONDS
    return {stage: seconds[stage] / documents for stage in STAGES}


def estimate(
    progress: StageProgress,
    usual: Mapping[str, float],
    spent: Mapping[str, float],
    work_per_second: float | None,
) -> tuple[float, float]:
    """Return (percent done, seconds left) of a build and of what is queued for it.

    `usual` has seconds per document of each stage, `spent` the seconds of the stages that this build has completed.
    """
    expected = {stage: max(usual[stage] * progress.documents, 1e-3) for stage in STAGES}
    queue = progress.queued / (work_per_second or _WORK_PER_SECOND)
    if progress.stage not in STAGES:
        whole = sum(expected.values())
        return 100 * whole / (whole + queue), queue
    at = STAGES.index(progress.stage)
    completed = [stage for stage in STAGES[:at] if stage in spent]
    slowdown = (
        sum(spent[one] for one in completed) / sum(expected[one] for one in completed) if completed else 1.0
    )
    share, seconds = _current_stage(progress, expected[progress.stage] * slowdown)
    before = sum(expected[stage] for stage in STAGES[:at]) * slowdown
    after = sum(expected[stage] for stage in STAGES[at + 1 :]) * slowdown + queue
    done, left = before + seconds * share, seconds * (1 - share) + after
    return 100 * done / (done + left), left


def _current_stage(progress: StageProgress, expected_seconds: float) -> tuple[float, float]:
    """Return the share of the current stage that is done, and the seconds that the whole stage takes."""
    share = progress.share
    if share is None:
        return min(progress.elapsed_seconds / expected_seconds, _ALMOST_DONE), expected_seconds
    if progress.elapsed_seconds and share > progress.share_before:
        # Its own speed predicts better than that of earlier stages.
        return share, progress.elapsed_seconds / (share - progress.share_before)
    return share, expected_seconds


class WorkRate:
    """Measures how fast queued work is done."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._reported_at = clock()
        self._done: dict[str, int] = {}

    def measure(self, step: str, done: int) -> float | None:
        """Record what is done of a step; return work per second since the start every two seconds, else None."""
        self._done[step] = done
        now = self._clock()
        if now - self._reported_at < _REPORT_SECONDS:
            return None
        self._reported_at = now
        return round(sum(self._done.values()) / (now - self._began), 1)


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
    generations = list_of_collection(connection, collection)
    if profile is not None and all(one.profile != profile for one in generations):
        refuse_profile(collection, profile, generations)
    live = {one.profile_id: one for one in generations if one.state == "live"}
    chosen = [one for one in generations if profile in (None, one.profile)]
    return [_status(connection, one, live.get(one.profile_id)) for one in chosen]


def _status(connection: Connection, generation: Generation, live: Generation | None) -> Status:
    tables = generation.tables(connection)
    waiting, set_aside = tables.work.count()
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
        tables.read_bytes(),
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
            slices = generation.tables(connection).slices.read_progress(generation.stage)
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
