"""How long a build takes: what is left of it, from what its stages took so far, or took of the live generation."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

STAGES = ("sign", "bands", "pairs", "clusters")
# Seconds a document, of the default recipe on 6,000 Reuters stories and a busy machine: their proportions count, as the
# pace is that of the build at hand.
_SECONDS = {"sign": 0.0007, "bands": 0.0011, "pairs": 0.0005, "clusters": 0.0001}
_WORK_PER_SECOND = 1_000.0  # taken for granted until it was measured
_FEWEST = 1_000  # documents of a build of which the seconds tell something
_NOTED_SECONDS = 2.0
_ALMOST = 0.95


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a build is: documents it is of, the share of its stage that is done (None where that is not known), for how
    many seconds it has been at it and which share was done before, and what is queued for after the build."""

    stage: str
    documents: int
    share: float | None
    share_before: float
    elapsed_seconds: float
    waiting: int


def seconds_by_stage(live: Mapping[str, Any]) -> dict[str, float]:
    """Seconds a document of each stage, by the figures of a generation that was built, as far as these tell."""
    documents, spent = live.get("documents", 0), live.get("seconds", {})
    if documents < _FEWEST or any(stage not in spent for stage in STAGES):
        return _SECONDS
    return {stage: spent[stage] / documents for stage in STAGES}


def estimate(
    standing: Standing, usual: Mapping[str, float], spent: Mapping[str, float], work_per_second: float | None
) -> tuple[float, float]:
    """(percent done, seconds left) of a build and of what is queued for it.

    `usual` are seconds a document of each stage; the stages that this build is through `spent` theirs.
    """
    expected = {stage: max(usual[stage] * standing.documents, 1e-3) for stage in STAGES}
    queue = standing.waiting / (work_per_second or _WORK_PER_SECOND)
    if standing.stage not in STAGES:
        whole = sum(expected.values())
        return 100 * whole / (whole + queue), queue
    at = STAGES.index(standing.stage)
    through = [stage for stage in STAGES[:at] if stage in spent]
    pace = sum(spent[one] for one in through) / sum(expected[one] for one in through) if through else 1.0
    here = expected[standing.stage] * pace
    share = standing.share
    if share is None:
        share = min(standing.elapsed_seconds / here, _ALMOST)
    elif standing.elapsed_seconds and share > standing.share_before:
        # Its own speed is worth more than that of the stages before.
        here = standing.elapsed_seconds / (share - standing.share_before)
    before = sum(expected[stage] for stage in STAGES[:at]) * pace
    later = sum(expected[stage] for stage in STAGES[at + 1 :]) * pace + queue
    done, left = before + here * share, here * (1 - share) + later
    return 100 * done / (done + left), left


class Pace:
    """How fast queued work is done, told now and then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._noted_at = clock()
        self._done: dict[str, int] = {}

    def after(self, step: str, done: int) -> float | None:
        """Work a second since the beginning, once in a while; else None."""
        self._done[step] = done
        now = self._clock()
        if now - self._noted_at < _NOTED_SECONDS:
            return None
        self._noted_at = now
        return round(sum(self._done.values()) / (now - self._began), 1)
