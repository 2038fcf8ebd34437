"""SQLite: the rows of a table, a view or a query, read without writing to the file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import as_json
from nearsim_db.readers.contract import Row
from nearsim_db.readers.document_maker import check_names
from nearsim_db.readers.input_file import InputFile

_MARK = b"SQLite format 3\0"
_TABLES = """
SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name
"""
_TABLES_SHOWN = 20


def read_sqlite(file: InputFile) -> Iterator[tuple[int, Row | str]]:
    """Yield the rows of a query or of a table, each with its number from 1.

    If the file has only one table, the table need not be named. Raises InputError for a file, a table or a query that
    cannot be read.
    """
    path = file.on_disk("SQLite")
    with path.open("rb") as stream:
        if stream.read(len(_MARK)) != _MARK:
            raise InputError(
                f"{file.name} is not a database of SQLite; rename it, or name its format with --input-format"
            )

    done = 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
            # An untrusted file may contain views that call functions, and values of any size.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, file.limit)
            cursor = connection.execute(file.query or _query_of_table(connection, file))
            if cursor.description is None:
                raise InputError(f"--query has no rows in {file.name}; give a SELECT")
            names = [name for name, *_ in cursor.description]
            check_names(names, file.name)
            for done, values in enumerate(cursor, 1):
                yield done, dict(zip(names, map(as_json, values), strict=True))
    except (sqlite3.Error, UnicodeDecodeError) as error:  # damaged names are decoded by sqlite3 itself
        after = f" after {done:,} complete rows" if done else ""
        raise InputError(f"cannot read {file.name} as SQLite{after}: {error}") from error
    file.progress.bytes_read += path.stat().st_size


def _query_of_table(connection: sqlite3.Connection, file: InputFile) -> str:
    """Return a query for the named table, or for the only table of the file."""
    tables = [name for (name,) in connection.execute(_TABLES)]
    listed = ", ".join(tables[:_TABLES_SHOWN]) + (", ..." if len(tables) > _TABLES_SHOWN else "")
    if file.table is None and len(tables) != 1:
        raise InputError(f"{file.name} has {len(tables)} tables; name one with --table ({listed})")
    name = tables[0] if file.table is None else file.table
    if name not in tables:
        raise InputError(f"{file.name} has no table {name!r}; name another one with --table ({listed})")
    quoted = name.replace('"', '""')
    return f'SELECT * FROM "{quoted}"'  # noqa: S608  one of the tables, and quoted
