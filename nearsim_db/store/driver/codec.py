"""Conversion of hashes, sketches, vectors and whole columns between NumPy and PostgreSQL.

No conversion creates a Python object per element. For COPY BINARY, rows are built as structured arrays, whose dtype has
each field of a row preceded by its length.
"""

import struct
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import psycopg
from numpy.typing import NDArray
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

from nearsim_db.similarity.arrays import Hashes, Ints, Sketches
from nearsim_db.store.driver.arrays import element_layout, packed
from nearsim_db.store.driver.statements import GenerationStatements

if TYPE_CHECKING:
    from nearsim_db.similarity.sketch.family import Family


def to_bigint(values: Hashes) -> Ints:
    """Reinterpret unsigned 64-bit values as signed, for a bigint column."""
    return np.ascontiguousarray(values, np.uint64).view(np.int64)


def from_bigint(values: Ints) -> Hashes:
    """Reinterpret bigint values as unsigned 64-bit values."""
    return np.ascontiguousarray(values, np.int64).view(np.uint64)


def unpacked_ids(content: bytes) -> Ints:
    """Return the ids that a statement packed into eight bytes each, as int64."""
    return np.frombuffer(content, ">i8").astype(np.int64)


def sketch_bytes(sketches: NDArray[Any]) -> NDArray[Any]:
    """Return each row of an (n, k) sketch matrix as little-endian bytes, in an array of shape (n,) and dtype void.

    Sketches whose size depends on the text are bytes objects in an (n, 1) matrix, as `sketches_from` returns them; for
    these, the array has bytes objects.
    """
    if sketches.dtype.kind == "O":
        return sketches[:, 0]
    little = np.ascontiguousarray(sketches, sketches.dtype.newbyteorder("<"))
    return little.view(np.dtype((np.void, little.shape[1] * little.itemsize))).reshape(len(little))


def sketches_from(blobs: list[bytes], family: "Family") -> Sketches:
    """Return the (n, k) matrix of stored sketches; a blob may have several sketches, one after the other."""
    if family.ordered:
        sketches = np.empty((len(blobs), 1), object)
        sketches[:, 0] = blobs
        return sketches
    little = np.frombuffer(b"".join(blobs), family.dtype.newbyteorder("<"))
    return little.reshape(-1, family.k).astype(family.dtype, copy=False)


def empty_sketch(family: "Family") -> bytes:
    """Return the bytes of a sketch of zeros, or no bytes if the size of a sketch depends on the text."""
    return b"" if family.ordered else bytes(family.k * family.dtype.itemsize)


def digest_uuid(digest: bytes) -> uuid.UUID:
    """Return a 128-bit digest as a UUID."""
    return uuid.UUID(bytes=digest)


# The binary format of an array has the number of dimensions, whether NULLs may occur, and the type of the elements;
# then, for each dimension, its size and first subscript; then the elements.
_ARRAY_HEADER = struct.Struct(">iiI")
_DIMENSION_BYTES = 8
_REAL_BYTES = 4
_REAL_ARRAY_OID = 1021


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
        """Return the numbers, flattened to one dimension; the array is empty if any element is NULL (length -1)."""
        content = bytes(data)
        dimensions, _, _ = _ARRAY_HEADER.unpack_from(content)
        begin = _ARRAY_HEADER.size + _DIMENSION_BYTES * dimensions
        layout = element_layout(np.dtype(np.float32))

        # A NULL takes no bytes for its value, so that elements after it would be read at wrong places.
        count, excess_bytes = divmod(len(content) - begin, layout.itemsize)
        elements = np.frombuffer(content, layout, count, begin) if count else np.zeros(0, layout)
        if excess_bytes or (elements["length"] != _REAL_BYTES).any():
            elements = elements[:0]
        return elements["value"].astype(np.float32)


