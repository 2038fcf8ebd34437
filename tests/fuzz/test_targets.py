"""Fuzzing: a short run of each target with a fixed seed, and findings that are reported."""

import random
import time
from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from tests.builders.selection import NEEDS_NUMBA
from tests.fuzz.contract import Target, Texts
from tests.fuzz.loop import run
from tests.fuzz.targets import TARGETS

INPUTS = {
    "parquet": 40, "compressed": 100, "recipe": 150, "setting": 150, "sketches": 1_000, "json-lines": 1_000
}  # fmt: skip
PURE = [
    pytest.param(name, marks=NEEDS_NUMBA if name in ("shingles", "sketches") else ())
    for name in TARGETS
    if name != "attach"
]


def check(name: str, inputs: int) -> None:
    done = run(TARGETS[name], inputs, seed=7, until=time.monotonic() + 3_600)
    assert done.findings == []
    assert done.inputs == inputs


@pytest.mark.parametrize("name", PURE)
def test_short_run_finds_nothing(name: str) -> None:
    check(name, INPUTS.get(name, 2_000))


@pytest.mark.slow("a hundred times as many inputs")
@pytest.mark.parametrize("name", PURE)
def test_long_run_finds_nothing(name: str) -> None:
    check(name, 100 * INPUTS.get(name, 2_000))


@pytest.mark.slow("a server of its own")
def test_attaching_random_tables_finds_nothing() -> None:
    check("attach", 100)


def test_failing_inputs_are_found() -> None:
    def refuse_percent(texts: Sequence[str], rng: random.Random) -> None:
        assert not any("%" in text for text in texts)

    target = Target(Texts(["seed"], ["a", "b", "%"]), lambda: nullcontext(refuse_percent), 10)
    found = run(target, 100, seed=1, until=time.monotonic() + 60).findings
    assert found and all("%" in one.given and "AssertionError" in one.problem for one in found)
