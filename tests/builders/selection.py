"""Selection of parameters and examples: `make test` runs some of them, `make test-all` runs all."""

import importlib.util
from collections.abc import Sequence
from itertools import product

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

NEEDS_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
every_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=NEEDS_NUMBA)])


def some(values: Sequence[object], reason: str, kept: int = 1) -> list[ParameterSet]:
    """Mark all values of a parameter as slow except the first `kept`. A tuple has the values of several parameters."""
    slow = pytest.mark.slow(reason)
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=[slow] if at >= kept else []) for at, row in enumerate(rows)]


def some_combinations(*axes: tuple[str, Sequence[object]]) -> pytest.MarkDecorator:
    """Combine the values of several parameters. Combinations that are not needed to use each value once are slow."""
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
    """Set the number of examples that Hypothesis tries in `make test-all`. `make test` tries a fraction of them."""
    return settings(max_examples=count * settings().max_examples // 100)
