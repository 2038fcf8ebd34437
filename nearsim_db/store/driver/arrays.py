"""NumPy arrays, sketches and vectors as query parameters and values in PostgreSQL's binary format, in whole arrays."""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson
import psycopg
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

# Modules that only read rows are imported without NumPy.
if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from psycopg.abc import Buffer, PyFormat


def to_bigint(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Reinterpret 64 bits as signed, for a bigint column."""
    import numpy as np

    return np.ascontiguousarray(values, np.uint64).view(np.int64)


def from_bigint(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Reinterpret bigint values as unsigned."""
    import numpy as np

    return np.ascontiguousarray(values, np.int64).view(np.uint64)


def sketch_bytes(sketches: NDArray[np.generic]) -> NDArray[np.void]:
    """Return each row of an (n, k) sketch matrix as little-endian bytes: (n,) of void."""
    import numpy as np

    little = np.ascontiguousarray(sketches, sketches.dtype.newbyteorder("<"))
    return little.view(np.dtype((np.void, little.shape[1] * little.itemsize))).reshape(len(little))


def sketches_from(blobs: list[bytes], dtype: np.dtype[np.generic], k: int) -> NDArray[np.generic]:
    """Return the (n, k) sketch matrix of stored bytes."""
    return sketches_packed(b"".join(blobs), dtype, k)


def sketches_packed(content: bytes, dtype: np.dtype[np.generic], k: int) -> NDArray[np.generic]:
    """Return the (n, k) sketch matrix of stored bytes, one after the other."""
    import numpy as np

    return np.frombuffer(content, dtype.newbyteorder("<")).reshape(-1, k).astype(dtype, copy=False)


def digest_uuid(digest: bytes) -> uuid.UUID:
    """Return a 128-bit digest as uuid."""
    return uuid.UUID(bytes=digest)


# kind and size of a dtype -> (type of an element, type of the array), as pg_type numbers them
_OIDS = {
    "i2": (21, 1005),
    "i4": (23, 1007),
    "i8": (20, 1016),
    "f4": (700, 1021),
    "f8": (701, 1022),
    "V16": (2950, 2951),
}


@dataclass(frozen=True, slots=True)
class PackedArray:
    """A one-dimensional array in wire format."""

    kind: type[np.generic]
    type_oid: int
    content: bytes


def packed(values: NDArray[np.generic]) -> PackedArray:
    """Pack a one-dimensional array of int16, int32, int64, float32, float64, or 16-byte void for uuid."""
    import numpy as np

    name = values.dtype.str
    kind, (element_oid, array_oid) = values.dtype.type, _OIDS[name[1:] if values.dtype.isnative else name]
    if not len(values):
        return PackedArray(kind, array_oid, struct.pack(">iiI", 0, 0, element_oid))
    rows = np.empty(len(values), _row_type(values.dtype))
    rows["length"] = values.dtype.itemsize
    rows["value"] = values
    header = struct.pack(">iiIii", 1, 0, element_oid, len(values), 1)
    return PackedArray(kind, array_oid, header + rows.tobytes())


@cache
def _row_type(dtype: np.dtype[np.generic]) -> np.dtype[np.void]:
    """Return the wire format of an element: its length and its value."""
    import numpy as np

    return np.dtype([("length", ">i4"), ("value", dtype.newbyteorder(">"))])


def packed_ids(ids: Sequence[int] | NDArray[np.int64]) -> PackedArray:
    """Pack ids as bigint[]."""
    import numpy as np

    return packed(np.asarray(ids, np.int64))


class _PackedDumper(Dumper):
    format = Format.BINARY

    def get_key(self, obj: PackedArray, format: PyFormat) -> tuple[type, type]:
        return (self.cls, obj.kind)

    def upgrade(self, obj: PackedArray, format: PyFormat) -> Dumper:
        dumper = type(self)(self.cls)
        dumper.oid = obj.type_oid
        return dumper

    def dump(self, obj: PackedArray) -> bytes:
        return obj.content


psycopg.adapters.register_dumper(PackedArray, _PackedDumper)


_COUNTS = struct.Struct(">ii")  # number of dimensions; whether NULLs may occur
_HEADER_BYTES = 12  # the counts and the element type
_DIMENSION_BYTES = 8  # size and first subscript
_NUMBER_BYTES = 4
_ARRAY = 1021  # real[], as pg_type numbers it


def array_literal(vector: Sequence[float] | NDArray[np.floating[Any]] | None) -> str | None:
    """Format a vector of finite numbers as a real[] literal, rounded to 32-bit floats; None for None."""
    import numpy as np

    if vector is None:
        return None
    numbers = np.ascontiguousarray(vector, np.float32)
    return "{" + orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode() + "}"


def array_content(vector: Sequence[float] | NDArray[np.floating[Any]] | None) -> bytes | None:
    """Return a vector of finite numbers as real[] in the binary format, rounded to 32-bit floats; None for None."""
    import numpy as np

    return None if vector is None else packed(np.asarray(vector, np.float32)).content


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> NDArray[np.float32]:
        """Return the numbers flattened to one dimension; empty if any is NULL, which has a length of -1."""
        import numpy as np

        content = bytes(data)
        dimensions, _ = _COUNTS.unpack_from(content)
        begin = _HEADER_BYTES + _DIMENSION_BYTES * dimensions
        wire = _row_type(np.dtype(np.float32))
        count, rest = divmod(len(content) - begin, wire.itemsize)
        numbers = np.frombuffer(content, wire, count, begin) if count else np.zeros(0, wire)
        if rest or (numbers["length"] != _NUMBER_BYTES).any():
            numbers = numbers[:0]
        return numbers["value"].astype(np.float32)


def load_vectors(cursor: psycopg.Cursor[tuple[object, ...]]) -> None:
    """Make a cursor return real[] read in binary as float32 arrays."""
    cursor.adapters.register_loader(_ARRAY, _VectorLoader)
