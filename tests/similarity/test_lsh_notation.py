"""Amplifications as text: parsing, errors with their position, and writing."""

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("or(40, and(3))", or_(40, and_(3))),
        ("and(4, or(4))", and_(4, or_(4))),
        ("at_least(3, 40, and(3))", at_least(3, 40, and_(3))),
        ("or(4,and(4,or(4,and(4))))", or_(4, and_(4, or_(4, and_(4))))),
        ("and(7)", and_(7)),
    ],
)
def test_the_outermost_step_comes_first(text: str, expected: Amplification) -> None:
    assert parse(text) == expected


def test_cascades_of_many_steps() -> None:
    deep = "or(1, " * 63 + "and(3)" + ")" * 63
    assert parse(deep).functions == 3 and str(parse(deep)) == deep
    with pytest.raises(RecipeError, match="at character 385: expected at most 64 steps"):
        parse("or(1, " * 64 + "and(3)" + ")" * 64)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", 1, "expected and(n), or(n) or at_least(m, n), found the end"),
        ("xor(4)", 1, ", found 'xor'"),
        ("or 4", 4, "expected (, found '4'"),
        ("or(4", 5, "expected a comma or ), found the end"),
        ("or(four)", 4, "expected a whole number of at most 9 digits, found 'four'"),
        ("or(4.5)", 5, "expected a comma or ), found '.'"),
        ("or(-1)", 4, "expected a whole number of at most 9 digits, found '-'"),
        ("or(1234567890)", 4, "at most 9 digits"),
        ("or(4, 3)", 7, "expected and, or, at_least, found '3'"),
        ("or(4, and(3)", 13, "expected ), found the end"),
        ("or(4, and(3)) or(2)", 15, "expected the end, found 'or'"),
        ("and(4 or(4))", 7, "expected a comma or ), found 'or'"),
        ("at_least(3)", 11, "expected a comma and the count, found ')'"),
        ("or(4, at_least(5, 3))", 7, "at_least(5, 3) is out of range; require 1 to 3 of 3"),
        ("or(4, and(0))", 7, "and(0) is out of range"),
        ("or(65537)", 1, "combine 1 to 65,536"),
    ],
)
def test_syntax_errors_report_their_position(text: str, place: int, reason: str) -> None:
    with pytest.raises(RecipeError) as refused:
        parse(text)
    assert f"{text!r} at character {place}: " in str(refused.value) and reason in str(refused.value)
