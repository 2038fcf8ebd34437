"""The S-curve against sums over all outcomes and against its own slope."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.amplification import and_, at_least, or_, parse
from nearsim_db.similarity.lsh import (
    Bin,
    approximate_steepest_point,
    error_areas,
    fixed_point,
    match_probability,
    steepest,
    steepest_point,
)

similarities = st.fractions(0, 1, max_denominator=50)


@given(similarity=similarities, bands=st.integers(1, 8), rows=st.integers(1, 4), minimum=st.integers(1, 9))
def test_probability_is_the_sum_over_all_outcomes(
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


@given(bands=st.integers(2, 60), rows=st.integers(2, 12))
def test_steepest_point_has_the_largest_slope(bands: int, rows: int) -> None:
    def slope(similarity: float) -> float:
        return bands * rows * similarity ** (rows - 1) * (1 - similarity**rows) ** (bands - 1)

    steepest = slope(steepest_point(bands, rows))
    assert all(slope(step / 500) <= steepest * (1 + 1e-9) for step in range(501))


@pytest.mark.parametrize(
    ("similarity", "bands", "rows", "minimum"),
    [(1.5, 4, 4, 1), (-0.1, 4, 4, 1), (0.5, 0, 4, 1), (0.5, 4, 0, 1), (0.5, 4, 4, 0)],
)
def test_invalid_arguments_are_refused(similarity: float, bands: int, rows: int, minimum: int) -> None:
    with pytest.raises(RecipeError):
        match_probability(similarity, bands, rows, minimum)


@pytest.mark.parametrize(("bands", "rows"), [(20, 5), (32, 4), (5, 10), (25, 2), (200, 8)])
def test_steepest_point_is_found_numerically(bands: int, rows: int) -> None:
    found = steepest(or_(bands, and_(rows)).probability)
    assert found == pytest.approx(steepest_point(bands, rows), abs=1e-3)


def test_curves_that_are_steepest_at_an_end() -> None:
    assert [steepest_point(1, 1), steepest_point(1, 7), steepest_point(9, 1)] == [1, 1, 0]
    assert approximate_steepest_point(32, 4) == pytest.approx((1 / 32) ** (1 / 4))
    assert steepest(or_(9).probability) == pytest.approx(0, abs=1e-4)
    assert steepest(and_(9).probability) == pytest.approx(1, abs=1e-4)
    assert steepest(lambda cosine: 1 - math.acos(cosine) / math.pi, -1, 1) in (
        pytest.approx(-1, abs=1e-3),
        pytest.approx(1, abs=1e-3),
    )


TEXTS = [
    "or(4, and(4))",
    "and(4, or(4))",
    "at_least(3, 40, and(3))",
    "or(4, and(4, or(4, and(4))))",
    "or(1000, and(2))",
]


@pytest.mark.parametrize("text", TEXTS)
def test_probabilities_fall_below_a_fixed_point_and_rise_above(text: str) -> None:
    construction = parse(text)
    point = fixed_point(construction)
    assert point is not None and construction.probability(point) == pytest.approx(point, abs=1e-12)
    for step in range(1, 200):
        below, above = point * step / 200, point + (1 - point) * step / 200
        assert construction.probability(below) < below
        assert construction.probability(above) > above or construction.probability(above) == 1


@pytest.mark.parametrize(
    "text", ["and(4)", "or(4)", "or(1, and(1))", "at_least(1, 5)", "and(3, and(2))", "or(2, or(3))"]
)
def test_single_functions_have_no_fixed_point(text: str) -> None:
    assert fixed_point(parse(text)) is None


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("threshold", [0.0, 0.35, 0.6, 1.0])
def test_areas_are_integrals(text: str, threshold: float) -> None:
    probability = parse(text).probability
    found = error_areas(probability, threshold)
    below, _ = quad(probability, 0, threshold, limit=200)
    above, _ = quad(lambda similarity: 1 - probability(similarity), threshold, 1, limit=200)
    assert found.false_positives == pytest.approx(below, abs=1e-7)
    assert found.false_negatives == pytest.approx(above, abs=1e-7)


def test_areas_of_a_histogram_count_pairs() -> None:
    probability = at_least(2, 10, and_(3)).probability
    bins = [Bin(0.0, 0.2, 900), Bin(0.2, 0.5, 60), Bin(0.5, 0.7, 10), Bin(0.7, 1.0, 30)]
    found = error_areas(probability, 0.6, bins)
    below = sum(
        weight / (high - low) * quad(probability, low, min(high, 0.6))[0]
        for low, high, weight in ((0.0, 0.2, 900), (0.2, 0.5, 60), (0.5, 0.7, 10))
    )
    above = 10 / 0.2 * (0.1 - quad(probability, 0.6, 0.7)[0]) + 30 / 0.3 * (
        0.3 - quad(probability, 0.7, 1)[0]
    )
    assert found.false_positives == pytest.approx(below, rel=1e-6)
    assert found.false_negatives == pytest.approx(above, rel=1e-6)
    # A histogram of one bin of weight 1 is none.
    assert error_areas(probability, 0.6, [Bin(0, 1, 1)]) == error_areas(probability, 0.6)
