"""CSV and TSV with a header; fields in double quotes may contain newlines."""

from collections.abc import Generator, Iterator
from contextlib import closing

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker, no_column, no_text_column
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.row_maker import RowMaker
from nearsim_db.readers.rows import csv_rows
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
    make: RowMaker | None = None
    for line, row, _ in csv_rows(file, delimiter, keep=False):
        if make is None:
            maker = DocumentMaker(name, fields)
            make = RowMaker(_header(row, file, fields, maker, delimiter), name, fields, maker)
        elif isinstance(row, str):
            yield Reject(name, line, row)
        else:
            yield make(row, line)


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


def raw_rows(file: InputFile, delimiter: str) -> Generator[tuple[bytes, list[str] | None], None, None]:
    """Yield the header and each record as bytes, with its line end, and as cells; None for one that is rejected."""
    with closing(csv_rows(file, delimiter, keep=True)) as rows:
        for _, row, kept in rows:
            yield b"".join(line + b"\n" for line in kept), (None if isinstance(row, str) else row)
