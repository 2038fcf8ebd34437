"""Parameters and examples of which `make test` runs some and `make test-all` runs all; the back ends."""

import importlib.util
from collections.abc import Sequence
from itertools import product

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

NEEDS_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
every_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=NEEDS_NUMBA)])


def some(values: Sequence[object], reason: str, kept: int = 1) -> list[ParameterSet]:
    """Values of one parameter, or tuples of several parameters' values; all but the first are marked slow."""
    slow = pytest.mark.slow(reason)
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=[slow] if at >= kept else []) for at, row in enumerate(rows)]


def some_combinations(*axes: tuple[str, Sequence[object]]) -> pytest.MarkDecorator:
    """All combinations of several parameters' values; those not needed to use each value once are marked slow."""
    names, values = zip(*axes, strict=True)
    rows = range(max(map(len, values)))
    diagonal = {tuple(row % len(axis) for axis in values) for row in rows}
    slow = pytest.mark.slow("every combination")
    sets = []
    for places in product(*(range(len(axis)) for axis in values)):
        row = [axis[place] for place, axis in zip(places, values, strict=True)]
        sets.append(pytest.param(*row, marks=[] if places in diagonal else [slow]))
    return pytest.mark.parametrize(names, sets)


def examples(count: int) -> settings:
    """The number of Hypothesis's examples of a test in `make test-all`; `make test` runs the profile's share of it."""
    return settings(max_examples=count * settings().max_examples // 100)
