"""What every reader takes and gives."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import ReadDocument, Reject


@dataclass(frozen=True, slots=True)
class Fields:
    """Which columns or keys of a file hold what; with `body` None it is 'text', or else 'body'."""

    id: str = "id"
    title: str = "title"
    body: str | None = None
    source: str = "source"
    url: str = "url"
    published_at: str = "published_at"
    vector: str = "vector"


class Reader(Protocol):
    """Reads one file, holding one record at a time.

    A record that cannot become a document is yielded as a Reject and reading goes on. Raises InputError where
    the file itself cannot be read on; what was yielded before stays good.
    """

    def __call__(self, file: InputFile, fields: Fields, /) -> Iterator[ReadDocument | Reject]: ...
