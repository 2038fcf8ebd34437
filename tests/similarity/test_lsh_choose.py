"""Choosing bands; amplifications as text: parsing, errors with their position, and writing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.amplification import Amplification, and_, at_least, or_, parse
from nearsim_db.similarity.lsh import choose_bands, match_probability, pick_bands
from tests.builders.selection import examples


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
