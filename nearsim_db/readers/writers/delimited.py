"""CSV and TSV with a header, in which text is marked so that a spreadsheet does not run it as a formula."""

import csv
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import BinaryIO, TextIO, cast

from nearsim_db.errors import InputError
from nearsim_db.readers.values import json_text
from nearsim_db.readers.writers.file_format import Encoding, Escape, RecordWriter

# Spreadsheets run cells that begin like this as formulas, even with full-width signs, and after a tab or line end.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# csv.writer quotes cells that contain any character of its own line end, which is used here to have cells quoted. A
# spreadsheet may assume a separator other than that of the file, so cells with any separator are quoted.
_QUOTED_ENDS = "\r\n"
_QUOTED_SEPARATORS = ",;\t|"
# Takes the place of a quote if cells are not quoted.
NO_QUOTE = "none"


class _Returned:
    """A file whose `write` returns the text, so that `writerow` returns it too."""

    def write(self, text: str) -> str:
        return text


class DelimitedLines:
    """Makes lines of CSV; numbers are never changed.

    With `marked`, text that a spreadsheet would run as a formula gets a leading apostrophe, and cells that contain any
    kind of separator are quoted. `quote` encloses cells, by default the double quote. If it is `none`, cells are not
    quoted, and `escape_character` precedes the characters that would end a cell. `escape` is applied to text that a
    terminal shows.
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
        """Return a row as a line that ends in a newline. Raises InputError if it cannot be written without quotes."""
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
    """Return an object that makes the lines of a file; `escape` is applied to text that a terminal shows."""
    return DelimitedLines(
        encoding.delimiter,
        marked=not encoding.exact,
        quote=encoding.quote,
        escape_character=encoding.escape_character,
        escape=escape,
    )


class DelimitedWriter(RecordWriter):
    """Writes rows below a header. Null becomes an empty cell; arrays and objects become JSON."""

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
        """Write a row that is encoded already, with its line end."""
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
