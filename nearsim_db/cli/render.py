"""How things look on a terminal, and how they look elsewhere: nothing is cut, nothing coloured."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TextIO

import orjson
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 100_000
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
            return f"{value:.4f}"
        case datetime():
            return value.isoformat(sep=" ", timespec="seconds")
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


def document(value: object) -> None:
    """One JSON document on standard output."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    shorten: Sequence[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Rows under a heading, numbers to the right. Only columns to `shorten` lose their end where a line is full."""
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    held = [list(row) for row in rows]
    for at, name in enumerate(columns):
        number = all(isinstance(row[at], int | float | None) for row in held)
        shown.add_column(
            Text(name),
            justify="right" if number else "left",
            no_wrap=name in shorten,
            overflow="ellipsis" if name in shorten else "fold",
        )
    for row in held:
        shown.add_row(*(Text(visible(value)) for value in row))
    _print(shown, stream or sys.stdout)


def facts(values: Mapping[str, object]) -> None:
    """Names and values, one a line."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in values.items():
        lines = value.split("\n") if isinstance(value, str) else [value]
        shown.add_row(Text(name), Text("\n".join(map(visible, lines))))
    _print(shown, sys.stdout)


def checks(findings: Iterable[tuple[str, str, str, str]]) -> None:
    """(verdict, check, finding, advice), one a line, with the advice below."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        shown.add_column(overflow="fold")
    for verdict, check, finding, advice in findings:
        told = visible(finding) + (f"\n{visible(advice)}" if advice else "")
        shown.add_row(Text(verdict, style=_COLOURS[verdict]), Text(check), Text(told))
    _print(shown, sys.stdout)


def _print(shown: Table, stream: TextIO) -> None:
    """Without the blanks that Rich fills lines up with."""
    screen = console(stream)
    with screen.capture() as captured:
        screen.print(shown)
    stream.write("".join(f"{text.rstrip()}\n" for text in captured.get().splitlines()))


def line(text: str = "") -> None:
    """A line for people on standard output."""
    console(sys.stdout).print(Text(visible(text)))
