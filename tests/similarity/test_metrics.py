"""Exact similarity against Python's own sets and fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.similarity import metrics
from tests.builders.selection import every_backend


def sorted_ids(ids: set[int]) -> NDArray[np.uint64]:
    return np.array(sorted(ids), np.uint64)


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
