"""Curves drawn with characters, each with its own mark, so that they differ without colours."""

from collections.abc import Callable, Sequence
from typing import TextIO

from nearsim_db.cli.output import terminal

MARKS = "ox+*#@%&abcdefghijklmnpqrstuvwyzABCDEFGHIJKLMNPQRST"
_COLOURS = ("cyan", "yellow", "green", "magenta", "red", "blue", "white", "bright_black")
_ROWS, _GUTTER = 20, 6
_NARROW, _WIDE, _IN_A_PIPE = 40, 160, 80
_FINE, _PLAIN = "│└─┊┴", "|+-:+"

Probability = Callable[[float], float]


def draw(
    curves: Sequence[Probability], low: float, high: float, threshold: float | None, stream: TextIO
) -> None:
    """Draw curves over low..high with values in 0..1, as wide as the terminal, or 80 columns without one."""
    width = (
        min(max(terminal.width_of(stream) if stream.isatty() else _IN_A_PIPE, _NARROW), _WIDE) - _GUTTER - 1
    )
    lines = _FINE if "utf" in (stream.encoding or "").lower() else _PLAIN
    grid = [[list[int]() for _ in range(width)] for _ in range(_ROWS + 1)]
    for number, curve in enumerate(curves):
        before = None
        for column in range(width):
            row = round((1 - curve(low + (high - low) * column / (width - 1))) * _ROWS)
            for passed in _between(before, row):
                grid[passed][column].append(number)
            before = row
    line = None if threshold is None else round((threshold - low) / (high - low) * (width - 1))
    for row, cells in enumerate(grid):
        terminal.print_painted(_row(row, cells, line, lines, stream), stream)
    axis = "".join(lines[4] if column == line else lines[2] for column in range(width))
    terminal.print_painted(f"{'':{_GUTTER - 1}}{lines[1]}{axis}", stream)
    terminal.print_painted(_ticks(low, high, width), stream)


def mark(number: int) -> str:
    """Return the mark of a curve, by its index."""
    return MARKS[number % len(MARKS)]


def _between(before: int | None, row: int) -> range:
    """Return the rows that a curve crosses between one column and the next."""
    if before is None or abs(row - before) < 2:
        return range(row, row + 1)
    return range(row, before) if row < before else range(before + 1, row + 1)


def _row(row: int, cells: list[list[int]], line: int | None, lines: str, stream: TextIO) -> str:
    label = f"{1 - row / _ROWS:{_GUTTER - 2}.1f} " if row % 4 == 0 else " " * (_GUTTER - 1)
    parts = [label, lines[0]]
    for column, numbers in enumerate(cells):
        # Curves that overlap alternate.
        number = numbers[column // 2 % len(numbers)] if numbers else None
        if number is not None:
            parts.append(terminal.paint(mark(number), _COLOURS[number % len(_COLOURS)], stream))
        else:
            parts.append(lines[3] if column == line else " ")
    return "".join(parts).rstrip()


def _ticks(low: float, high: float, width: int) -> str:
    """Return the axis labels, from end to end."""
    parts = 4 if low < 0 else 5
    places = [
        (round((width - 1) * part / parts), f"{low + (high - low) * part / parts:.4g}")
        for part in range(parts + 1)
    ]
    below = [" "] * (_GUTTER + width + 8)
    for column, number in places:
        start = min(_GUTTER + column - len(number) // 2, _GUTTER + width - len(number))
        below[start : start + len(number)] = number
    return "".join(below).rstrip()
