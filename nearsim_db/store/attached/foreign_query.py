"""Reading the rows of a query on any PostgreSQL database, in a read-only transaction."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.types.json import set_json_loads

from nearsim_db.errors import InputError, NearsimError
from nearsim_db.store.driver.connection import load_dates, load_moments, parse_json
from nearsim_db.store.driver.engine import parse_url
from nearsim_db.store.driver.statements import statement

_ROWS_PER_FETCH = 500
_CURSOR = "nearsim_foreign_query"


@contextmanager
def open_query(url: str, query: str) -> Iterator[tuple[list[str], Generator[tuple[Any, ...], None, None]]]:
    """Yield the names of a query's columns, and its rows, which are read through a server-side cursor.

    Raises InputError if the server cannot be reached or refuses the query; this may also happen while rows are read.
    """
    with _translated(), _connected(url) as connection, connection.cursor(name=_CURSOR) as cursor:
        connection.execute(statement("plan_for_all_rows"))
        cursor.itersize = _ROWS_PER_FETCH
        # The caller's SQL runs on the caller's database as it is; nothing is filled in.
        cursor.execute(query.rstrip().rstrip(";").encode())
        names = [column.name for column in cursor.description or ()]
        yield names, _rows(cursor)


def _rows(cursor: "psycopg.ServerCursor[tuple[Any, ...]]") -> Generator[tuple[Any, ...], None, None]:
    with _translated():
        yield from cursor


def _connected(url: str) -> "psycopg.Connection[tuple[Any, ...]]":
    try:
        parameters: dict[str, Any] = {**parse_url(url)}
    except NearsimError as error:
        raise InputError(
            "the URL of the source is not a PostgreSQL URL; expected something like postgresql://user@host/database"
        ) from error
    connection = psycopg.connect(
        **parameters, application_name="nearsim", connect_timeout=10, client_encoding="utf8"
    )
    connection.read_only = True
    load_moments(connection)
    load_dates(connection)
    set_json_loads(parse_json, connection)
    return connection


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise InputError(f"cannot read from the source database: {str(error).strip()}") from error
