"""Tables, plots and progress on terminals: ids and numbers are never truncated."""

import io
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from nearsim_db import Document, Index
from nearsim_db.cli.output import layouts, plots, progress, reindex, tables
from nearsim_db.cli.output.terminal import visible
from nearsim_db.indexing import build
from nearsim_db.records import Verdict
from nearsim_db.similarity.amplification import parse
from nearsim_db.store.clusters.events import Event
from tests.builders.command_line import STORM, STORM_AGAIN, Terminal

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


def test_numbers_of_generations_can_be_given_to_commands(terminal: Terminal) -> None:
    reindex.print_table([{**ROW, "generation": 100_000_004}], terminal)
    assert "100000004" in terminal.getvalue().split()


def test_events_fit_a_terminal(terminal: Terminal) -> None:
    at = datetime(2026, 11, 22, 7, 49, tzinfo=UTC)
    pair = ("reuters-newswire-17", "reuters-newswire-18", 0.9286, None, 1, 2)
    event = Event(
        1_234_567, "pair_found", at, "news", "default", *pair, 3_456_789, 4, (5,) * 9, (), 100_000_004, True
    )
    columns, rows = layouts.EVENTS.table([event])
    tables.print_fitting(
        columns, rows, optional=layouts.EVENTS.optional, wrap=layouts.EVENTS.wrap, stream=terminal
    )
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1].split()[:4] == ["1234567", "pair_found", *pair[:2]]


@pytest.mark.parametrize("layout", [layouts.VERDICTS, layouts.UNDONE_VERDICTS])
def test_verdicts_fit_a_terminal(terminal: Terminal, layout: layouts.Layout[Verdict]) -> None:
    at, why = datetime(2026, 11, 22, 7, 49, tzinfo=UTC), "they are of different days " * 5
    ends = ("reuters-newswire-17", "reuters-newswire-18")
    undone_by, titles = "bert.of.the.desk", (None, None)
    verdict = Verdict(*ends, "vetoed", "anna.of.the.desk", why, at, undone_by, why, at, "news", *titles)
    columns, rows = layout.table([verdict])
    tables.print_fitting(columns, rows, optional=layout.optional, wrap=layout.wrap, stream=terminal)
    assert max(map(len, terminal.getvalue().splitlines())) <= 80


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


class Pipe(io.TextIOWrapper):
    """A pipe with an encoding that records what is written."""

    def __init__(self, encoding: str) -> None:
        self.kept = io.BytesIO()
        super().__init__(self.kept, encoding=encoding)

    def text(self) -> str:
        self.flush()
        return self.kept.getvalue().decode(self.encoding)


def heights(lines: list[str], mark: str, width: int) -> list[set[float]]:
    """The heights of the marks of each column, in 0..1."""
    columns: list[set[float]] = [set() for _ in range(width)]
    for row, line in enumerate(lines[:21]):
        for found in re.finditer(re.escape(mark), line[6:]):
            columns[found.start()].add(1 - row / 20)
    return columns


@pytest.mark.parametrize("text", ["or(20, and(5))", "or(4, and(4, or(4, and(4))))", "and(9)", "or(30)"])
def test_marks_are_at_the_height_of_the_curve(text: str) -> None:
    stream, probability = Pipe("utf-8"), parse(text).probability
    plots.draw([probability], 0, 1, None, stream)
    lines = stream.text().splitlines()
    width = 80 - 7
    for column, found in enumerate(heights(lines, "o", width)):
        value = probability(column / (width - 1))
        assert min(abs(height - value) for height in found) <= 0.025 + 1e-9
        # Upright runs join a column to the one before it.
        before = probability(max(column - 1, 0) / (width - 1))
        assert all(before - 0.026 <= height <= value + 0.026 for height in found)
    stream = Pipe("ascii")
    plots.draw([probability], 0, 1, 0.5, stream)
    assert "\x1b" not in stream.text() and stream.text().startswith(" 1.0 |")


@pytest.mark.parametrize("columns", [80, 120])
def test_plot_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    plots.draw([parse("or(4, and(4))").probability, parse("and(4, or(4))").probability], 0, 1, 0.6, stream)
    coloured = stream.getvalue()
    lines = re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()
    assert "\x1b[" in coloured and len(lines) == 23
    assert columns - 2 <= max(map(len, lines)) <= columns
    assert lines[21].index("┴") - 6 == round(0.6 * (columns - 8))
    # Both curves are at 0 on the left and at 1 on the right, and both are seen there.
    for row, place in ((20, slice(6, 14)), (0, slice(-8, None))):
        assert {"o", "x"} <= set(lines[row][place])


def test_plot_with_another_axis() -> None:
    stream = Pipe("utf-8")
    plots.draw([lambda distance: 1 / (1 + distance)], 0, 10, 2.5, stream)
    lines = stream.text().splitlines()
    assert lines[22].split() == ["0", "2", "4", "6", "8", "10"]
    assert lines[21].index("┴") - 6 == round(0.25 * 72)
    stream = Pipe("utf-8")
    plots.draw([lambda cosine: (1 + cosine) / 2], -1, 1, None, stream)
    assert stream.text().splitlines()[22].split() == ["-1", "-0.5", "0", "0.5", "1"]


def test_plot_marks_distances_and_their_probabilities() -> None:
    stream = Pipe("utf-8")
    distances = [("d1", "p1", 0.75), ("d2", "p2", 0.25)]
    plots.draw([lambda similarity: similarity], 0, 1, None, stream, distances)
    lines = stream.text().splitlines()

    columns = {"d1": round(0.75 * 72), "d2": round(0.25 * 72)}
    assert {name: lines[22].index(name) + 1 - 6 for name in columns} == columns
    assert [column for column, sign in enumerate(lines[21][6:]) if sign == "┴"] == sorted(columns.values())
    for name, distance, height in (("p1", "d1", 0.75), ("p2", "d2", 0.25)):
        (row,) = (row for row, line in enumerate(lines[:21]) if name in line)
        assert lines[row].index(name) - 6 == columns[distance] + 1
        assert abs((1 - row / 20) - height) <= 0.1


def test_a_complete_step_shows_its_total(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    for name, value in (("COLUMNS", "120"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    with progress.progress_bars(quiet=False) as report:
        report("candidates", 1_000, 8_000)
        report("signatures", 0, 44_000)
        report("sign", 0, 0)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    verifying, indexing = shown.splitlines()[-2:]
    assert "verifying " in verifying and " 8,000 documents" in verifying
    assert "indexing sketches " in indexing and " 44,000 documents" in indexing
    assert "signing" not in shown


def test_every_step_of_an_ingest_is_named_and_writing_follows_reading(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MAX_SMALL_BUILD_DOCUMENTS", 0)
    steps: dict[str, Any] = {}
    with Index.connect(
        database_url, progress=lambda step, done, total: steps.setdefault(step, total)
    ) as index:
        index.add([Document("a", body=STORM), Document("b", body=STORM_AGAIN)])
        index.add([Document("a", body=STORM_AGAIN)])
    assert steps.keys() <= progress.STEPS.keys()
    names = list(steps)
    assert names[:2] == ["read", "save"] and steps["save"] == 2
    assert steps["signatures"] == steps["pairs"] == steps["clusters"] == 2


def test_a_check_shows_a_message_of_several_lines_as_one() -> None:
    stream = io.StringIO()
    tables.print_checks([("problem", "database", "connection failed:\n\tno such file", "")], stream)
    assert stream.getvalue().split("  ")[-1].strip() == "connection failed: no such file"
