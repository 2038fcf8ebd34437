"""CSV and TSV, with or without a header; cells in quotes may contain newlines."""

import csv
import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from functools import cache
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING, cast

import orjson

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import (
    ACCEPTED_ID_CHARACTERS,
    DocumentMaker,
    check_names,
    instant_or_attribute,
)
from nearsim_db.readers.input_file import MAX_RECORD_VALUES, InputFile
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.readers.writers.delimited import NO_QUOTE
from nearsim_db.readers.writers.file_format import DELIMITERS, FileFormat
from nearsim_db.records import Document, ReadDocument, Reject
from nearsim_db.similarity.text.clean import clean

if TYPE_CHECKING:
    import _csv

_SHOWN_CHARACTERS = 500
_COMMON_DELIMITERS = ",;\t|"
_QUOTE_ADVICE = "check for an unclosed or misplaced quote; if quotes are part of the text: --quote none"


def read_csv(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read a comma-separated file; see `_read`."""
    return _read(file, fields, file.delimiter or DELIMITERS[FileFormat.CSV])


def read_tsv(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read a tab-separated file; see `_read`."""
    return _read(file, fields, file.delimiter or DELIMITERS[FileFormat.TSV])


def _read(file: InputFile, fields: Fields, delimiter: str) -> Iterator[ReadDocument | Reject]:
    """Read rows as documents.

    An empty cell of a column named in `fields` is null; a vector cell is a JSON array; other columns become attributes,
    as strings. The line of a document is the first line of its row. Raises InputError if the header lacks required
    columns, or if the first row cannot be read.
    """
    name = file.name
    make: RowMaker | None = None
    for line, row, _ in csv_rows(file, delimiter, keep=False):
        if make is None:
            maker = DocumentMaker(name, fields)
            make = RowMaker(_header(row, file, maker, delimiter), name, fields, maker)
            if file.has_header:
                continue
        if isinstance(row, str):
            yield Reject(name, line, row)
        else:
            yield make(row, line)


def _header(row: list[str] | str, file: InputFile, maker: DocumentMaker, delimiter: str) -> list[str]:
    if isinstance(row, str):
        raise InputError(
            f"cannot read the {'header' if file.has_header else 'first row'} of {file.name}: {row}"
        )

    names = row if file.has_header else numbered_columns(row)
    check_names(names, file.name)

    likely = next((common for common in _COMMON_DELIMITERS if common != delimiter and common in row[0]), None)
    if len(row) == 1 and likely:
        shown = clean(row[0])[0][:_SHOWN_CHARACTERS]
        name = "tab" if likely == "\t" else f"'{likely}'"
        raise InputError(
            f"{file.name} has only one column, {shown}; if its columns are separated otherwise, name the character: "
            f"--delimiter {name}"
        )

    maker.check_columns(names)
    return names


def numbered_columns(row: list[str]) -> list[str]:
    """Return the names of the columns of a file without a header: 1, 2 and so on."""
    return list(map(str, range(1, len(row) + 1)))


def raw_rows(file: InputFile, delimiter: str) -> Generator[tuple[bytes, list[str] | None], None, None]:
    """Yield all rows, including the header, each as bytes and as cells.

    The bytes include the line end. The cells are None if the row is rejected.
    """
    with closing(csv_rows(file, delimiter, keep=True)) as rows:
        for _, row, kept in rows:
            yield b"".join(line + b"\n" for line in kept), (None if isinstance(row, str) else row)


# A text up to this length cannot contain a number that orjson would round.
_MAX_EXACT_DIGITS = 16
# The first characters of JSON values, including NaN and Infinity.
_JSON_STARTS = frozenset('[{"-0123456789tfnNI \t\n\r')
# The position of an empty cell that is appended after the last column.
_ABSENT = -1


class RowMaker:
    """Makes the same documents of rows as `DocumentMaker` makes of records, but several times faster."""

    def __init__(self, header: list[str], file: str, fields: Fields, maker: DocumentMaker) -> None:
        self._header, self._file, self._fields, self._maker = header, file, fields, maker
        bodies = [name for name in maker.body_names if name in header]
        text_columns = (fields.id, fields.title, fields.source, fields.url, fields.published_at, *bodies)
        is_shared = fields.vector in text_columns and fields.vector in header
        # Each field has at most one column, and the names need no cleaning.
        self._is_direct = (
            not is_shared
            and not maker.joined
            and len(bodies) == (1 if fields.body is not None else min(1, len(bodies)))
            and not any(clean(name)[1] for name in header)
        )

        self._has_text = bool(bodies) or fields.title in header  # if not, the rows have vectors
        places = {name: at for at, name in enumerate(header)}

        def place(name: str) -> int:
            return places.get(name, _ABSENT)

        self._id, self._title = place(fields.id), place(fields.title)
        self._body = place(bodies[0]) if bodies else _ABSENT
        self._source, self._url = place(fields.source), place(fields.url)
        self._published_at, self._vector = place(fields.published_at), place(fields.vector)
        self._attributes = [(name, place(name)) for name in header if name not in maker.named]
        self._empty_id = f"'{fields.id}' is empty"
        self._wrong_length = cache(
            lambda columns: f"{columns:,} columns where the header has {len(header):,}"
        )

    def __call__(self, row: list[str], line: int) -> ReadDocument | Reject:
        """Make a document of a row; an empty cell of a column named in the fields is null."""
        if len(row) != len(self._header):
            return Reject(self._file, line, self._wrong_length(len(row)))
        external_id = "" if self._id == _ABSENT else row[self._id]
        if not external_id and self._fields.ids != "optional" and self._id != _ABSENT:
            return Reject(self._file, line, self._empty_id)

        # Leave unusual rows to the DocumentMaker, which checks more and is slower.
        is_empty = not self._has_text and row[self._vector].strip() in ("", "null")
        is_long = len(external_id) > ACCEPTED_ID_CHARACTERS
        if not self._is_direct or not external_id or is_empty or is_long or clean("".join(row))[1]:
            return self._maker.make(self._record(row), line)

        # This is the empty cell at the position _ABSENT.
        row.append("")
        # Skip the comprehension if it would be empty: this runs for each row.
        attributes: dict[str, object] = (
            {name: row[at] for name, at in self._attributes} if self._attributes else {}
        )
        vector = published_at = unreadable = None
        if row[self._vector] or row[self._published_at]:
            try:
                vector = checked_vector(_array(row[self._vector]), f"'{self._fields.vector}'")
            except InputError as error:
                return Reject(self._file, line, str(error), external_id)
            if row[self._published_at]:
                published_at, unreadable = instant_or_attribute(
                    row[self._published_at], self._fields, attributes
                )

        document = Document(
            external_id,
            row[self._title] or None,
            row[self._body] or None,
            row[self._source] or None,
            row[self._url] or None,
            published_at,
            attributes,
            vector,
        )
        return ReadDocument(document, self._file, line, 0, unreadable)

    def _record(self, row: list[str]) -> dict[str, object]:
        record: dict[str, object] = {
            column: None if not cell and column in self._maker.named else cell
            for column, cell in zip(self._header, row, strict=True)
        }
        if isinstance(cell := record.get(self._fields.vector), str):
            record[self._fields.vector] = _array(cell)
        return record


def _array(cell: str) -> object:
    """Parse a cell as JSON, an empty cell as null.

    A cell that is not JSON or is too long is returned unchanged, to be rejected because it is not a vector.
    """
    if not cell:
        return None
    if len(cell) > MAX_RECORD_VALUES and cell.count(",") > MAX_RECORD_VALUES:
        return cell
    # For most texts, looking at both ends is enough to see that they are not JSON.
    if cell[0] not in _JSON_STARTS or (cell.startswith("[") and not cell.rstrip().endswith("]")):
        return cell
    if len(cell) <= _MAX_EXACT_DIGITS:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(cell)
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


_NO_LINES: list[bytes] = []
_MAX_BLOCK_CHARACTERS = 2**28


def csv_rows(
    file: InputFile, delimiter: str, *, keep: bool
) -> Generator[tuple[int, list[str] | str, list[bytes]], None, None]:
    """Yield each row that is not blank: the number of its first line, and its cells or the reason why it is unreadable.

    After a row that cannot be read, reading continues at the next line. In a tab-separated file, a quote counts as an
    ordinary character if the cell that it opens would contain a tab after a line end. With `keep` the lines of each row
    are yielded too, without their line ends.
    """
    # The limit applies to the whole process, so it is only ever raised. The part of a row that is in memory never
    # exceeds the limit of the file by more than a block.
    csv.field_size_limit(max(csv.field_size_limit(), 2 * file.limit + _MAX_BLOCK_CHARACTERS))
    lines = _PhysicalLines(file, delimiter.encode(), keep=keep)
    source = chain.from_iterable(lines.blocks())
    rows = _reader(_without_comments(source, lines, file.comment), delimiter, file)
    begin, before, columns = 1, 0, 0  # `before` lines were read by earlier readers
    while True:
        try:
            for row in rows:
                end = before + rows.line_num
                columns = columns or len(row)
                if end == begin and not lines.are_checked:
                    if row:
                        yield begin, row, _NO_LINES
                elif lines.size_until(end) > file.limit:
                    yield begin, file.too_many if lines.has_dense(end) else file.too_long, _NO_LINES
                elif end > begin and delimiter == "\t" and _holds_delimiter(row, delimiter):
                    # The quote is an ordinary character of its cell: read the line again, below.
                    raise csv.Error
                elif row:
                    if end > begin and (quoted_lines := _lines_like_rows(row, delimiter, columns)):
                        file.progress.note_quoted_lines(file.name, begin, end, quoted_lines)
                    yield begin, row, lines.kept_until(end)
                if end > begin:
                    lines.forget()
                lines.begin = begin = end + 1
            return
        except csv.Error as error:
            end = before + rows.line_num
            if lines.size_until(end) > file.limit:
                yield begin, file.too_many if lines.has_dense(end) else file.too_long, _NO_LINES
                lines.forget()
                lines.begin = begin = end + 1
                continue
            if delimiter == "\t":
                (line,) = lines.kept_until(begin, always=True)
                cells = line.removesuffix(b"\r").decode("utf-8", "surrogateescape").split(delimiter)
                yield begin, cells, [line] if keep else _NO_LINES
            else:
                yield begin, f"not a valid row: {error}; {_QUOTE_ADVICE}", _NO_LINES

        # Continue at the line after the first line of the row that failed.
        again = chain(lines.read_again(begin + 1, end), source)
        before = begin
        lines.begin = begin = begin + 1
        rows = _reader(_without_comments(again, lines, file.comment), delimiter, file)


def _reader(lines: Iterable[str], delimiter: str, file: InputFile) -> "_csv.Reader":
    if file.quote == NO_QUOTE:
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, escapechar=file.escape)
    return csv.reader(
        lines, delimiter=delimiter, quotechar=file.quote or '"', escapechar=file.escape, strict=True
    )


