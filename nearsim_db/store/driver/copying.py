"""COPY BINARY from NumPy: the dtype of a structured array is the PGCOPY row, field lengths included."""

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql

_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TRAILER = b"\xff\xff"
_SLICE_BYTES = 1 << 20

Column = tuple[str, NDArray[np.generic]]


def copy_columns(
    connection: "psycopg.Connection[tuple[object, ...]]",
    table: sql.Composable,
    columns: Sequence[Column],
    *,
    freeze: bool = False,
) -> int:
    """Load columns of equal length into a table; return the number of rows.

    With `freeze`, for a table that this transaction has truncated, VACUUM has nothing left to do.

    A column is (name, values): int16, int32, int64, float32, float64, bool or void of fixed size (bytea, uuid).
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


def _packed(columns: Sequence[Column], rows: int) -> Iterator[memoryview]:
    """Yield the rows as PGCOPY bytes, about a megabyte at a time."""
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


def _row_layout(columns: Sequence[Column]) -> np.dtype[np.void]:
    layout: list[tuple[str, object]] = [("fields", ">i2")]
    for position, (_, values) in enumerate(columns):
        layout.append((f"length{position}", ">i4"))
        layout.append((f"value{position}", values.dtype.newbyteorder(">")))
    return np.dtype(layout)
