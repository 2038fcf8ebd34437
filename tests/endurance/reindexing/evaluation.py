"""The results of a run: answers that no generation explains, latencies of searches and writes, and lock waits."""

import bisect
import math
import re
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.speed import percentiles
from tests.endurance.reindexing.scenario import QUICK_TURNS, Load, Seen, Step
from tests.endurance.reindexing.searching import Search
from tests.endurance.reindexing.watching import Held

_TURNS = {"promote": "after", "rollback": "before", "promote again": "after"} | {
    f"turn {number}": "after" if number % 2 == 0 else "before" for number in range(1, QUICK_TURNS + 1)
}
_OF_ONE_GENERATION = re.compile(r"_\d+(_|$)")
_WRITES_ALLOWED = "ShareUpdateExclusiveLock"


def wrong_answers(steps: Sequence[Step], searches: Iterable[Search]) -> list[str]:
    """Return answers that are not entirely those of a generation that was live at some time during the search."""
    turns = [(one.began, one.ended, _TURNS[one.name]) for one in steps if one.name in _TURNS]
    begins = [(-math.inf, "before"), *((began, which) for began, _, which in turns)]
    ends = [*(ended for _, ended, _ in turns), math.inf]
    return [
        f"{one.kind}: {one.answer}, between {one.began:.3f} and {one.ended:.3f}"
        for one in searches
        if not any(
            one.answer == which and one.began <= end and one.ended >= begin
            for (begin, which), end in zip(begins, ends, strict=True)
        )
    ]


def by_step(steps: Sequence[Step], spans: Iterable[tuple[float, float]]) -> dict[str, list[float]]:
    """Return milliseconds of operations by step; one that spans several steps counts in each."""
    found: dict[str, list[float]] = {one.name: [] for one in steps}
    begins = [one.began for one in steps]
    for began, ended in spans:
        for place in range(max(0, bisect.bisect(begins, began) - 1), len(steps)):
            if steps[place].began > ended:
                break
            if steps[place].ended >= began:
                found[steps[place].name].append(1_000 * (ended - began))
    return found


def latencies(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return percentiles, counts, and the ratio of the slowest to the median."""
    if not milliseconds:
        return {"count": 0}
    results = percentiles(milliseconds)
    return {"count": len(milliseconds), **results, "max / median": round(results["max"] / results["p50"], 1)}


def longest_held(held: Iterable[Held]) -> dict[str, float]:
    """Return milliseconds for which locks stronger than ROW EXCLUSIVE were observed, by table and mode.

    Only for tables shared by all generations: those of one being built or dropped have no readers.
    """
    longest: Counter[str] = Counter()
    for one in held:
        if not _OF_ONE_GENERATION.search(one.table):
            name = f"{one.table}, {one.mode}"
            longest[name] = max(longest[name], round(1_000 * (one.last - one.first)))
    return dict(longest)


def longest_blocking(held: Iterable[Held]) -> float:
    """Return milliseconds for which a lock that blocks writes was observed on a shared table."""
    return max(longest_held(one for one in held if one.mode != _WRITES_ALLOWED).values(), default=0.0)


def figures(seen: Seen, load: Load) -> dict[str, Any]:
    """Return all figures, in milliseconds unless named otherwise."""
    steps, writes = seen.steps, [(began, ended) for began, ended, refused in seen.writes if not refused]
    span = steps[-1].ended - steps[0].began
    within = sum(steps[0].began <= began <= steps[-1].ended for began, _ in writes)
    kinds = sorted({one.kind for one in seen.searches})
    return {
        "seconds": {one.name: round(one.ended - one.began, 2) for one in steps},
        "writes/s": round(within / span, 1),
        "searches/s": round(len(seen.searches) / span, 1),
        "searches": latencies([1_000 * (one.ended - one.began) for one in seen.searches]),
        "searches by kind": {
            kind: latencies([1_000 * (one.ended - one.began) for one in seen.searches if one.kind == kind])
            for kind in kinds
        },
        "writes": latencies([1_000 * (ended - began) for began, ended in writes]),
        "locks of each try to promote": {
            one.name: [round(1_000 * seconds, 1) for seconds in one.held]
            for one in steps
            if one.name in _TURNS
        },
        f"writes that would have waited more than {load.most_waited_ms} ms": dict(refused_by_step(seen)),
        "locks on shared tables, longest": longest_held(seen.watched.held),
        "sampler": {"looks": seen.watched.looks, "longest gap": round(1_000 * seen.watched.gap_seconds, 1)},
    }


def refused_by_step(seen: Seen) -> Counter[str]:
    """Count the writes refused in each step because they would have waited too long for a lock."""
    spans = ((began, ended) for began, ended, refused in seen.writes if refused)
    return Counter({name: len(each) for name, each in by_step(seen.steps, spans).items() if each})


def violations(seen: Seen) -> dict[str, object]:
    """Return the violations observed during the run."""
    wrong = wrong_answers(seen.steps, seen.searches)
    found: dict[str, object] = {"answers that no live generation explains": wrong} if wrong else {}
    # A worker that was started a moment before, for a killed one, does not handle signals yet, nor has it taken work.
    if not set(seen.exit_codes) <= {0, -signal.SIGTERM}:
        found["exit codes of workers"] = seen.exit_codes
    return found
