"""CSV and TSV, with a header; fields are quoted with double quotes and may then hold newlines."""

import csv
import json
from collections.abc import Iterator

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import ReadDocument, Reject
from nearsim_db.similarity.text.clean import clean

_SHOWN_CHARACTERS = 500
_FOREIGN_DELIMITERS = {",": ";\t|", "\t": ",;|"}
_DELIMITER_RULE = "columns are separated by commas in .csv and by tabs in .tsv; rename or convert the file"


def read_csv(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """The documents of a comma-separated file; see `_read`."""
    return _read(file, fields, ",")


def read_tsv(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """The documents of a tab-separated file; see `_read`."""
    return _read(file, fields, "\t")


def _read(file: InputFile, fields: Fields, delimiter: str) -> Iterator[ReadDocument | Reject]:
    """An empty cell of a column that `fields` names is null, that of the vector is an array as JSON writes them; other
    columns are attributes, kept as strings.

    A row's line is the one it begins on. Raises InputError for a header without the columns that are needed.
    """
    maker = DocumentMaker(file.name, fields)
    rows = _rows(file, delimiter)
    header: list[str] | None = None
    for line, row in rows:
        if header is None:
            header = _header(row, file, fields, maker, delimiter)
        elif isinstance(row, str):
            yield Reject(file.name, line, row)
        elif len(row) != len(header):
            yield Reject(file.name, line, f"{len(row):,} columns where the header has {len(header):,}")
        else:
            record: dict[str, object] = {
                name: None if not cell and name in maker.named else cell
                for name, cell in zip(header, row, strict=True)
            }
            if record.get(fields.vector) is not None:
                record[fields.vector] = _array(record[fields.vector])
            yield maker.make(record, line)


def _array(cell: object) -> object:
    """What a cell holds as JSON; the cell itself, which is no vector then, where it holds none."""
    try:
        return json.loads(str(cell))
    except (ValueError, RecursionError):
        return cell


def _header(
    row: list[str] | str, file: InputFile, fields: Fields, maker: DocumentMaker, delimiter: str
) -> list[str]:
    if isinstance(row, str):
        raise InputError(f"the header of {file.name} cannot be read: {row}")
    shown = clean(", ".join(row))[0][:_SHOWN_CHARACTERS]
    if len(set(row)) < len(row):
        raise InputError(f"{file.name} has columns of the same name: {shown}; rename them")
    if len(row) == 1 and not set(row[0]).isdisjoint(_FOREIGN_DELIMITERS[delimiter]):
        raise InputError(f"{file.name} has one column only: {shown}; {_DELIMITER_RULE}")
    if fields.id not in row:
        raise InputError(f"{file.name} has no column '{fields.id}' but {shown}; name the id field")
    if set(row).isdisjoint((fields.title, fields.vector, *maker.body_names)):
        raise InputError(f"{file.name} has {maker.without_text} but {shown}; name the title or body field")
    return row


def _rows(file: InputFile, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Each row that is not blank with the line it begins on, or the reason why it cannot be read."""
    # The limit is the process's, not the reader's: raised, never lowered.
    csv.field_size_limit(max(csv.field_size_limit(), file.limit))
    lines = _DecodedLines(file)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_row()
        begin = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield begin, f"not a row: {error}; a quote may be open or misplaced"
            continue
        if lines.row_bytes > file.limit:
            yield begin, file.too_long
        elif row:
            yield begin, row


class _DecodedLines:
    """The lines of a file as text, and how many bytes the row being read has."""

    def __init__(self, file: InputFile) -> None:
        self._lines = file.lines()
        self._limit = file.limit
        self.row_bytes = 0

    def begin_row(self) -> None:
        # The newline that ends the row is no part of it.
        self.row_bytes = -1

    def __iter__(self) -> "_DecodedLines":
        return self

    def __next__(self) -> str:
        _, line = next(self._lines)
        if line is None:
            self.row_bytes += self._limit + 2
            return "\n"
        self.row_bytes += len(line) + 1
        return line.decode("utf-8", "surrogateescape") + "\n"
