"""Parameters of which `make test` runs some and `make test-all` runs all."""

from collections.abc import Sequence
from itertools import product

import pytest
from _pytest.mark import ParameterSet


def some(values: Sequence[object], reason: str, kept: int = 1) -> list[ParameterSet]:
    """The first values as they are, the rest marked slow."""
    slow = pytest.mark.slow(reason)
    return [pytest.param(value, marks=[slow] if at >= kept else []) for at, value in enumerate(values)]


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
