"""The contract of a file of vectors that accompanies the documents."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

from nearsim_db.errors import InputError
from nearsim_db.readers.source import Source
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import ReadDocument, Reject


class VectorFile(ABC):
    """Vectors to put into the documents of a source, replacing their own.

    Use it in a `with` block. `warnings` is set after all records were read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    @abstractmethod
    def check(self, source: Source) -> None:
        """Raise InputError, before anything is written, if the file is known not to fit the source."""

    @abstractmethod
    def joined(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        """Yield the records with their vectors; a Reject if a vector cannot be used.

        Raises InputError at the end if the file does not fit the records.
        """


def with_vector(record: ReadDocument, value: object, name: str) -> ReadDocument | Reject:
    try:
        vector = checked_vector(value, name)
    except InputError as error:
        return Reject(record.file, record.line, str(error), record.document.external_id)
    return replace(record, document=replace(record.document, vector=vector))
