"""The loop: draw, check, count, and reduce a failed batch to the inputs that fail alone."""

import random
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.contract import Check, Target

SLOW_SECONDS = 1.0  # of processor time, for inputs of less than a megabyte
_FINDINGS_KEPT = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that fails alone or with its batch, and how."""

    given: str
    problem: str


@dataclass(slots=True)
class Run:
    """What was done: inputs checked, processor seconds, the longest batch, and what was found."""

    inputs: int = 0
    seconds: float = 0.0
    slowest_batch: float = 0.0
    findings: list[Finding] = field(default_factory=list)


def run(
    target: Target, inputs: int, seed: int, until: float, report: Callable[[Run], None] = lambda run: None
) -> Run:
    """Check this many inputs, fewer if `time.monotonic()` passes `until` or many findings accumulate."""
    done, number = Run(), 0
    drawing = random.Random(seed)
    with target.open() as check:
        while done.inputs < inputs and time.monotonic() < until and len(done.findings) < _FINDINGS_KEPT:
            batch = target.draw(drawing, min(target.batch, inputs - done.inputs))
            state = f"{seed}:{number}"
            seconds, problem = _attempt(check, batch, state)
            if problem is not None:
                done.findings += _isolated(check, batch, state, problem)
            done.inputs += len(batch)
            done.seconds += seconds
            done.slowest_batch = max(done.slowest_batch, seconds)
            number += 1
            report(done)
    return done


def _attempt(check: Check, batch: Sequence[Any], state: str) -> tuple[float, str | None]:
    begin = time.process_time()
    problem = None
    try:
        check(batch, random.Random(state))
    except Exception:
        problem = traceback.format_exc()
    seconds = time.process_time() - begin
    if problem is None and seconds > SLOW_SECONDS:
        problem = f"took {seconds:.1f} s"
    return seconds, problem


def _isolated(check: Check, batch: Sequence[Any], state: str, problem: str) -> list[Finding]:
    """Return the inputs of a failed batch that fail alone, else the batch; none if only its sum was slow."""
    alone = [
        Finding(repr(one), found) for one in batch if (found := _attempt(check, [one], state)[1]) is not None
    ]
    if not alone and not problem.startswith("took"):
        return [Finding(repr(list(batch)), f"only together (state {state}): {problem}")]
    return alone[:3]
