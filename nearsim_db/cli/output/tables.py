"""Tables for a terminal: columns, name-value lists and check results."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from nearsim_db.cli.output.terminal import UNLIMITED_WIDTH, console, visible

_GAP = 3
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
    """Rows under a heading, numbers to the right, floats with four decimals or those that `decimals` says.

    On a terminal too narrow for it, columns to `shorten` lose their end, down to 12 characters, and those to `wrap`
    are broken between words. Nothing else is ever cut or broken: the table is then wider than the terminal.
    """
    places = decimals or {}
    held = [list(row) for row in rows]
    cells = [
        [_cell(value, places.get(name, 4)) for name, value in zip(columns, row, strict=True)] for row in held
    ]
    target = stream or sys.stdout
    widths = _widths(columns, cells, shorten, wrap, console(target).width)
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for at, name in enumerate(columns):
        number = all(isinstance(row[at], int | float | None) for row in held)
        shown.add_column(
            Text(name),
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
    """Whether a table fits the terminal, its columns to `wrap` broken where they can be."""
    cells = [[_cell(value, 4) for value in row] for row in rows]
    width = console(stream or sys.stdout).width
    return sum(_widths(columns, cells, (), wrap, width)) + _GAP * (len(columns) - 1) <= width


def _cell(value: object, decimals: int) -> str:
    return f"{value:,.{decimals}f}" if isinstance(value, float) else visible(value)


def _widths(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    shorten: Sequence[str],
    wrap: Sequence[str],
    available: int,
) -> list[int]:
    """The width of each column: that of its content, less what the columns that may give way can give."""
    contents = [[name, *(row[at] for row in cells)] for at, name in enumerate(columns)]
    widths = [max(map(cell_len, content)) for content in contents]
    excess = sum(widths) + _GAP * (len(widths) - 1) - available
    for at, name in enumerate(columns):
        if excess > 0 and name in (*shorten, *wrap):
            words = [word for text in contents[at] for word in text.split()] if name in wrap else []
            least = min(widths[at], max([_SHORTEST, *map(cell_len, words)]))
            given = min(excess, widths[at] - least)
            widths[at] -= given
            excess -= given
    return widths


def print_facts(values: Mapping[str, object], stream: TextIO | None = None, width: int | None = None) -> None:
    """Names and values, one a line, on standard output unless told otherwise; broken to `width` if it is given."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in values.items():
        lines = value.split("\n") if isinstance(value, str) else [value]
        shown.add_row(Text(name), Text("\n".join(map(visible, lines))))
    _print(shown, stream or sys.stdout, width)


def print_checks(
    findings: Iterable[tuple[str, str, str, str]], stream: TextIO | None = None, width: int | None = None
) -> None:
    """(verdict, check, finding, advice), one a line, with the advice below; broken to `width` if it is given."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        shown.add_column(overflow="fold")
    for verdict, check, finding, advice in findings:
        told = visible(finding) + (f"\n{visible(advice)}" if advice else "")
        shown.add_row(Text(verdict, style=_COLOURS[verdict]), Text(check), Text(told))
    _print(shown, stream or sys.stdout, width)


def _print(shown: Table, stream: TextIO, width: int | None = None) -> None:
    """Without the blanks that Rich fills lines up with."""
    screen = console(stream)
    if width is not None:
        screen.width = width
    with screen.capture() as captured:
        screen.print(shown)
    stream.write("".join(f"{text.rstrip()}\n" for text in captured.get().splitlines()))
