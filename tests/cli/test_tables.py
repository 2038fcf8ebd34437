"""Tables on terminals: ids and numbers are never truncated."""

import pytest

from nearsim_db.cli.output import reindex, tables
from nearsim_db.cli.output.terminal import visible
from tests.builders.command_line import Terminal

NUMBERS = ("similarity", "intersection", "union", "estimate", "shared_bands")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns without colours."""
    for name, value in (("COLUMNS", "80"), ("LINES", "25"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
    return Terminal()


def words_of_heading(terminal: Terminal) -> list[str]:
    """The last heading may be broken after its underscore."""
    words = terminal.getvalue().partition("─")[0].split()
    return sorted(["shared_bands", *words[1:-1]] if words[0] == "shared_" else words)


def test_only_the_title_is_shortened(terminal: Terminal) -> None:
    row = ("reuters-newswire-17", "A storm crossed the northern coast " * 5, 0.9286, 39, 42, 0.9219, 30)
    tables.print_table(
        ("id", "title", *NUMBERS), [row], shorten=["title"], wrap=["shared_bands"], stream=terminal
    )
    assert words_of_heading(terminal) == sorted(["id", "title", *" ".join(NUMBERS).split()])
    line = terminal.getvalue().splitlines()[-1]
    assert line.split()[:1] + line.split()[-5:] == [row[0], "0.9286", "39", "42", "0.9219", "30"]
    assert " ".join(line.split()[1:-5]) == "A storm cro…"


def test_table_may_be_wider_than_the_terminal(terminal: Terminal) -> None:
    long = "x" * 100
    tables.print_table(
        ("left", "right", *NUMBERS),
        [(long, long, 1.0, 9, 9, 1.0, 32)],
        wrap=["shared_bands"],
        stream=terminal,
    )
    assert words_of_heading(terminal) == sorted(["left", "right", *" ".join(NUMBERS).split()])
    line = terminal.getvalue().splitlines()[-1]
    assert line.split() == [long, long, "1.0000", "9", "9", "1.0000", "32"]


def test_lists_are_broken_between_ids_only(terminal: Terminal) -> None:
    ids = [f"reuters-newswire-{number:04}" for number in range(10)]
    tables.print_table(
        ("survivor", "documents", "members"),
        [(ids[0], 10, ", ".join(ids))],
        wrap=["members"],
        stream=terminal,
    )
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [word.rstrip(",") for line in lines[2:] for word in line.split()] == [ids[0], "10", *ids]


def test_lines_of_a_text_begin_and_end_with_a_word() -> None:
    assert tables.wrap_text("  one two three", 7) == ["one two", "three"]


def test_values_have_no_trailing_zeros() -> None:
    for value, shown in ((3.33, "3.33"), (0.7, "0.7"), (1.0, "1"), (0.99981, "0.9998"), (1234.5, "1,234.5")):
        assert visible(value) == shown
    assert visible({"a": [1, None]}) == '{"a":[1,null]}'


ROW = {
    "generation": 12,
    "profile": "default",
    "state": "being built",
    "progress": "62 %, verifying · about 40 s left",
    "waiting": 1_234,
    "set aside": 0,
    "size": "7.7 MiB",
    "differs in": "match.threshold=0.6, shingle.k=5",
    "since": "2026-11-22 07:49:15+00:00",
}


def test_generations_fit_a_terminal(terminal: Terminal) -> None:
    """Empty columns are dropped first, then the least important; the profile is shown only if there are several."""
    others = [{**ROW, "profile": name} for name in ("default", "strict")]
    for rows, missing in (([ROW], {"set", "since", "profile", "size"}), (others, {"set", "since", "size"})):
        terminal.truncate(terminal.seek(0))
        reindex.print_table(rows, terminal)
        heading, *lines = terminal.getvalue().splitlines()
        every = {"generation", "profile", "state", "progress", "waiting", "set", "size", "differs", "since"}
        assert every - set(heading.split()) == missing
        if len(rows) == 1:
            assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("columns", "left_out"),
    [(140, []), (100, ["intersection", "union"]), (70, list(NUMBERS[1:])), (30, list(NUMBERS[1:]))],
)
def test_columns_that_the_terminal_is_too_narrow_for_are_left_out(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int, left_out: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ("left", "right", *NUMBERS, "left_title", "right_title")
    row = ("story-003", "story-004", 0.9286, 39, 42, 0.9219, 30, "A title " * 9, "Another title " * 9)
    titles = ("left_title", "right_title")
    found = tables.print_fitting(
        names, [row], optional=NUMBERS[1:], shorten=titles, wrap=["shared bands"], stream=terminal
    )
    assert list(found) == left_out
    lines = terminal.getvalue().splitlines()
    assert all(name.split()[-1] in "".join(lines[:2]) for name in names if name not in left_out)
    if columns >= 70:
        assert max(map(len, lines)) == columns
        assert min(len(one) for one in lines[-1].split("  ")[-2:]) >= 17
