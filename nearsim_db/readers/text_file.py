"""Text files: each is one document, with the content as its body."""

from collections.abc import Iterator
from pathlib import Path

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.readers.encodings import control_share
from nearsim_db.readers.input_file import InputFile, file_type
from nearsim_db.records import ReadDocument, Reject

TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".html", ".htm"})

_DEFAULT_FIELDS = Fields()


def read_text(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Yield one document with the file name as its id, on line 0; a Reject if the file cannot be read."""
    yield text_document(file, file.path.name)


def text_document(file: InputFile, external_id: str) -> ReadDocument | Reject:
    """Return the document of a text file; a Reject if it cannot be read or exceeds the limit."""
    try:
        content = file.content()
    except InputError as error:
        return Reject(file.name, 0, str(error))
    if content is None:
        return Reject(file.name, 0, file.too_long)
    if (share := control_share(content)) is not None:
        return Reject(
            file.name,
            0,
            f"binary, not text: {share:.0%} of its first bytes are control characters; convert it "
            "to text, or leave it out",
        )
    record = {_DEFAULT_FIELDS.id: external_id, "body": content.decode("utf-8", "surrogateescape")}
    return DocumentMaker(file.name, _DEFAULT_FIELDS).make(record, 0)


def is_text(path: Path) -> bool:
    """Whether a file has the suffix of a text file (`TEXT_SUFFIXES`), compressed or not."""
    return file_type(path) in TEXT_SUFFIXES
