"""On which majors a test runs that does not run on each."""

from collections.abc import Sequence
from itertools import product

import pytest

from tests.servers import server_binaries

MAJORS = sorted({binaries.major for binaries in server_binaries()}, reverse=True)

# What is decided in Python, by statements that other tests run on each major.
on_newest = pytest.mark.parametrize("database_url", MAJORS[:1], indirect=True, ids="pg{}".format)


def in_turn(*axes: tuple[str, Sequence[object]], on: str = "database_url") -> pytest.MarkDecorator:
    """All combinations of some arguments' values, each on one major, such that each value meets every major.

    An axis is what `pytest.mark.parametrize` takes: names, and values or tuples of them. `on` is the fixture
    that takes a major.
    """
    names = [name.strip() for axis, _ in axes for name in axis.split(",")]
    rows = []
    for places in product(*(range(len(values)) for _, values in axes)):
        chosen = [values[place] for place, (_, values) in zip(places, axes, strict=True)]
        row = [one for value in chosen for one in (value if isinstance(value, tuple) else (value,))]
        rows.append((*row, MAJORS[sum(places) % len(MAJORS)]))
    return pytest.mark.parametrize([*names, on], rows, indirect=[on])
