"""Files with the vectors of documents: .npy files, matched by position, and .parquet files, matched by id."""

import os
import tempfile
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import Unreadable
from nearsim_db.readers.document_maker import checked_id
from nearsim_db.readers.input_file import STANDARD_INPUT, InputFile
from nearsim_db.readers.parquet import open_parquet, rows_of
from nearsim_db.readers.source import PARQUET, Source
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import ReadDocument, Reject


class VectorFile(ABC):
    """Vectors that replace those in the documents of a source.

    Use it in a `with` block. `warnings` is set when all records have been read.
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
        """Raise InputError, before anything is written, if the vectors certainly do not fit the source."""

    @abstractmethod
    def joined(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        """Yield the records with their vectors; yield a Reject for a record whose vector cannot be used.

        Raises InputError at the end if the vectors do not fit the records.
        """


def with_vector(record: ReadDocument, value: object, name: str) -> ReadDocument | Reject:
    try:
        vector = checked_vector(value, name)
    except InputError as error:
        return Reject(record.file, record.line, str(error), record.document.external_id)
    return replace(record, document=replace(record.document, vector=vector))


_MATRIX = ".npy"


def open_vectors(path: Path | None) -> VectorFile:
    """Open the vectors of a .npy or .parquet file; if `path` is None, the documents keep their own vectors.

    Raises InputError for a file that cannot contain vectors.
    """
    if path is None:
        return _NoFile(Path())

    kinds: dict[str, type[VectorFile]] = {_MATRIX: VectorMatrix, PARQUET: VectorTable}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise InputError(
            f"{path} is not a vector file; vectors are read from {' and '.join(kinds)}, or from the documents"
        )

    if not path.exists():
        raise InputError(f"cannot read {path}: no such file; check the path")
    if not path.is_file():
        raise InputError(
            f"{path} is not a regular file; vectors cannot be read from a pipe: save them to a file first"
        )

    return kind(path)


class _NoFile(VectorFile):
    def check(self, source: Source) -> None:
        return None

    def joined(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        return iter(records)


_MISMATCH_REMEDY = (
    "vectors may have been assigned to the wrong documents; fix the file and rerun the same command"
)


class VectorMatrix(VectorFile):
    """A memory-mapped matrix of floats; row i belongs to the i-th record of all files, counting rejected records."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._rows: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {path} as a NumPy array: {error}") from error
        if not (isinstance(self._rows, np.ndarray) and self._rows.ndim == 2 and self._rows.dtype.kind == "f"):
            shape, dtype = getattr(self._rows, "shape", "?"), getattr(self._rows, "dtype", "?")
            raise InputError(f"{path} has {dtype} of shape {shape}; it must have floats of shape (n, d)")

    def check(self, source: Source) -> None:
        # This reads the files twice, which is better than assigning vectors to the wrong documents.
        if all(path != STANDARD_INPUT and (path.is_file() or path.is_dir()) for path in source.paths):
            records = _count(source)
            if records is not None and records != len(self._rows):
                raise InputError(f"{self._mismatch(records)}; nothing was written")

    def joined(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        read = 0
        for read, record in enumerate(records, 1):
            if read > len(self._rows):
                # Continue to count, because the message has the number of all records.
                continue
            if isinstance(record, Reject):
                yield record
            else:
                yield with_vector(record, self._rows[read - 1], f"row {read:,} of {self.path}")
        if read != len(self._rows):
            raise InputError(f"{self._mismatch(read)}; {_MISMATCH_REMEDY}")

    def _mismatch(self, records: int) -> str:
        return f"{self.path} has {len(self._rows):,} rows, but {records:,} records were read"


def _count(source: Source) -> int | None:
    """Count the records of a source; None if it cannot be read to its end."""
    try:
        return sum(1 for _ in source)
    except InputError:
        return None


_SHOWN_IDS = 3


class VectorTable(VectorFile):
    """A table with the columns id and vector.

    The vectors are copied to a temporary file, so that only ids and offsets are in memory.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._numbers = tempfile.TemporaryFile()  # noqa: SIM115  closed on exit
        self._ends = array("q", [0])  # where the numbers of each row end in the temporary file
        self._rows: dict[str, int] = {}
        self._reasons: dict[int, str] = {}
        try:
            self._load()
        except BaseException:
            self._numbers.close()
            raise

    def __exit__(self, *error: object) -> None:
        self._numbers.close()

    def check(self, source: Source) -> None:
        """Do nothing: ids can be matched only while records are read."""

    def joined(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        matched = bytearray(len(self._rows))
        without_vector: list[str] = []
        for record in records:
            row = self._rows.get(_id_of(record) or "")
            if row is not None:
                matched[row] = True
            if isinstance(record, Reject):
                yield record
            elif row is None:
                without_vector.append(record.document.external_id)
                yield record
            else:
                yield self._with_row(record, row)

        unmatched = [name for name, row in self._rows.items() if not matched[row]]
        self.warnings = (
            *_warning(without_vector, "documents have no vector in", self.path),
            *_warning(unmatched, "ids without a document are in", self.path),
        )

    def _with_row(self, record: ReadDocument, row: int) -> ReadDocument | Reject:
        if row in self._reasons:
            return Reject(record.file, record.line, self._reasons[row], record.document.external_id)
        begin, end = self._ends[row : row + 2]
        content = os.pread(self._numbers.fileno(), end - begin, begin)
        vector = array("f", content) if content else None
        return replace(record, document=replace(record.document, vector=vector))

    def _load(self) -> None:
        with closing(open_parquet(self.path)) as opened:
            missing = {"id", "vector"}.difference(opened.schema_arrow.names)
            if missing:
                raise InputError(f"{self.path} has no column {' and no column '.join(sorted(missing))}")

            for number, values in enumerate(rows_of(opened, self.path, ["id", "vector"]), 1):
                if values is None:
                    raise InputError(f"{self.path}, row {number:,}: {InputFile(self.path).too_long}")
                external_id = self._checked_id(values, number)
                if self._rows.setdefault(external_id, number - 1) != number - 1:
                    earlier = self._rows[external_id] + 1
                    raise InputError(
                        f"duplicate id {external_id!r} in {self.path}, rows {earlier:,} and {number:,}"
                    )
                self._ends.append(
                    self._ends[-1] + self._numbers.write(self._content(values["vector"], number))
                )
        self._numbers.flush()

    def _checked_id(self, values: dict[str, Any], number: int) -> str:
        try:
            return checked_id(values, "id")
        except InputError as error:
            raise InputError(f"{self.path}, row {number:,}: {error}") from None

    def _content(self, value: object, number: int) -> bytes:
        try:
            if isinstance(value, Unreadable):
                raise InputError(f"cannot read row {number:,} of {self.path}: {value.reason}")
            vector = checked_vector(value, f"row {number:,} of {self.path}")
        except InputError as error:
            self._reasons[number - 1] = str(error)
            return b""
        return b"" if vector is None else vector.tobytes()


def _id_of(record: ReadDocument | Reject) -> str | None:
    return record.external_id if isinstance(record, Reject) else record.document.external_id


def _warning(ids: list[str], statement: str, path: Path) -> tuple[str, ...]:
    if not ids:
        return ()
    shown = ", ".join(map(repr, ids[:_SHOWN_IDS])) + (" ..." if len(ids) > _SHOWN_IDS else "")
    return (f"{len(ids):,} {statement} {path}: {shown}",)
