"""Tables for a terminal: columns, name-value lists and check results."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from nearsim_db.cli.output.terminal import UNLIMITED_WIDTH, console, visible

_GAP, _NARROW_GAP = 3, 2
_SHORTEST = 12
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    shorten: Sequence[str] = (),
    wrap: Sequence[str] = (),
    decimals: Mapping[str, int] | None = None,
    stream: TextIO | None = None,
) -> None:
    """Print rows under a heading, numbers right-aligned, floats with four decimals or those of `decimals`.

    If the terminal is too narrow, the space between columns shrinks first; then columns of `wrap` break between words
    and columns of `shorten` are truncated, down to 12 characters. No other column is cut: the table may then be wider
    than the terminal.
    """
    places = decimals or {}
    values = [list(row) for row in rows]
    cells = [
        [_cell(value, places.get(name, 4)) for name, value in zip(columns, row, strict=True)]
        for row in values
    ]
    target = stream or sys.stdout
    available = console(target).width
    gap = _GAP if _total(_content_widths(columns, cells), _GAP) <= available else _NARROW_GAP
    widths = _widths(columns, cells, shorten, wrap, available, gap)
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 2, 0, 1))
    for at, name in enumerate(columns):
        number = all(isinstance(row[at], int | float | None) for row in values)
        shown.add_column(
            Text(visible(name)),
            justify="right" if number else "left",
            width=widths[at],
            no_wrap=name not in wrap,
            overflow="ellipsis",
        )
    for row_cells in cells:
        shown.add_row(*map(Text, row_cells))
    _print(shown, target, UNLIMITED_WIDTH)


def fits(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    wrap: Sequence[str] = (),
    stream: TextIO | None = None,
) -> bool:
    """Whether a table fits the terminal once its columns of `wrap` are broken between words."""
    cells = [[_cell(value, 4) for value in row] for row in rows]
    width = console(stream or sys.stdout).width
    return _total(_widths(columns, cells, (), wrap, width, _GAP), _GAP) <= width


def _cell(value: object, decimals: int) -> str:
    return f"{value:,.{decimals}f}" if isinstance(value, float) else visible(value)


def _widths(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    shorten: Sequence[str],
    wrap: Sequence[str],
    available: int,
    gap: int,
) -> list[int]:
    """Return the width of each column: that of its content, reduced in columns that may wrap or be shortened."""
    longest = [max((cell_len(row[at]) for row in cells), default=0) for at in range(len(columns))]
    widths = _content_widths(columns, cells)
    excess = _total(widths, gap) - available
    # Headings longer than their cells wrap first.
    for at in sorted(range(len(columns)), key=lambda at: longest[at] >= cell_len(columns[at])):
        if excess > 0 and columns[at] in (*shorten, *wrap):
            texts = [columns[at], *(row[at] for row in cells)] if columns[at] in wrap else []
            words = [cell_len(word) for text in texts for word in text.split()]
            shortest = min(_SHORTEST, longest[at]) if columns[at] in wrap else _SHORTEST
            least = min(widths[at], max([shortest, *words]))
            reduction = min(excess, widths[at] - least)
            widths[at] -= reduction
            excess -= reduction
    return widths


def _content_widths(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(cell_len(name), *(cell_len(row[at]) for row in cells), 0) for at, name in enumerate(columns)]


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def print_facts(values: Mapping[str, object], stream: TextIO | None = None, width: int | None = None) -> None:
    """Print names and values, one per line, on standard output by default; wrapped to `width` if given."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in values.items():
        lines = value.split("\n") if isinstance(value, str) else [value]
        shown.add_row(Text(visible(name)), Text("\n".join(map(visible, lines))))
    _print(shown, stream or sys.stdout, width)


def print_checks(
    findings: Iterable[tuple[str, str, str, str]], stream: TextIO | None = None, width: int | None = None
) -> None:
    """Print (verdict, check, finding, advice), one per line, the advice below; wrapped to `width` if given."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        shown.add_column(overflow="fold")
    for verdict, check, finding, advice in findings:
        text = visible(finding) + (f"\n{visible(advice)}" if advice else "")
        shown.add_row(Text(verdict, style=_COLOURS[verdict]), Text(visible(check)), Text(text))
    _print(shown, stream or sys.stdout, width)


def _print(shown: Table, stream: TextIO, width: int | None = None) -> None:
    """Print a table without the trailing blanks that Rich adds."""
    screen = console(stream)
    if width is not None:
        screen.width = width
    with screen.capture() as captured:
        screen.print(shown)
    stream.write("".join(f"{text.rstrip()}\n" for text in captured.get().splitlines()))
