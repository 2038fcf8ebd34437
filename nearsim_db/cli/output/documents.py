"""Results for programs: one JSON document, or its rows as JSON lines or CSV."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import BinaryIO, TextIO

from nearsim_db.cli.formats import Format
from nearsim_db.cli.output import terminal
from nearsim_db.readers.output import json_line
from nearsim_db.readers.writers.delimited import DelimitedLines


def csv_lines(format: Format, stream: BinaryIO | TextIO) -> DelimitedLines:
    """Return the lines of an output format on a stream: control characters are escaped for a terminal."""
    escape = terminal.escaped_cell if stream.isatty() else None
    return DelimitedLines(marked=format is not Format.CSV_EXACT, escape=escape)


def json_row(record: object, stream: BinaryIO) -> bytes:
    """Serialise a record as `json_line` does, for a terminal with C1 and direction controls escaped too."""
    line = json_line(record)
    return terminal.escaped_strings(line.decode()).encode() if stream.isatty() else line


def print_document(format: Format, value: object, stream: TextIO | None = None) -> None:
    """Print a mapping, a dataclass or a list of them, on standard output by default.

    As jsonl and csv, a list has a line for each item, and anything else is one line. Columns of csv are the keys, in
    order of first appearance; nested values are JSON.
    """
    target = stream or sys.stdout
    rows = value if isinstance(value, list) else [value]
    if format is Format.JSONL:
        for row in rows:
            terminal.print_json_line(row, target)
    elif format in (Format.CSV, Format.CSV_EXACT):
        _print_csv([_mapping(row) for row in rows], format, target)
    else:
        terminal.print_json(value, target)


def print_outcome(format: Format, value: object, message: str, *, quiet: bool) -> None:
    """Print what a command has done: a document for programs, otherwise a message unless `quiet`."""
    if format.is_machine:
        print_document(format, value)
    elif not quiet:
        terminal.print_info(message)


def _mapping(row: object) -> Mapping[str, object]:
    if isinstance(row, Mapping):
        return row
    assert is_dataclass(row)
    return {field.name: getattr(row, field.name) for field in fields(row)}


def _print_csv(rows: Sequence[Mapping[str, object]], format: Format, stream: TextIO) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = csv_lines(format, stream)
    if columns:
        stream.write(cells.line(columns))
    for row in rows:
        stream.write(cells.line([_cell(row.get(name)) for name in columns]))


def _cell(value: object) -> object:
    is_nested = isinstance(value, dict | list | tuple) or is_dataclass(value)
    return terminal.json_text(value) if is_nested else value
