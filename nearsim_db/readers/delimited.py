"""CSV and TSV with a header; fields in double quotes may contain newlines."""

import csv
import json
from collections.abc import Generator, Iterator
from contextlib import closing

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker, no_column, no_text_column
from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import ReadDocument, Reject
from nearsim_db.similarity.text.clean import clean

_SHOWN_CHARACTERS = 500
_COMMON_DELIMITERS = ",;\t|"
DELIMITERS = {".csv": ",", ".tsv": "\t"}


def read_csv(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read a comma-separated file; see `_read`."""
    return _read(file, fields, file.delimiter or DELIMITERS[".csv"])


def read_tsv(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read a tab-separated file; see `_read`."""
    return _read(file, fields, file.delimiter or DELIMITERS[".tsv"])


def _read(file: InputFile, fields: Fields, delimiter: str) -> Iterator[ReadDocument | Reject]:
    """Read rows as documents.

    An empty cell of a column named in `fields` is null; a vector cell is a JSON array; other columns become
    attributes, as strings. A row's line is its first one. Raises InputError for a header without the required
    columns.
    """
    name = file.name
    maker = DocumentMaker(name, fields)
    rows = _rows(file, delimiter)
    header: list[str] | None = None
    for line, row in rows:
        if header is None:
            header = _header(row, file, fields, maker, delimiter)
        elif isinstance(row, str):
            yield Reject(name, line, row)
        elif len(row) != len(header):
            yield Reject(name, line, f"{len(row):,} columns where the header has {len(header):,}")
        else:
            record: dict[str, object] = {
                column: None if not cell and column in maker.named else cell
                for column, cell in zip(header, row, strict=True)
            }
            if record.get(fields.vector) is not None:
                record[fields.vector] = _array(record[fields.vector])
            yield maker.make(record, line)


def _array(cell: object) -> object:
    """Parse a cell as JSON; return a cell that is not JSON unchanged, to be rejected as a vector later."""
    try:
        return json.loads(str(cell))
    except (ValueError, RecursionError):
        return cell


def _header(
    row: list[str] | str, file: InputFile, fields: Fields, maker: DocumentMaker, delimiter: str
) -> list[str]:
    if isinstance(row, str):
        raise InputError(f"cannot read the header of {file.name}: {row}")
    shown = clean(", ".join(row))[0][:_SHOWN_CHARACTERS]
    if len(set(row)) < len(row):
        raise InputError(f"duplicate column names in {file.name}; rename them (columns: {shown})")
    other = next((one for one in _COMMON_DELIMITERS if one != delimiter and one in row[0]), None)
    if len(row) == 1 and other:
        name = "tab" if other == "\t" else f"'{other}'"
        raise InputError(
            f"{file.name} has only one column, {shown}; if its columns are separated otherwise, name the character: "
            f"--delimiter {name}"
        )
    if fields.id not in row:
        raise InputError(no_column(file.name, fields.id, shown))
    if set(row).isdisjoint((fields.title, fields.vector, *maker.body_names)):
        raise InputError(no_text_column(file.name, maker.missing_text, shown))
    return row


def _rows(file: InputFile, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yield each row that is not blank with its first line number, or the reason that it cannot be read."""
    return ((line, row) for line, row, _ in _rows_with_lines(file, delimiter, keep=False))


def raw_rows(file: InputFile, delimiter: str) -> Generator[tuple[bytes, list[str] | None], None, None]:
    """Yield the header and each record as bytes, with its line end, and as cells; None for one that is rejected."""
    with closing(_rows_with_lines(file, delimiter, keep=True)) as rows:
        for _, row, kept in rows:
            yield (
                b"".join(f"{line}\n".encode("utf-8", "surrogateescape") for line in kept),
                (None if isinstance(row, str) else row),
            )


def _rows_with_lines(
    file: InputFile, delimiter: str, *, keep: bool
) -> Generator[tuple[int, list[str] | str, list[str]], None, None]:
    """Yield what `_rows` does, with the lines of the row without their ends if `keep` is set."""
    # The limit belongs to the process: it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), file.limit))
    lines = _DecodedLines(file, keep=keep)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_row()
        begin = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield begin, f"not a valid row: {error}; check for an unclosed or misplaced quote", []
            continue
        if lines.row_bytes > file.limit:
            yield begin, file.too_long, []
        elif row:
            yield begin, row, lines.kept


class _DecodedLines:
    """The lines of a file as text, with the size in bytes of the current row, and its lines if `keep` is set."""

    def __init__(self, file: InputFile, *, keep: bool) -> None:
        self._lines = file.lines()
        self._keep = keep
        self.kept: list[str] = []
        self._limit = file.limit
        self.row_bytes = 0

    def begin_row(self) -> None:
        # Exclude the newline that ends the row.
        self.row_bytes = -1
        self.kept = []

    def __iter__(self) -> "_DecodedLines":
        return self

    def __next__(self) -> str:
        _, line = next(self._lines)
        if line is None:
            self.row_bytes += self._limit + 2
            return "\n"
        self.row_bytes += len(line) + 1
        text = line.decode("utf-8", "surrogateescape")
        if self._keep:
            self.kept.append(text)
        return f"{text}\n"
