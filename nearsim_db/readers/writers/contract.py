"""The contract of a writer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import BinaryIO


class RecordWriter(ABC):
    """Writes records to a binary stream, which it leaves open; memory does not grow with their number.

    `columns` are the names of the columns in order, if the format has a header or a schema; other keys of a record are
    not written. `close` completes what was written,
    `abandon` ends it incomplete.
    """

    def __init__(self, stream: BinaryIO, columns: Sequence[str]) -> None:
        self.stream = stream
        self.columns = tuple(columns)

    @abstractmethod
    def write(self, record: Mapping[str, object]) -> None:
        """Write a record of JSON values, datetimes and Decimals."""

    def close(self) -> None:
        """Write what is left."""
        return

    def abandon(self) -> None:
        """Release what the writer holds; nothing is written after it."""
        return
