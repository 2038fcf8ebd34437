"""CSV and TSV with a header, marked so that a spreadsheet runs no text as a formula."""

import csv
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import BinaryIO, TextIO, cast

from nearsim_db.errors import InputError
from nearsim_db.readers.values import json_text
from nearsim_db.readers.writers.file_format import Encoding, Escape, RecordWriter

# Spreadsheets run such cells as formulas, also with full-width signs and after a tab or line end.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# The writer quotes cells with any character of the line end that it writes itself. A spreadsheet may take another
# separator than that of the file.
_QUOTED_ENDS = "\r\n"
_QUOTED_SEPARATORS = ",;\t|"
# Instead of a quote: cells are not quoted.
NO_QUOTE = "none"


class _Returned:
    """A file that returns what is written to it, as `writerow` then does."""

    def write(self, text: str) -> str:
        return text


class DelimitedLines:
    """Makes lines of CSV; numbers are never changed.

    `marked`: text that a spreadsheet would run as a formula gets a leading apostrophe, and cells with a separator of
    any kind are quoted. `quote` encloses cells, by default the double quote; with `none` `escape_character` is before
    what would end a cell. `escape` is applied to text, for a terminal.
    """

    def __init__(
        self,
        delimiter: str = ",",
        *,
        marked: bool = True,
        quote: str | None = None,
        escape_character: str | None = None,
        escape: Escape | None = None,
    ) -> None:
        self._end = _QUOTED_ENDS + (_QUOTED_SEPARATORS if marked else "")
        is_quoted = quote != NO_QUOTE
        self._rows = csv.writer(
            cast(TextIO, _Returned()),
            delimiter=delimiter,
            quotechar=(quote or '"') if is_quoted else None,
            quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
            escapechar=escape_character,
            lineterminator=self._end,
        )
        self._marked = marked
        self._escape = escape

    def line(self, values: Sequence[object]) -> str:
        """Return a row as a line, newline included. Raises InputError if it cannot be written without quotes."""
        cells = [self._cell(value) if isinstance(value, str) else value for value in values]
        try:
            line: str = self._rows.writerow(cells)
        except csv.Error as error:
            raise InputError(
                f"the row that begins with {cells[0]!r} cannot be written without quotes; name an escape character "
                "(--escape), or write JSON lines"
            ) from error
        return f"{line.removesuffix(self._end)}\n"

    def _cell(self, text: str) -> str:
        if self._marked and text.startswith(_FORMULA_STARTS):
            text = f"'{text}"
        return self._escape(text) if self._escape else text


def lines_of(encoding: Encoding, escape: Escape | None = None) -> DelimitedLines:
    """Return what makes the lines of a file; `escape` is applied to text."""
    return DelimitedLines(
        encoding.delimiter,
        marked=not encoding.exact,
        quote=encoding.quote,
        escape_character=encoding.escape_character,
        escape=escape,
    )


class DelimitedWriter(RecordWriter):
    """Rows below a header; null is an empty cell, arrays and objects are JSON."""

    def __init__(
        self, stream: BinaryIO, columns: Sequence[str], lines: DelimitedLines, header: bytes | None = None
    ) -> None:
        super().__init__(stream, columns)
        self._lines = lines
        self.stream.write(lines.line(self.columns).encode() if header is None else header)

    def write(self, record: Mapping[str, object]) -> None:
        values = [_cell(record.get(name)) for name in self.columns]
        self.stream.write(self._lines.line(values).encode())

    def write_row(self, row: bytes) -> None:
        """Write a row that is encoded already, line end included."""
        self.stream.write(row)


def _cell(value: object) -> object:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
        case dict() | list():
            return json_text(value)
        case _:
            return value
