"""Exact similarity against Python's own sets and fractions."""

import importlib.util
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.similarity import metrics
from tests.builders.selection import examples

NEEDS_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
every_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=NEEDS_NUMBA)])

# Few different ids, so that sets overlap, and the ends of the range.
some_ids = st.sets(st.one_of(st.integers(0, 20), st.integers(2**64 - 5, 2**64 - 1)), max_size=15)


def sorted_ids(ids: set[int]) -> NDArray[np.uint64]:
    return np.array(sorted(ids), np.uint64)


@every_backend
@examples(60)
@given(data=st.data())
def test_intersections_of_a_batch_equal_python_sets(backend: str, data: st.DataObject) -> None:
    sets = data.draw(st.lists(some_ids, min_size=1, max_size=6))
    row = st.integers(0, len(sets) - 1)
    pairs = data.draw(st.lists(st.tuples(row, row), max_size=12))
    ids = np.concatenate([sorted_ids(one) for one in sets])
    offsets = np.cumsum([0] + [len(one) for one in sets], dtype=np.int64)
    left = np.array([pair[0] for pair in pairs], np.int64)
    right = np.array([pair[1] for pair in pairs], np.int64)
    counted = metrics.intersections(ids, offsets, left, right, backend)
    assert counted.dtype == np.int64
    assert counted.tolist() == [len(sets[one] & sets[other]) for one, other in pairs]


@every_backend
def test_a_document_with_many_partners(backend: str) -> None:
    sets = [set(range(start, start + start % 7)) for start in range(700)]
    ids = np.concatenate([sorted_ids(one) for one in sets])
    offsets = np.cumsum([0] + [len(one) for one in sets], dtype=np.int64)
    left, right = np.full(700, 13, np.int64), np.arange(700, dtype=np.int64)
    expected = [len(sets[13] & one) for one in sets]
    assert metrics.intersections(ids, offsets, left, right, backend).tolist() == expected


@given(
    intersection=st.integers(0, 10**6),
    rest=st.integers(0, 10**6),
    threshold=st.decimals("0.01", "1", allow_nan=False, places=17),
)
def test_a_threshold_is_decided_on_integers(intersection: int, rest: int, threshold: object) -> None:
    union = intersection + rest
    exact = Fraction(str(threshold))
    expected = union > 0 and Fraction(intersection, union or 1) >= exact
    for given_as in (str(threshold), exact):
        several = metrics.reach_mask(np.array([intersection, 0]), np.array([union, 0]), given_as)
        assert several.tolist() == [expected, False]


def test_a_decimal_threshold_is_reached_exactly() -> None:
    for tenths in range(1, 11):
        threshold = tenths / 10
        intersections, unions = np.array([tenths * 7, tenths * 10**15 - 1]), np.array([70, 10**16])
        assert metrics.reach_mask(intersections, unions, threshold).tolist() == [True, False]
    # In binary 0.7 * 10 is below 7 and 0.55 * 100 above 55: floating point would need luck.
    intersections, unions = np.array([7, 69, 55]), np.array([10, 100, 100])
    assert metrics.reach_mask(intersections, unions, 0.7).tolist() == [True, False, False]
    assert metrics.reach_mask(intersections, unions, 0.55).tolist() == [True, True, True]


def test_empty_batch_is_empty() -> None:
    nothing = np.zeros(0, np.int64)
    assert metrics.reach_mask(nothing, nothing, 0.7).tolist() == []
