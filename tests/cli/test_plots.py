"""Curves drawn with characters: every column has its mark at the height of the curve."""

import io
import re

import pytest

from nearsim_db.cli.output import plots
from nearsim_db.similarity.lsh import parse
from tests.builders.command_line import Terminal


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
