"""Values in CSV and JSON lines, for files, spreadsheets and terminals."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Self, TextIO, cast

from nearsim_db.cli.formats import Format
from nearsim_db.cli.output import terminal
from nearsim_db.readers.output import json_line

# Spreadsheets run such cells as formulas, also with full-width signs and after a tab or line end.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# The writer quotes only the line ends that it writes itself.
_QUOTED_ENDS = "\r\n"


class _Returned:
    """A file that returns what is written to it, as `writerow` then does."""

    def write(self, text: str) -> str:
        return text


_LINES = csv.writer(cast(TextIO, _Returned()), lineterminator=_QUOTED_ENDS)


@dataclass(frozen=True, slots=True)
class Cells:
    """How cells of CSV are written; numbers are never changed.

    `marked`: text that a spreadsheet would run as a formula gets a leading apostrophe. `escaped`: control characters
    are escaped, for a terminal.
    """

    marked: bool
    escaped: bool

    @classmethod
    def of(cls, format: Format, stream: BinaryIO) -> Self:
        """Return the cells of an output format on a stream."""
        return cls(marked=format is not Format.CSV_EXACT, escaped=stream.isatty())

    def line(self, values: Sequence[object]) -> str:
        """Return a row as a line, newline included."""
        cells = [self._cell(value) if isinstance(value, str) else value for value in values]
        line: str = _LINES.writerow(cells)
        return f"{line.removesuffix(_QUOTED_ENDS)}\n"

    def _cell(self, text: str) -> str:
        if self.marked and text.startswith(_FORMULA_STARTS):
            text = f"'{text}"
        return terminal.escaped_cell(text) if self.escaped else text


def json_row(record: object, stream: BinaryIO) -> bytes:
    """Serialise a record as `json_line` does, for a terminal with C1 and direction controls escaped too."""
    line = json_line(record)
    return terminal.escaped_strings(line.decode()).encode() if stream.isatty() else line
