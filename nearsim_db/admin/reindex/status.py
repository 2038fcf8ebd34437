"""The progress of a collection's generations, and the remaining time of a build, estimated from its stages so far."""

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
# Measured with the default recipe on 6,000 Reuters stories on a busy machine. Only their proportions matter: the speed
# of the current build scales them.
_SECONDS_PER_DOCUMENT = {"sign": 0.0007, "bands": 0.0011, "pairs": 0.0005, "clusters": 0.0001}
# This rate is assumed until a rate is measured.
_WORK_PER_SECOND = 1_000.0
# The duration of a smaller build says little about its speed.
_MIN_TIMED_DOCUMENTS = 1_000
_REPORT_SECONDS = 2.0
# If the progress of a stage is unknown, it is never shown as complete.
_MAX_GUESSED_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class StageProgress:
    """The progress of a build."""

    stage: str
    documents: int  # number of documents of the whole build
    share: float | None  # fraction of the stage that is done, None if unknown
    share_before: float  # fraction that was done when the stage was started or resumed
    elapsed_seconds: float  # time since the stage was started or resumed
    queued: int  # amount of work to be done after the build


def seconds_by_stage(live: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds per document that each stage took, from the figures of the live generation.

    If there are no such figures, or too few documents, the defaults are returned.
    """
    documents, seconds = live.get("documents", 0), live.get("seconds", {})
    if documents < _MIN_TIMED_DOCUMENTS or any(stage not in seconds for stage in STAGES):
        return _SECONDS_PER_DOCUMENT
    return {stage: seconds[stage] / documents for stage in STAGES}


def estimate(
    progress: StageProgress,
    usual: Mapping[str, float],
    spent: Mapping[str, float],
    work_per_second: float | None,
) -> tuple[float, float]:
    """Return the percentage done and the seconds left of a build, including the work that is queued for it.

    `usual` has the expected seconds per document of each stage, `spent` the seconds that this build's stages have
    taken, and `work_per_second` the measured speed of queued work, None if it was not measured.
    """
    expected = {stage: max(usual[stage] * progress.documents, 1e-3) for stage in STAGES}
    queue_seconds = progress.queued / (work_per_second or _WORK_PER_SECOND)
    if progress.stage not in STAGES:
        build_seconds = sum(expected.values())
        return 100 * build_seconds / (build_seconds + queue_seconds), queue_seconds

    # Completed stages show how much slower than expected this build is.
    at = STAGES.index(progress.stage)
    completed = [stage for stage in STAGES[:at] if stage in spent]
    slowdown = 1.0
    if completed:
        slowdown = sum(spent[stage] for stage in completed) / sum(expected[stage] for stage in completed)

    share, seconds = _current_stage(progress, expected[progress.stage] * slowdown)
    before = sum(expected[stage] for stage in STAGES[:at]) * slowdown
    after = sum(expected[stage] for stage in STAGES[at + 1 :]) * slowdown + queue_seconds
    done, left = before + seconds * share, seconds * (1 - share) + after
    return 100 * done / (done + left), left


def _current_stage(progress: StageProgress, expected_seconds: float) -> tuple[float, float]:
    """Return the fraction of the current stage that is done, and the estimated seconds of the whole stage."""
    share = progress.share
    if share is None:
        return min(progress.elapsed_seconds / expected_seconds, _MAX_GUESSED_SHARE), expected_seconds
    if progress.elapsed_seconds and share > progress.share_before:
        # The speed of the current stage predicts better than the speed of earlier stages.
        return share, progress.elapsed_seconds / (share - progress.share_before)
    return share, expected_seconds


class WorkRate:
    """Measures how fast queued work is done."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._reported_at = clock()
        self._done: dict[str, int] = {}

    def measure(self, step: str, done: int) -> float | None:
        """Record the amount of work done in a step. Every two seconds, return the work per second since the start.

        Returns None in between.
        """
        self._done[step] = done
        now = self._clock()
        if now - self._reported_at < _REPORT_SECONDS:
            return None
        self._reported_at = now
        return round(sum(self._done.values()) / (now - self._began), 1)


@dataclass(frozen=True, slots=True)
class Status:
    """A generation and its progress.

    A build that is neither attended nor detached was left behind by a process that ended.
    """

    generation: Generation
    is_attended: bool  # whether a process is building the generation now
    waits_for_worker: bool  # whether only a worker can continue, and no worker is running
    done: int | None  # number of documents that have completed the stage, None if unknown
    total: int | None  # number of documents that have to complete the stage, None if unknown
    percent: float | None  # percentage done of the whole build and the queue
    seconds_left: float | None  # None if no process will continue
    waiting: int  # amount of work queued for the generation
    set_aside: int  # amount of work that failed for good
    bytes: int  # size of the generation
    differs: Mapping[str, Any]  # recipe keys whose values differ from the live generation, such as shingle.k

    @property
    def is_left_behind(self) -> bool:
        """Whether the building process died, so that a person has to resume or abandon the build."""
        return is_unattended(self.generation, attended=self.is_attended)

    @property
    def remedy_where_refused(self) -> str | None:
        """What to do if this version cannot write to the generation, because its sketches would differ; else None."""
        return profiles.remedy(self.generation) if profiles.is_refused(self.generation) else None

    @property
    def state_label(self) -> str:
        """The state of the generation in words."""
        return state_label(self.generation, attended=self.is_attended)


def read_status(connection: Connection, collection: str, profile: str | None) -> list[Status]:
    """Return the status of the generations of a profile, or of all profiles, the oldest first.

    Raises NotFoundError if there is no such collection or profile.
    """
    generations = list_of_collection(connection, collection)
    if profile is not None and all(generation.profile != profile for generation in generations):
        refuse_profile(collection, profile, generations)

    live = {generation.profile_id: generation for generation in generations if generation.state == "live"}
    return [
        _status(connection, generation, live.get(generation.profile_id))
        for generation in generations
        if profile in (None, generation.profile)
    ]


def _status(connection: Connection, generation: Generation, live: Generation | None) -> Status:
    tables = generation.tables(connection)
    waiting, set_aside = tables.work.count()
    if generation.state == "abandoned":
        # The work of an abandoned generation is never done.
        waiting = set_aside = 0

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
    """Return the number of documents that have completed the stage of a build, and of all that have to."""
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

    # `began` records when a stage was last started or resumed, and how many documents were done by then.
    is_current = began.get("stage") == generation.stage
    elapsed = queue.server_time(connection).timestamp() - began["at"] if is_current else 0.0
    share = None if done is None or not total else min(done / total, 1.0)
    share_before = began.get("done", 0) / total if is_current and total else 0.0
    progress = StageProgress(generation.stage, documents, share, share_before, max(elapsed, 0.0), waiting)
    usual = seconds_by_stage(live.figures if live is not None else {})
    spent = generation.figures.get("seconds", {})
    return estimate(progress, usual, spent, generation.figures.get("work_per_second"))


def _differences(generation: Generation, live: Generation | None) -> dict[str, Any]:
    """Return the recipe keys whose values differ from the live generation, with this generation's values."""
    if live is None or live.generation_id == generation.generation_id:
        return {}
    return {key: new for key, (_, new) in sorted(differing_keys(live.recipe, generation.recipe).items())}
