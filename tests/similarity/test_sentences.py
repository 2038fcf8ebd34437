"""Sentence boundaries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.similarity.text.words import split
from tests.builders.plain_text import any_text, sentences
from tests.builders.selection import examples


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" \n\n\t", []),
        ("no end", ["no end"]),
        ('He said "No." She (who knew.) left.', ['He said "No." ', "She (who knew.) ", "left."]),
        ("It is 3.5 km, e.g.here", ["It is 3.5 km, e.g.here"]),
        (
            "First\n\nSecond\nstill second\r\n \r\nThird",
            ["First\n\n", "Second\nstill second\r\n \r\n", "Third"],
        ),
        ("你好。你好吗？很好！", ["你好。", "你好吗？", "很好！"]),
        ("他说：“好！”她走了。", ["他说：“好！”", "她走了。"]),
        ("什么？！！真的。。。 是", ["什么？！！", "真的。。。 ", "是"]),
        ("안녕하세요. 잘 지내요? 네!", ["안녕하세요. ", "잘 지내요? ", "네!"]),
    ],
)
def test_sentence_examples(text: str, parts: list[str]) -> None:
    assert split(text) == parts


@examples(300)
@given(text=st.one_of(any_text, st.text('aB你。！.!?…"”) \n\r\t1', max_size=30)))
def test_sentences_equal_a_plain_python_splitter(text: str) -> None:
    parts = split(text)
    assert parts == sentences(text)
    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "." * 500_000 + "x",
        "!?" * 250_000 + "x",
        ".'" * 250_000 + "x",
        '."' * 250_000 + "x",
        "." + '"' * 500_000 + "x",
        "\n" + " " * 500_000 + "x",
        "x" + "\n \n" * 200_000 + "x",
    ],
    ids=["dots", "marks", "dot quote", "dot closer", "closers", "spaces", "blank lines"],
)
def test_long_runs_take_linear_time(text: str) -> None:
    # Backing out of a run at each of its marks would take hours here.
    assert "".join(split(text)) == text
