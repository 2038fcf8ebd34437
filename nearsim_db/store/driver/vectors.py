"""Writing and reading real[] without a Python object per number."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import psycopg
from numpy.typing import NDArray
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

from nearsim_db.store.driver.arrays import packed

_COUNTS = struct.Struct(">ii")  # number of dimensions; whether NULLs may occur
_HEADER_BYTES = 12  # the counts and the element type
_DIMENSION_BYTES = 8  # size and first subscript
_NUMBERS = np.dtype([("length", ">i4"), ("number", ">f4")])
_EMPTY = np.zeros(0, _NUMBERS)
_ARRAY = 1021  # real[], as pg_type numbers it


def array_literal(vector: Sequence[float] | NDArray[np.floating[Any]] | None) -> str | None:
    """Format a vector of finite numbers as a real[] literal, rounded to 32-bit floats; None for None."""
    if vector is None:
        return None
    numbers = np.ascontiguousarray(vector, np.float32)
    return "{" + orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode() + "}"


def array_content(vector: Sequence[float] | NDArray[np.floating[Any]] | None) -> bytes | None:
    """Return a vector of finite numbers as real[] in the binary format, rounded to 32-bit floats; None for None."""
    return None if vector is None else packed(np.asarray(vector, np.float32)).content


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> NDArray[np.float32]:
        """Return the numbers flattened to one dimension; empty if any is NULL, which has a length of -1."""
        content = bytes(data)
        dimensions, _ = _COUNTS.unpack_from(content)
        begin = _HEADER_BYTES + _DIMENSION_BYTES * dimensions
        count, rest = divmod(len(content) - begin, _NUMBERS.itemsize)
        numbers = np.frombuffer(content, _NUMBERS, count, begin) if count else _EMPTY
        if rest or (numbers["length"] != _NUMBERS["number"].itemsize).any():
            numbers = _EMPTY
        return numbers["number"].astype(np.float32)


def load_vectors(cursor: "psycopg.Cursor[tuple[object, ...]]") -> None:
    """Make a cursor return real[] read in binary as float32 arrays."""
    cursor.adapters.register_loader(_ARRAY, _VectorLoader)