def load_vectors(cursor: psycopg.Cursor[tuple[object, ...]]) -> None:
    """Make a cursor return real[] columns, read in binary format, as float32 arrays."""
    cursor.adapters.register_loader(_REAL_ARRAY_OID, _VectorLoader)


_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_COPY_TRAILER = b"\xff\xff"
_PART_BYTES = 1 << 20
_PART_ROWS = 1_000

# Name and values of a column. Values are int16, int32, int64, float32, float64, bool, void of a fixed size (for bytea
# and uuid), or bytes objects of any size.
Column = tuple[str, NDArray[np.generic]]


def copy_columns(
    connection: psycopg.Connection[tuple[object, ...]],
    table: sql.Composable,
    columns: Sequence[Column],
    *,
    freeze: bool = False,
) -> int:
    """Load columns of equal length into a table, and return the number of rows.

    With `freeze`, rows are loaded in the state in which VACUUM would leave them. For this, the same transaction must
    have truncated the table before.
    """
    rows = len(columns[0][1])
    names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
    options = sql.SQL("FORMAT binary, FREEZE" if freeze else "FORMAT binary")
    command = sql.SQL("COPY {} ({}) FROM STDIN ({})").format(table, names, options)
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        copy.write(_COPY_HEADER)
        for part in _copy_parts(columns, rows):
            copy.write(part)
        copy.write(_COPY_TRAILER)
    return rows


def copy_rows(
    tables: GenerationStatements, parent: str, columns: Sequence[Column], *, freeze: bool = False
) -> int:
    """Load rows of a generation into its leaf of `parent`, as `copy_columns` does, and return the number of rows."""
    leaves = tables.leaves
    if leaves.is_shared(parent):
        generation_ids = np.full(len(columns[0][1]), leaves.generation_id, np.int32)
        columns = [*columns, ("generation_id", generation_ids)]
        tables.run("report_changes")
    return copy_columns(tables.connection.backend, leaves.table(parent), columns, freeze=freeze)


def _copy_parts(columns: Sequence[Column], rows: int) -> Iterator[memoryview]:
    """Yield rows in the format of COPY BINARY, about a megabyte at a time."""
    if any(values.dtype.kind == "O" for _, values in columns):
        yield from _copy_parts_of_objects(columns, rows)
        return

    fields: list[tuple[str, object]] = [("field_count", ">i2")]
    for position, (_, values) in enumerate(columns):
        fields.append((f"length{position}", ">i4"))
        fields.append((f"value{position}", values.dtype.newbyteorder(">")))
    layout = np.dtype(fields)

    step = max(1, _PART_BYTES // layout.itemsize)
    for begin in range(0, rows, step):
        end = min(begin + step, rows)
        part = np.empty(end - begin, layout)
        part["field_count"] = len(columns)
        for position, (_, values) in enumerate(columns):
            part[f"length{position}"] = values.dtype.itemsize
            part[f"value{position}"] = values[begin:end]
        yield part.view(np.uint8).data


def _copy_parts_of_objects(columns: Sequence[Column], rows: int) -> Iterator[memoryview]:
    """Yield rows as `_copy_parts` does, for columns that include bytes objects of different sizes."""
    fields = [_fields(values) for _, values in columns]
    field_count = len(columns).to_bytes(2)
    for begin in range(0, rows, _PART_ROWS):
        part = [column[begin : begin + _PART_ROWS] for column in fields]
        yield memoryview(
            b"".join([field for row in zip(*part, strict=True) for field in (field_count, *row)])
        )


def _fields(values: NDArray[Any]) -> list[bytes]:
    """Return each value of a column in the format of COPY BINARY: its length, then its bytes."""
    if values.dtype.kind == "O":
        return [len(value).to_bytes(4) + value for value in values.tolist()]
    size, content = values.dtype.itemsize, values.astype(values.dtype.newbyteorder(">")).tobytes()
    return [size.to_bytes(4) + content[at : at + size] for at in range(0, len(content), size)]
