"""What readers have in common: their contract, the fields and options of reading, and reading up to damage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Protocol

from nearsim_db.errors import InputError
from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import ReadDocument, Reject

_MAX_FIRST_REJECTS = 1_000
# The field that contains the id, unless another field is named.
ID = "id"


@dataclass(frozen=True, slots=True)
class ArgumentNames:
    """How messages refer to the arguments that name fields: as options of a command, or as parameters in Python."""

    id: str = "--id-field"
    title: str = "--title-field"
    body: str = "--body-field"
    across: str = "--across"
    within: str = "--within"
    source: str = "--source-field"
    published_at: str = "--published-field"
    dates: str = "--date-format"
    records: str = "--records"  # empty where no such argument exists
    only_from: str = "--only-from"


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of the columns or keys that contain the id, the title and so on.

    A name with dots, such as 'meta.id', is a path into objects, unless a key has exactly this name. In an array of
    objects, 'messages.text' joins all texts, and 'messages[0].text' is the first text. 'a,b' joins the values of two
    keys, unless a key has exactly this name: ids are joined by ':', titles and bodies by line ends. Missing and empty
    titles and bodies are skipped when they are joined.
    """

    id: str = ID
    title: str = "title"
    body: str | None = None  # None means 'text', or 'body' if a record has no 'text'
    source: str = "source"
    url: str = "url"
    published_at: str = "published_at"
    vector: str = "vector"
    date_formats: tuple[
        str, ...
    ] = ()  # formats of `datetime.strptime`, tried before the usual forms of a date
    # What happens to a record without an id: it is rejected ("required"), it is rejected if the first record of its
    # file has an id ("whole"), or it is never rejected ("optional"). A record without an id that is not rejected gets
    # its place as its id, such as 'stories.jsonl:7'.
    ids: Literal["required", "whole", "optional"] = "required"
    # How messages refer to the options or parameters that set these fields.
    arguments: ArgumentNames = ArgumentNames()


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read."""

    format: str | None = None
    """A suffix such as '.csv', which replaces the suffix of each file."""
    encoding: str | None = None
    """The encoding of texts, by default UTF-8."""
    delimiter: str | None = None
    """The character between the columns of CSV and TSV."""
    quote: str | None = None
    """The character that encloses cells of CSV and TSV, by default the double quote; or `none`."""
    escape: str | None = None
    """The character that makes the next character an ordinary one."""
    comment: str | None = None
    """The character that begins lines to skip."""
    has_header: bool = True
    """Whether CSV, TSV and sheets begin with the names of the columns; if not, these are 1, 2 and so on."""
    records: str | None = None
    """The path of the array of records in a JSON object."""
    table: str | None = None
    """The name of a sheet, or of a table of SQLite."""
    query: str | None = None
    """Selects rows of SQLite, instead of a table."""
    follow_links: bool = False
    """Whether symbolic links in folders are followed."""


Row = Mapping[str, object]  # JSON values by column


class RowReader(Protocol):
    """Reads the rows of a file, each with its number from 1, or 0 for the whole file.

    A string instead of a row is the reason why the row is rejected. Raises InputError if the file itself cannot be read
    further.
    """

    def __call__(self, file: InputFile, /) -> Iterator[tuple[int, Row | str]]: ...


class Reader(Protocol):
    """Reads a file, one record at a time.

    A record that cannot become a document is yielded as a Reject, and reading continues. Raises InputError if the file
    itself cannot be read further; the records yielded before remain valid.
    """

    def __call__(self, file: InputFile, fields: Fields, /) -> Iterator[ReadDocument | Reject]: ...


class UntilDamage:
    """The records of a source up to the first read error, which is stored in `damage`."""

    def __init__(self, records: Iterator[ReadDocument | Reject]) -> None:
        self._records = records
        self._begun: list[ReadDocument | Reject] = []
        self.damage: InputError | None = None

    def has_documents(self) -> bool:
        """Read up to the first document; return whether there is one, or as many rejects as are kept in memory."""
        try:
            for record in self._records:
                self._begun.append(record)
                if isinstance(record, ReadDocument) or len(self._begun) == _MAX_FIRST_REJECTS:
                    return True
        except InputError as error:
            self.damage = error
        return False

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        try:
            yield from chain(self._begun, self._records)
        except InputError as error:
            self.damage = error
