"""Progress and remaining time of a build, from what its stages took so far, or took in the live generation."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
