"""NumPy arrays as query parameters in PostgreSQL's binary format, without a Python object per element."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import psycopg
from psycopg.abc import PyFormat
from psycopg.adapt import Dumper
from psycopg.pq import Format

# Modules that only read rows are imported without NumPy.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearsim_db.similarity.arrays import Ints

# Kind and size of a dtype -> OIDs in pg_type of the element type and of the array type.
_OIDS = {
    "b1": (16, 1000),
    "i2": (21, 1005),
    "i4": (23, 1007),
    "i8": (20, 1016),
    "f4": (700, 1021),
    "f8": (701, 1022),
    "V16": (2950, 2951),
}


@dataclass(frozen=True, slots=True)
class PackedArray:
    """A one-dimensional array as a query parameter in binary format."""

    kind: "type[np.generic]"  # scalar type of the elements
    type_oid: int  # OID of the array type in pg_type
    content: bytes  # in PostgreSQL's binary format


def packed(values: "NDArray[np.generic]") -> PackedArray:
    """Pack a one-dimensional array of bool, int16, int32, int64, float32, float64, or of 16-byte void for uuid."""
    import numpy as np

    # The first character of a dtype's name is its byte order. An array in the other byte order raises KeyError.
    name, kind = values.dtype.str, values.dtype.type
    element_oid, array_oid = _OIDS[name[1:] if values.dtype.isnative else name]
    # The header: number of dimensions, whether NULLs may occur, type of the elements; then size and first subscript.
    if not len(values):
        return PackedArray(kind, array_oid, struct.pack(">iiI", 0, 0, element_oid))
    header = struct.pack(">iiIii", 1, 0, element_oid, len(values), 1)

    elements = np.empty(len(values), element_layout(values.dtype))
    elements["length"] = values.dtype.itemsize
    elements["value"] = values
    return PackedArray(kind, array_oid, header + elements.tobytes())


@cache
def element_layout(dtype: "np.dtype[np.generic]") -> "np.dtype[np.void]":
    """Return the binary format of an element of an array: its length and its value, both big-endian."""
    import numpy as np

    return np.dtype([("length", ">i4"), ("value", dtype.newbyteorder(">"))])


def packed_ids(ids: "Sequence[int] | Ints") -> PackedArray:
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
