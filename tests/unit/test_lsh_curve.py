"""The S-curve against sums over all outcomes and against its own slope."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.lsh import approximate_steepest_point, curve, match_probability, steepest_point

similarities = st.fractions(0, 1, max_denominator=50)


@given(similarity=similarities, bands=st.integers(1, 8), rows=st.integers(1, 4), minimum=st.integers(1, 9))
def test_the_probability_is_the_sum_over_all_outcomes(
    similarity: Fraction, bands: int, rows: int, minimum: int
) -> None:
    shared = similarity**rows
    expected = sum(
        math.prod(shared if hit else 1 - shared for hit in outcome)
        for outcome in product((True, False), repeat=bands)
        if sum(outcome) >= minimum
    )
    assert match_probability(float(similarity), bands, rows, minimum) == pytest.approx(
        float(expected), abs=1e-12
    )


def test_small_probabilities_keep_their_digits() -> None:
    assert match_probability(0.001, 20, 10) == pytest.approx(20e-30, rel=1e-9)
    assert match_probability(0.01, 256, 3, 4) == pytest.approx(math.comb(256, 4) * 1e-24, rel=1e-3)


@given(bands=st.integers(2, 60), rows=st.integers(2, 12))
def test_the_curve_is_nowhere_steeper_than_at_its_steepest_point(bands: int, rows: int) -> None:
    def slope(similarity: float) -> float:
        return bands * rows * similarity ** (rows - 1) * (1 - similarity**rows) ** (bands - 1)

    steepest = slope(steepest_point(bands, rows))
    assert all(slope(step / 500) <= steepest * (1 + 1e-9) for step in range(501))


def test_the_approximation_comes_near_for_many_bands_and_rows() -> None:
    assert approximate_steepest_point(32, 4) == pytest.approx((1 / 32) ** (1 / 4))
    assert approximate_steepest_point(200, 20) == pytest.approx(steepest_point(200, 20), rel=0.01)


@pytest.mark.parametrize(("bands", "rows", "point"), [(1, 1, 1.0), (1, 7, 1.0), (9, 1, 0.0)])
def test_curves_without_a_bend_are_steepest_at_an_end(bands: int, rows: int, point: float) -> None:
    assert steepest_point(bands, rows) == point


def test_the_points_shown_lie_around_the_threshold_within_bounds() -> None:
    points = curve(32, 4, around=0.9)
    assert [similarity for similarity, _ in points] == [0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0]
    assert points[-1] == (1.0, 1.0)
    assert dict(points)[0.7] == pytest.approx(1 - (1 - 0.7**4) ** 32)
    assert dict(curve(40, 3, 3, 0.5))[0.5] == match_probability(0.5, 40, 3, 3)


@pytest.mark.parametrize(
    ("similarity", "bands", "rows", "minimum", "reason"),
    [
        (1.5, 4, 4, 1, "similarity of 1.5"),
        (-0.1, 4, 4, 1, "similarity of -0.1"),
        (0.5, 0, 4, 1, "0 bands"),
        (0.5, 4, 0, 1, "0 rows"),
        (0.5, 4, 4, 0, "minimum of 0"),
    ],
)
def test_what_cannot_be_is_refused(
    similarity: float, bands: int, rows: int, minimum: int, reason: str
) -> None:
    with pytest.raises(RecipeError, match=reason):
        match_probability(similarity, bands, rows, minimum)
