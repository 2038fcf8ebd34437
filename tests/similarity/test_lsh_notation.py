"""Amplifications as text: read, refused with the place of the mistake, and written back."""

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
def test_what_is_written_is_read_back(construction: Amplification, blanks: str) -> None:
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
    with pytest.raises(RecipeError, match="at character 385: at most 64 steps"):
        parse("or(1, " * 64 + "and(3)" + ")" * 64)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", 1, "and(n), or(n) or at_least(m, n) is expected, not the end"),
        ("xor(4)", 1, "is expected, not 'xor'"),
        ("or 4", 4, "( is expected, not '4'"),
        ("or(4", 5, "a comma or ) is expected, not the end"),
        ("or(four)", 4, "a whole number of at most 9 digits is expected, not 'four'"),
        ("or(4.5)", 5, "a comma or ) is expected, not '.'"),
        ("or(-1)", 4, "a whole number of at most 9 digits is expected, not '-'"),
        ("or(1234567890)", 4, "at most 9 digits"),
        ("or(4, 3)", 7, "and, or, at_least is expected, not '3'"),
        ("or(4, and(3)", 13, ") is expected, not the end"),
        ("or(4, and(3)) or(2)", 15, "the end is expected, not 'or'"),
        ("and(4 or(4))", 7, "a comma or ) is expected, not 'or'"),
        ("at_least(3)", 11, "a comma, and how many there are is expected, not ')'"),
        ("or(4, at_least(5, 3))", 7, "at_least(5, 3) is impossible; ask for 1 to 3 of 3"),
        ("or(4, and(0))", 7, "and(0) is impossible"),
        ("or(65537)", 1, "at most 65,536"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, place: int, reason: str) -> None:
    with pytest.raises(RecipeError) as refused:
        parse(text)
    assert f"{text!r} at character {place}: " in str(refused.value) and reason in str(refused.value)
