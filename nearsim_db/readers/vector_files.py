"""Files of vectors that accompany the documents: .npy, joined by position, or .parquet, joined by id."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from nearsim_db.errors import InputError
from nearsim_db.readers.source import PARQUET, Source
from nearsim_db.readers.vector_file import VectorFile
from nearsim_db.readers.vector_matrix import VectorMatrix
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
