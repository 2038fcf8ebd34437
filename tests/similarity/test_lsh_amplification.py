"""The algebra of amplification against all outcomes, against scipy's tail and against the banding curve."""

import math
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.amplification import Amplification, and_, at_least, banding, or_
from nearsim_db.similarity.lsh import match_probability

SMALL = [
    and_(3),
    or_(4),
    at_least(2, 4),
    or_(3, and_(2)),
    and_(2, or_(4)),
    at_least(2, 3, and_(2)),
    at_least(2, 3, or_(3)),
    or_(2, and_(2, or_(2))),
    and_(2, at_least(2, 3, or_(2))),
]


def agree(construction: Amplification, functions: list[bool]) -> bool:
    """Whether a construction matches, given which of its functions match."""
    size = construction.inner.functions if construction.inner else 1
    groups = [functions[at : at + size] for at in range(0, len(functions), size)]
    votes = [agree(construction.inner, group) if construction.inner else group[0] for group in groups]
    match construction.kind:
        case "and":
            return all(votes)
        case "or":
            return any(votes)
        case "at_least":
            return sum(votes) >= construction.least


@pytest.mark.parametrize("construction", SMALL, ids=str)
def test_probability_is_the_sum_over_all_outcomes(construction: Amplification) -> None:
    outcomes = [
        one for one in product((True, False), repeat=construction.functions) if agree(construction, list(one))
    ]
    for base in (0.0, 0.1, 0.5, 0.83, 1.0):
        expected = math.fsum(math.prod(base if hit else 1 - base for hit in one) for one in outcomes)
        assert construction.probability(base) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("construction", SMALL, ids=str)
def test_bands_are_grouped_like_their_functions(construction: Amplification) -> None:
    outcomes = list(product((True, False), repeat=construction.functions))
    functions = np.array(outcomes).reshape(len(outcomes), construction.bands, construction.rows)
    evaluated = construction.evaluate(np.logical_and.reduce(functions, axis=2))
    assert evaluated.dtype == bool
    assert evaluated.tolist() == [agree(construction, list(one)) for one in outcomes]
    # Without a shared band nothing agrees, and one band more never parts what agreed.
    assert not evaluated[-1] and evaluated[0]
    by_outcome = dict(zip(outcomes, evaluated.tolist(), strict=True))
    for outcome, met in by_outcome.items():
        more = [(*outcome[:at], True, *outcome[at + 1 :]) for at in range(len(outcome))]
        assert not met or all(by_outcome[one] for one in more)


def test_the_innermost_and_is_a_band() -> None:
    for construction, bands, rows, minimum in (
        (and_(5), 1, 5, 1),
        (or_(9), 9, 1, 1),
        (and_(4, or_(4)), 16, 1, None),
        (and_(4, and_(3)), 4, 3, 4),
        (or_(4, and_(4, or_(4, and_(4)))), 64, 4, None),
    ):
        assert (construction.bands, construction.rows) == (bands, rows)
        assert (construction.functions, construction.min_shared_bands) == (bands * rows, minimum)


@given(bands=st.integers(1, 60), rows=st.integers(1, 9), minimum=st.integers(1, 60), base=st.floats(0, 1))
def test_a_banding_with_a_minimum_is_an_amplification(
    bands: int, rows: int, minimum: int, base: float
) -> None:
    minimum = min(minimum, bands)
    construction = banding(bands, rows, minimum)
    assert (construction.bands, construction.rows, construction.min_shared_bands) == (bands, rows, minimum)
    assert construction.probability(base) == pytest.approx(
        match_probability(base, bands, rows, minimum), abs=1e-11
    )


@pytest.mark.parametrize("trials", [1, 2, 40, 256, 5_000])
def test_binomial_tail_has_full_precision(trials: int) -> None:
    for least in sorted({1, min(2, trials), (trials + 1) // 2, max(1, trials - 1), trials}):
        for base in (1e-12, 1e-4, 0.01, 0.3, 0.5, 0.77, 0.999, 1 - 1e-9):
            expected = float(binom.sf(least - 1, trials, base))
            found = at_least(least, trials).probability(base)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-250), (trials, least, base)
            missed = float(binom.cdf(least - 1, trials, base))
            assert 1 - found == pytest.approx(missed, rel=1e-6, abs=2e-13), (trials, least, base)


@pytest.mark.parametrize(
    "make", [partial(and_, 0), partial(or_, -1), partial(at_least, 0, 4), partial(at_least, 5, 4)]
)
def test_empty_combinations_are_refused(make: Callable[[], Amplification]) -> None:
    with pytest.raises(RecipeError):
        make()
