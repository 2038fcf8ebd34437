"""Values in CSV and JSON lines, for files, spreadsheets and terminals."""

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
