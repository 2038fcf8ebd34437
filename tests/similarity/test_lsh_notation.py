"""Amplifications as text: parsing, errors with their position, and writing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.lsh import Amplification, and_, at_least, or_, parse

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
