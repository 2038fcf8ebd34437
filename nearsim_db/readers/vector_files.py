"""Files of vectors that accompany the documents: .npy, joined by position, or .parquet, joined by id."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.readers.input_file import STANDARD_INPUT
from nearsim_db.readers.source import PARQUET, Source
from nearsim_db.readers.vector_file import VectorFile, with_vector
from nearsim_db.readers.vector_table import VectorTable
from nearsim_db.records import ReadDocument, Reject

_MATRIX = ".npy"


def open_vectors(path: Path | None) -> VectorFile:
    """Open the vectors of a .npy or .parquet file; for None those in the documents themselves are used.

    Raises InputError for a file that cannot have vectors.
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
    """A memory-mapped matrix of floats; row i belongs to the i-th record of all files, rejected ones included."""

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
