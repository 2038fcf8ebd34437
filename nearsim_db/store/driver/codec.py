"""Conversion between NumPy and PostgreSQL, without a Python object per element: bigint, sketches, vectors, COPY.

The dtype of a structured array is the row of COPY BINARY, field lengths included.
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
from nearsim_db.store.driver.arrays import packed, row_type
from nearsim_db.store.driver.statements import GenerationStatements

if TYPE_CHECKING:
    from nearsim_db.similarity.sketch.family import Family


def to_bigint(values: Hashes) -> Ints:
    """Reinterpret 64 bits as signed, for a bigint column."""
    return np.ascontiguousarray(values, np.uint64).view(np.int64)


def from_bigint(values: Ints) -> Hashes:
    """Reinterpret bigint values as unsigned."""
    return np.ascontiguousarray(values, np.int64).view(np.uint64)


def unpacked_ids(content: bytes) -> Ints:
    """Return the ids that a statement packed as eight bytes each."""
    return np.frombuffer(content, ">i8").astype(np.int64)


def sketch_bytes(sketches: NDArray[Any]) -> NDArray[Any]:
    """Return each row of an (n, k) sketch matrix as little-endian bytes: (n,) of void, or of bytes objects."""
    if sketches.dtype.kind == "O":
        return sketches[:, 0]
    little = np.ascontiguousarray(sketches, sketches.dtype.newbyteorder("<"))
    return little.view(np.dtype((np.void, little.shape[1] * little.itemsize))).reshape(len(little))


def sketches_from(blobs: list[bytes], family: "Family") -> Sketches:
    """Return the (n, k) sketch matrix of stored bytes, of one sketch or of several in a row each."""
    if family.ordered:
        sketches = np.empty((len(blobs), 1), object)
        sketches[:, 0] = blobs
        return sketches
    little = np.frombuffer(b"".join(blobs), family.dtype.newbyteorder("<"))
    return little.reshape(-1, family.k).astype(family.dtype, copy=False)


def empty_sketch(family: "Family") -> bytes:
    """Return the bytes of a sketch of zeros, of no values if their number depends on the text."""
    return b"" if family.ordered else bytes(family.k * family.dtype.itemsize)


def digest_uuid(digest: bytes) -> uuid.UUID:
    """Return a 128-bit digest as uuid."""
    return uuid.UUID(bytes=digest)


_COUNTS = struct.Struct(">ii")  # number of dimensions; whether NULLs may occur
_HEADER_BYTES = 12  # the counts and the element type
_DIMENSION_BYTES = 8  # size and first subscript
_NUMBER_BYTES = 4
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
        wire = row_type(np.dtype(np.float32))
        count, rest = divmod(len(content) - begin, wire.itemsize)
        numbers = np.frombuffer(content, wire, count, begin) if count else np.zeros(0, wire)
        if rest or (numbers["length"] != _NUMBER_BYTES).any():
            numbers = numbers[:0]
        return numbers["value"].astype(np.float32)


def load_vectors(cursor: psycopg.Cursor[tuple[object, ...]]) -> None:
    """Make a cursor return real[] read in binary as float32 arrays."""
    cursor.adapters.register_loader(_ARRAY, _VectorLoader)


_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TRAILER = b"\xff\xff"
_SLICE_BYTES = 1 << 20
_ROWS_AT_ONCE = 1_000
Column = tuple[str, NDArray[np.generic]]


def copy_columns(
    connection: psycopg.Connection[tuple[object, ...]],
    table: sql.Composable,
    columns: Sequence[Column],
    *,
    freeze: bool = False,
) -> int:
    """Load columns of equal length into a table; return the number of rows.

    With `freeze`, for a table that this transaction has truncated, VACUUM has nothing left to do.

    A column is (name, values): int16, int32, int64, float32, float64, bool, void of fixed size (bytea, uuid), or bytes
    objects of any size.
    """
    rows = len(columns[0][1])
    names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
    options = sql.SQL("FORMAT binary, FREEZE" if freeze else "FORMAT binary")
    command = sql.SQL("COPY {} ({}) FROM STDIN ({})").format(table, names, options)
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        copy.write(_HEADER)
        for part in _packed(columns, rows):
            copy.write(part)
        copy.write(_TRAILER)
    return rows


def copy_rows(
    tables: GenerationStatements, parent: str, columns: Sequence[Column], *, freeze: bool = False
) -> int:
    """Load rows of a generation into its table, as `copy_columns` does; those of a shared one count for its VACUUM."""
    leaves = tables.leaves
    if leaves.is_shared(parent):
        generation = np.full(len(columns[0][1]), leaves.generation_id, np.int32)
        columns = [*columns, ("generation_id", generation)]
        tables.run("report_changes")
    return copy_columns(tables.connection.backend, leaves.table(parent), columns, freeze=freeze)


def _packed(columns: Sequence[Column], rows: int) -> Iterator[memoryview]:
    """Yield the rows as PGCOPY bytes, about a megabyte at a time."""
    if any(values.dtype.kind == "O" for _, values in columns):
        yield from _packed_rows(columns, rows)
        return
    layout = _row_layout(columns)
    step = max(1, _SLICE_BYTES // layout.itemsize)
    for begin in range(0, rows, step):
        end = min(begin + step, rows)
        packed = np.empty(end - begin, layout)
        packed["fields"] = len(columns)
        for position, (_, values) in enumerate(columns):
            packed[f"length{position}"] = values.dtype.itemsize
            packed[f"value{position}"] = values[begin:end]
        yield packed.view(np.uint8).data


def _packed_rows(columns: Sequence[Column], rows: int) -> Iterator[memoryview]:
    """Yield rows of which some fields have different sizes, as `_packed` does."""
    fields = [_sized(values) for _, values in columns]
    count = len(columns).to_bytes(2)
    for begin in range(0, rows, _ROWS_AT_ONCE):
        part = [own[begin : begin + _ROWS_AT_ONCE] for own in fields]
        yield memoryview(b"".join([one for row in zip(*part, strict=True) for one in (count, *row)]))


def _sized(values: NDArray[Any]) -> list[bytes]:
    """Return each value of a column after its length."""
    if values.dtype.kind == "O":
        return [len(one).to_bytes(4) + one for one in values.tolist()]
    size, content = values.dtype.itemsize, values.astype(values.dtype.newbyteorder(">")).tobytes()
    return [size.to_bytes(4) + content[at : at + size] for at in range(0, len(content), size)]


def _row_layout(columns: Sequence[Column]) -> np.dtype[np.void]:
    layout: list[tuple[str, object]] = [("fields", ">i2")]
    for position, (_, values) in enumerate(columns):
        layout.append((f"length{position}", ">i4"))
        layout.append((f"value{position}", values.dtype.newbyteorder(">")))
    return np.dtype(layout)
