"""The readers of spreadsheets, SQLite, mail and references by suffix, and the documents that their rows become."""

from collections.abc import Iterator

from nearsim_db.readers.bibtex import read_bibtex
from nearsim_db.readers.contract import Fields, RowReader
from nearsim_db.readers.document_maker import DocumentMaker, number_as_text
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.mail import read_mbox, read_message
from nearsim_db.readers.ris import read_ris
from nearsim_db.readers.spreadsheet import read_spreadsheet
from nearsim_db.readers.sqlite import read_sqlite
from nearsim_db.records import ReadDocument, Reject

SQLITE = ".sqlite"
ROW_READERS: dict[str, RowReader] = {
    ".xlsx": read_spreadsheet,
    SQLITE: read_sqlite,
    ".sqlite3": read_sqlite,
    ".db": read_sqlite,
    ".mbox": read_mbox,
    ".eml": read_message,
    ".ris": read_ris,
    ".bib": read_bibtex,
}


def documents_of_rows(read: RowReader, file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Yield the documents of a file; where a title or text is expected, a number counts as text."""
    maker = DocumentMaker(file.name, fields)
    texts = {fields.title, *maker.body_names}
    for line, row in read(file):
        if isinstance(row, str):
            yield Reject(file.name, line, row)
        elif sum(len(value) for value in row.values() if isinstance(value, str)) > file.limit:
            yield Reject(file.name, line, file.too_long)
        else:
            record = {name: number_as_text(value) if name in texts else value for name, value in row.items()}
            yield maker.make(record, line)
