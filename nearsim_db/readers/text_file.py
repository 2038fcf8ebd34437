"""Text files: each is one document, whose body is the content."""

import os
from collections.abc import Iterator
from pathlib import Path

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.readers.input_file import InputFile, file_type
from nearsim_db.records import ReadDocument, Reject

TEXT_KINDS = frozenset({".txt", ".text", ".md", ".html", ".htm"})

_OWN_FIELDS = Fields()


def read_text(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """One document, called as the file is, on line 0; a Reject if the file cannot be read."""
    yield text_document(file, file.path.name)


def text_document(file: InputFile, external_id: str) -> ReadDocument | Reject:
    """The document of a text file; a Reject if it cannot be read or is beyond the limit."""
    try:
        content = file.content()
    except InputError as refusal:
        return Reject(file.name, 0, str(refusal))
    if content is None:
        return Reject(file.name, 0, file.too_long)
    record = {_OWN_FIELDS.id: external_id, "body": content.decode("utf-8", "surrogateescape")}
    return DocumentMaker(file.name, _OWN_FIELDS).make(record, 0)


def is_text(path: Path) -> bool:
    """Whether a file is text by its ending (`TEXT_KINDS`, also compressed)."""
    return file_type(path) in TEXT_KINDS


def files_of(folder: Path) -> Iterator[Path | OSError]:
    """The files of a folder and its subfolders, of whatever kind.

    A folder's own files come first, then its subfolders, each by name. What begins with a dot is left out, and
    links to folders are not followed. An OSError is a subfolder that cannot be listed.
    """
    problems: list[OSError] = []
    for place, subfolders, names in os.walk(folder, onerror=problems.append):
        yield from problems
        problems.clear()
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith("."):
                yield path
    yield from problems
