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

# kind and size of a dtype -> (type of an element, type of the array), as pg_type numbers them
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
    """A one-dimensional array in wire format."""

    kind: "type[np.generic]"
    type_oid: int
    content: bytes


def packed(values: "NDArray[np.generic]") -> PackedArray:
    """Pack a one-dimensional array of bool, int16, int32, int64, float32, float64, or 16-byte void for uuid."""
    import numpy as np

    name = values.dtype.str
    kind, (element_oid, array_oid) = values.dtype.type, _OIDS[name[1:] if values.dtype.isnative else name]
    if not len(values):
        return PackedArray(kind, array_oid, struct.pack(">iiI", 0, 0, element_oid))
    rows = np.empty(len(values), row_type(values.dtype))
    rows["length"] = values.dtype.itemsize
    rows["value"] = values
    header = struct.pack(">iiIii", 1, 0, element_oid, len(values), 1)
    return PackedArray(kind, array_oid, header + rows.tobytes())


@cache
def row_type(dtype: "np.dtype[np.generic]") -> "np.dtype[np.void]":
    """Return the wire format of an element: its length and its value."""
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
