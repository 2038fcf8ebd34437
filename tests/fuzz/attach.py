"""Target: tables of any name, key and content that collections are attached to."""

import random
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from benchmarks.own_server import binaries_by_major, own_server
from nearsim_db.admin.attach import attach_table
from nearsim_db.indexing import attached_sweep, attached_table
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.records import CollectionId, DocId
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.store.documents import documents
from tests.fuzz.contract import Check, Target

_TABLES_PER_SESSION = 100
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_PIECES = [
    "a", "Z", "_", "%", "%s", "%(x)s", "{}", '"', "'", ".", " ", "$1", ":x", "::", ";", "--", "\\", "é",
    "文", "😀", "\n", "1", "select",
]  # fmt: skip
_KEYS = {
    "smallint": ["-32768", "0", "1", "32767"],
    "integer": ["-2147483648", "0", "2147483647"],
    "bigint": ["-9223372036854775808", "1", "9223372036854775807"],
    "uuid": [str(uuid.UUID(int=number)) for number in (0, 1, 2**128 - 1)],
    "text": ["", " ", "a", "A", "%s", "é" * 512, "é" * 513, "x" * 1024, "x" * 1025, "'", "\\", "\n", "a\tb"],
    "varchar(1025)": ["", "b", "y" * 1025, "{}"],
}
_TEXTS = [None, "", "one two three", "%s %", "\\", "é" * 3_000, "\u0001", "'; --", "a\tb\nc"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table, its rows, and rows to write after it is attached; None deletes a row."""

    name: str
    key: str
    text: str
    title: str
    key_type: str
    rows: dict[str | None, str | None]
    changes: dict[str | None, str | None]
    deleted: frozenset[str]


def draw_tables(rng: random.Random, count: int) -> list[Table]:
    """Return tables with distinct column names."""
    return [_table(rng) for _ in range(count)]


def _table(rng: random.Random) -> Table:
    key, text, title = "", "", ""
    while len({key, text, title, ""}) < 4:
        key, text, title = _name(rng), _name(rng), _name(rng)
    kind = rng.choice(list(_KEYS))
    rows, changes = _rows(rng, kind), _rows(rng, kind)
    deleted = frozenset(one for one in rows if one is not None and one not in changes and rng.random() < 0.5)
    return Table(_name(rng), key, text, title, kind, rows, changes, deleted)


def _name(rng: random.Random) -> str:
    name = "".join(rng.choices(_PIECES, k=rng.choice([1, 2, 3, 30])))
    return name.encode()[:63].decode(errors="ignore")


def _rows(rng: random.Random, kind: str) -> dict[str | None, str | None]:
    keys: list[str | None] = rng.sample(_KEYS[kind], rng.randrange(len(_KEYS[kind]) + 1))
    return {key: rng.choice(_TEXTS) for key in keys}


@contextmanager
def open_attach() -> Iterator[Check]:
    """Start a server; the check attaches each table, writes to it, and compares the documents with its rows."""
    with own_server(max(binaries_by_major()), _SETTINGS) as cluster, ExitStack() as sessions:
        database, application = _open_sessions(sessions, cluster.dsn())
        checked = 0

        def check(tables: Sequence[Table], rng: random.Random) -> None:
            nonlocal database, application, checked
            for table in tables:
                # A session keeps the compiled triggers of every table that it ever wrote to.
                if checked % _TABLES_PER_SESSION == _TABLES_PER_SESSION - 1:
                    sessions.close()
                    database, application = _open_sessions(sessions, cluster.dsn())
                checked += 1
                try:
                    _check(database, application, table)
                finally:
                    application.execute("DROP SCHEMA application CASCADE; CREATE SCHEMA application")

        yield check


def _open_sessions(stack: ExitStack, dsn: str) -> tuple[Database, psycopg.Connection]:
    database = stack.enter_context(Database.connect(dsn))
    application = stack.enter_context(psycopg.connect(dsn, autocommit=True))
    application.execute("CREATE SCHEMA IF NOT EXISTS application; SET search_path = application")
    return database, application


def _check(database: Database, application: psycopg.Connection, table: Table) -> None:
    name = sql.Identifier("application", table.name)
    application.execute(
        sql.SQL("CREATE TABLE {} ({} {} PRIMARY KEY, {} text, {} text)").format(
            name,
            sql.Identifier(table.key),
            sql.SQL(table.key_type),
            sql.Identifier(table.text),
            sql.Identifier(table.title),
        )
    )
    _write(application, table, name, table.rows)
    quoted = [sql.Identifier(one).as_string() for one in (table.key, table.text, table.title)]
    columns = Columns(quoted[0], quoted[1], title=quoted[2])
    attached = attach_table(database, name.as_string(), columns, "fuzzed")
    try:
        with database.transaction() as connection:
            collection_id = collection_rows.get_collection(connection, attached.collection).collection_id
        attached_sweep.sweep(database.engine, collection_id)
        _compare(database, collection_id, table.rows)
        _write(application, table, name, table.changes)
        for key in table.deleted:
            application.execute(
                sql.SQL("DELETE FROM {} WHERE {} = {}").format(
                    name, sql.Identifier(table.key), sql.Literal(key)
                )
            )
        attached_table.catch_up(database.engine)
        kept = {key: text for key, text in table.rows.items() if key not in table.deleted}
        _compare(database, collection_id, kept | table.changes)
    finally:
        delete_collection(database, attached.collection)


def _write(
    application: psycopg.Connection, table: Table, name: sql.Identifier, rows: dict[str | None, str | None]
) -> None:
    for key, text in rows.items():
        application.execute(
            sql.SQL(
                "INSERT INTO {} VALUES ({}, {}, NULL) ON CONFLICT ({}) DO UPDATE SET {} = excluded.{}"
            ).format(
                name,
                sql.Literal(key),
                sql.Literal(text),
                *map(sql.Identifier, (table.key, table.text, table.text)),
            )
        )


def _compare(database: Database, collection_id: CollectionId, rows: dict[str | None, str | None]) -> None:
    """Assert that the documents are the rows whose key can be an external id, with their texts."""
    expected = {key: text or None for key, text in rows.items() if key and len(key.encode()) <= 1024}
    with database.transaction() as connection:
        rows_found = connection.execute(
            "SELECT doc_id, external_id FROM nearsim.document WHERE collection_id = %s", (collection_id,)
        )
        names = {DocId(int(str(row[0]))): str(row[1]) for row in rows_found.fetchall()}
        found = {
            names[one.doc_id]: one.body or None
            for batch in documents.stream_documents(connection, collection_id, list(names))
            for one in batch
        }
    assert found == expected, f"documents {found!r}, rows {expected!r}"


ATTACH = {"attach": Target(draw_tables, open_attach, 1)}
