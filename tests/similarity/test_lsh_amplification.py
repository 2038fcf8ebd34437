"""Amplifications: their algebra against all outcomes, the choice of bands, and their notation."""

import math
import re
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.amplification import Amplification, and_, at_least, banding, or_, parse
from nearsim_db.similarity.lsh import choose_bands, match_probability, pick_bands
from tests.builders.selection import examples

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


def test_number_of_bands_fits_a_byte() -> None:
    choice = choose_bands(2048, 0.3, 0.98)
    assert (choice.bands, choice.rows) == (143, 3)
    assert match_probability(0.3, 2048 // 4, 4) > 0.98 > match_probability(0.3, 256, 4)


@examples(50)
@given(
    k=st.integers(16, 300),
    threshold=st.floats(0.4, 1.0),
    recall=st.floats(0.5, 0.99),
    minimum=st.integers(1, 3),
)
def test_number_of_rows_is_the_largest_possible(
    k: int, threshold: float, recall: float, minimum: int
) -> None:
    choice = choose_bands(k, threshold, recall, minimum)
    assert match_probability(threshold, choice.bands, choice.rows, minimum) >= recall
    assert choice.bands <= min(k // choice.rows, 256)
    if choice.bands > minimum:
        assert match_probability(threshold, choice.bands - 1, choice.rows, minimum) < recall
    for rows in range(choice.rows + 1, k + 1):
        assert match_probability(threshold, min(k // rows, 256), rows, minimum) < recall


@pytest.mark.parametrize(
    ("k", "threshold", "recall"),
    [(4, 0.05, 0.99), (128, 0.0, 0.9), (128, 1.1, 0.9), (128, 0.5, 0.0), (128, 0.5, 1.0)],
)
def test_what_no_bands_reach_is_refused(k: int, threshold: float, recall: float) -> None:
    with pytest.raises(RecipeError):
        choose_bands(k, threshold, recall)


def test_riskiqs_rule_refuses_more_bands_than_positions() -> None:
    for threshold in (0.001, 0):
        with pytest.raises(RecipeError):
            pick_bands(threshold, 10)


counts = st.integers(1, 300)
innermost = st.one_of(
    st.builds(and_, counts), st.builds(or_, counts), st.builds(at_least, st.just(1), counts)
)
constructions = st.recursive(
    innermost,
    lambda inner: st.one_of(
        st.builds(and_, counts, inner),
        st.builds(or_, counts, inner),
        st.integers(1, 300).flatmap(
            lambda least: st.builds(at_least, st.just(least), st.integers(least, 300), inner)
        ),
    ),
    max_leaves=8,
)


@given(construction=constructions, blanks=st.text(" \t\n", max_size=3))
def test_written_amplifications_parse_to_the_same(construction: Amplification, blanks: str) -> None:
    written = str(construction)
    assert parse(written) == construction
    spaced = written.replace("(", f"({blanks}").replace(",", f"{blanks},").replace(")", f"{blanks})")
    assert parse(blanks + spaced + blanks) == construction


def test_cascades_of_many_steps() -> None:
    deep = "or(1, " * 63 + "and(3)" + ")" * 63
    assert parse(deep).functions == 3 and str(parse(deep)) == deep
    with pytest.raises(RecipeError, match="at character 385: expected at most 64 steps"):
        parse("or(1, " * 64 + "and(3)" + ")" * 64)


# With the place of the error, from 1.
MALFORMED = {
    "": 1,
    "xor(4)": 1,
    "or 4": 4,
    "or(4": 5,
    "or(four)": 4,
    "or(4.5)": 5,
    "or(-1)": 4,
    "or(1234567890)": 4,
    "or(4, 3)": 7,
    "or(4, and(3)": 13,
    "or(4, and(3)) or(2)": 15,
    "and(4 or(4))": 7,
    "at_least(3)": 11,
    "or(4, at_least(5, 3))": 7,
    "or(4, and(0))": 7,
    "or(65537)": 1,
}


@pytest.mark.parametrize("text", MALFORMED)
def test_syntax_errors_report_their_position(text: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"{text!r} at character {MALFORMED[text]}: ")):
        parse(text)
