"""How things look on a terminal, and how they look elsewhere: nothing is cut, nothing coloured."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TextIO

import orjson
import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 100_000
_GAP = 3
_SHORTEST = 12
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}
# Titles and ids come from anywhere: what could steer a terminal is shown as what it is.
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}


def console(stream: TextIO) -> Console:
    """A console that takes text as it is; as wide as its lines where it is no terminal."""
    return Console(
        file=stream,
        width=None if stream.isatty() else _WIDE,
        highlight=False,
        markup=False,
        emoji=False,
    )


def visible(value: object) -> str:
    """A value as people read it, without control characters."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4f}".rstrip("0").rstrip(".")
        case datetime():
            return value.isoformat(sep=" ", timespec="seconds")
        case dict() | list():
            return orjson.dumps(value, default=str).decode().translate(_VISIBLE)
        case _:
            return str(value).translate(_VISIBLE)


def complain(message: str) -> None:
    """An error as one line on standard error."""
    line = Text.assemble(("error: ", "bold red"), visible(" ".join(message.split())))
    console(sys.stderr).print(line)


def warn(message: str) -> None:
    """Something worth knowing, on standard error."""
    console(sys.stderr).print(Text.assemble(("warning: ", "yellow"), visible(message)))


def note(message: str) -> None:
    """What was done, on standard error."""
    console(sys.stderr).print(Text(visible(message)))


def document(value: object, stream: TextIO | None = None) -> None:
    """One JSON document, on standard output unless told otherwise."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2), file=stream)


def table(
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
    _print(shown, target, _WIDE)


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


def facts(values: Mapping[str, object], stream: TextIO | None = None, width: int | None = None) -> None:
    """Names and values, one a line, on standard output unless told otherwise; broken to `width` if it is given."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in values.items():
        lines = value.split("\n") if isinstance(value, str) else [value]
        shown.add_row(Text(name), Text("\n".join(map(visible, lines))))
    _print(shown, stream or sys.stdout, width)


def checks(
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


def line(text: str = "", stream: TextIO | None = None) -> None:
    """A line for people, on standard output unless told otherwise."""
    console(stream or sys.stdout).print(Text(visible(text)))