def _without_comments(source: Iterable[str], lines: "_PhysicalLines", comment: str | None) -> Iterable[str]:
    """Return the lines from the current row on, with a blank line in place of each row that is a comment."""
    if comment is None:
        return source
    return (
        "\n" if number == lines.begin and line.startswith(comment) else line
        for number, line in enumerate(source, lines.begin)
    )


def _holds_delimiter(row: list[str], delimiter: str) -> bool:
    """Whether a cell contains a delimiter after a line end."""
    return any(delimiter in cell.partition("\n")[2] for cell in row)


def _lines_like_rows(row: list[str], delimiter: str, columns: int) -> int:
    """Return how many lines within cells look like rows.

    The lines of a cell count if each complete line among them has as many delimiters as the header.
    """
    lines_like_rows = 0
    for cell in row:
        _, *inner = cell.split("\n")
        whole = inner[:-1] or inner
        if columns > 1 and inner and all(line.count(delimiter) == columns - 1 for line in whole):
            lines_like_rows += len(inner)
    return lines_like_rows


class _PhysicalLines:
    """The lines of a file as text, and the size and lines of the current row.

    The current row begins at line `begin`, which may be in an earlier block.
    """

    def __init__(self, file: InputFile, delimiter: bytes, *, keep: bool) -> None:
        self._file = file
        self._delimiter = delimiter
        self._dense: list[int] = []  # the numbers of lines that have too many cells
        self._keep = keep
        self._lines: list[bytes | None] = []
        self._first = self.begin = 1
        self._carried: list[bytes | None] = []
        self._carried_bytes = 0
        self.are_checked = keep

    def blocks(self) -> Iterator[Iterator[str]]:
        """Yield blocks of lines, with their line ends."""
        for first, lines in self._file.blocks():
            self._carry()
            self._first, self._lines = first, lines
            content = self._joined()
            if len(content) > self._file.max_values:
                self._forget_dense()
                content = self._joined()
            self.are_checked = self._keep or None in lines
            text = StringIO(content.decode("utf-8", "surrogateescape") + "\n", newline="\n")
            yield self._without_long_row(text) if self._carried_bytes > self._file.limit else text

    def _joined(self) -> bytes:
        lines = self._lines
        return b"\n".join([line or b"" for line in lines] if None in lines else cast(list[bytes], lines))

    def _forget_dense(self) -> None:
        """Treat lines with too many cells like lines beyond the limit."""
        max_values = self._file.max_values
        for at, line in enumerate(self._lines):
            if line is not None and len(line) > max_values and line.count(self._delimiter) > max_values:
                self._lines[at] = None
                self._dense.append(self._first + at)

    def has_dense(self, end: int) -> bool:
        """Whether a line of the current row has too many cells."""
        return any(self.begin <= line <= end for line in self._dense)

    def _without_long_row(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines, but of the current row, which is already too long, only the quote that ends it.

        The row is inside quotes. A line with an even number of quotes leaves it inside them.
        """
        row = self.begin
        for line in lines:
            yield line if self.begin > row else '"\n' * (line.count('"') % 2)

    def forget(self) -> None:
        """Drop the part of a row that was in earlier blocks."""
        self._carried, self._carried_bytes = [], 0

    def size_until(self, end: int) -> int:
        """Return the size of the current row in bytes, without the newline that ends it."""
        return self._carried_bytes + self._size(self._of_row(end)) - 1

    def kept_until(self, end: int, *, always: bool = False) -> list[bytes]:
        """Return the lines of the current row if lines are kept or if `always` is true; otherwise an empty list."""
        if not self._keep and not always:
            return _NO_LINES
        return [line or b"" for line in (*self._carried, *self._of_row(end))][: end + 1 - self.begin]

    def read_again(self, begin: int, end: int) -> list[str]:
        """Return lines of the current row, to be read as separate rows."""
        if self._carried:
            self._lines, self._first = [*self._carried, *self._lines], self.begin
            self.forget()
        again = self._lines[begin - self._first : end + 1 - self._first]
        return [(line or b"").decode("utf-8", "surrogateescape") + "\n" for line in again]

    def _of_row(self, end: int) -> list[bytes | None]:
        return self._lines[max(0, self.begin - self._first) : end + 1 - self._first]

    def _carry(self) -> None:
        begun = self._of_row(self._first + len(self._lines) - 1)
        self._carried_bytes += self._size(begun)
        # A row beyond the limit is not read again. Keep its lines only if all lines are kept.
        if self._keep or self._carried_bytes <= self._file.limit:
            self._carried += begun

    def _size(self, lines: list[bytes | None]) -> int:
        # A dropped line puts the row beyond the limit, whatever its other lines are.
        return sum(self._file.limit + 2 if line is None else len(line) + 1 for line in lines)
