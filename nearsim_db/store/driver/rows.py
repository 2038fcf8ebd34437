"""Query results as typed values, made by psycopg's row factories."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, LiteralString, TypeVar

from psycopg import sql
from psycopg.rows import args_row, scalar_row

from nearsim_db.store.driver.connection import Connection

Row = TypeVar("Row")
Query = LiteralString | bytes | sql.Composed
Parameters = Mapping[str, object] | None


def fetch_all(
    connection: Connection,
    make: Callable[..., Row],
    query: Query,
    parameters: Parameters = None,
    *,
    binary: bool = False,
    prepare: bool | None = None,
) -> list[Row]:
    """Return all rows, each made from its columns in their order."""
    with connection.backend.cursor(binary=binary, row_factory=args_row(make)) as cursor:
        return cursor.execute(query, parameters, prepare=prepare).fetchall()


def fetch_first(
    connection: Connection,
    make: Callable[..., Row],
    query: Query,
    parameters: Parameters = None,
    *,
    binary: bool = False,
) -> Row | None:
    """Return the first row, made from its columns, or None if there is none."""
    with connection.backend.cursor(binary=binary, row_factory=args_row(make)) as cursor:
        return cursor.execute(query, parameters).fetchone()


def fetch_one(
    connection: Connection,
    make: Callable[..., Row],
    query: Query,
    parameters: Parameters = None,
    *,
    binary: bool = False,
) -> Row:
    """Return the first row of a query that always has one, made from its columns."""
    row = fetch_first(connection, make, query, parameters, binary=binary)
    assert row is not None
    return row


def fetch_values(
    connection: Connection, query: Query, parameters: Parameters = None, *, binary: bool = False
) -> list[Any]:
    """Return the first column of all rows."""
    with connection.backend.cursor(binary=binary, row_factory=scalar_row) as cursor:
        return cursor.execute(query, parameters).fetchall()


def fetch_value(
    connection: Connection, query: Query, parameters: Parameters = None, *, binary: bool = False
) -> Any:
    """Return the first column of the first row, or None if there is no row."""
    with connection.backend.cursor(binary=binary, row_factory=scalar_row) as cursor:
        return cursor.execute(query, parameters).fetchone()


def stream_rows(
    connection: Connection,
    make: Callable[..., Row],
    query: Query,
    parameters: Parameters = None,
    *,
    name: str,
    batch: int = 5000,
) -> Iterator[Row]:
    """Yield rows from a server-side cursor of that name, `batch` at a time."""
    with connection.backend.cursor(name=name, row_factory=args_row(make)) as cursor:
        cursor.itersize = batch
        yield from cursor.execute(query, parameters)


def fetch_row(
    connection: Connection, query: Query, parameters: Parameters = None, *, binary: bool = False
) -> tuple[Any, ...]:
    """Return the columns of the first row of a query that always has one."""
    with connection.backend.cursor(binary=binary) as cursor:
        row = cursor.execute(query, parameters).fetchone()
    assert row is not None
    return row


def fetch_rows(
    connection: Connection,
    query: Query,
    parameters: Parameters = None,
    *,
    binary: bool = False,
    prepare: bool | None = None,
) -> list[tuple[Any, ...]]:
    """Return the columns of all rows."""
    with connection.backend.cursor(binary=binary) as cursor:
        return cursor.execute(query, parameters, prepare=prepare).fetchall()
