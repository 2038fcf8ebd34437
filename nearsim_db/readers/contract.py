"""The contract of a reader."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import ReadDocument, Reject


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns or keys of a file by purpose; without `body` it is 'text', or else 'body'.

    Unless `id_required`, the line of a record without an id is its id.
    """

    id: str = "id"
    title: str = "title"
    body: str | None = None
    source: str = "source"
    url: str = "url"
    published_at: str = "published_at"
    vector: str = "vector"
    id_required: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read.

    `format` is a suffix such as '.csv', instead of that of each file; `encoding` that of texts, by default UTF-8;
    `delimiter` that of CSV and TSV. `follow_links`: symbolic links in folders are followed.
    """

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    follow_links: bool = False


class Reader(Protocol):
    """Reads one file, one record at a time.

    A record that cannot become a document is yielded as a Reject, and reading continues. Raises InputError if
    the file itself cannot be read further; records yielded before remain valid.
    """

    def __call__(self, file: InputFile, fields: Fields, /) -> Iterator[ReadDocument | Reject]: ...
