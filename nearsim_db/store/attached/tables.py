"""Tables of applications and their columns, as the catalog describes them."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal, cast

from psycopg import sql
from psycopg.pq import TransactionStatus

from nearsim_db.errors import NotFoundError
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run, statement

Kind = Literal["id", "text", "title", "source", "url", "published_at"]

NUMBERS = ("smallint", "integer", "bigint")
ZONELESS = ("date", "timestamp without time zone")

_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_NAME = re.compile(r'(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)')


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of an attached table are read, by name."""

    id: str
    text: str
    title: str | None = None
    source: str | None = None
    url: str | None = None
    published_at: str | None = None

    def named(self) -> dict[Kind, str]:
        """Return the columns that are set, by kind."""
        return {cast(Kind, kind): name for kind, name in asdict(self).items() if name is not None}


@dataclass(frozen=True, slots=True)
class Relation:
    """A table and the user's rights on it; shown names and owners are quoted as in SQL.

    `foreign_code` is what lets a role that is not trusted run code with the user's rights when the table is read.
    """

    oid: int
    schema: str
    name: str
    shown_schema: str
    shown: str
    kind: str
    persistence: str
    is_owner: bool
    owner: str
    hides_rows: bool
    has_children: bool
    may_use_schema: bool
    may_our_owner_use_schema: bool
    foreign_code: str | None

    @property
    def identifier(self) -> sql.Identifier:
        """Return its name for statements."""
        return sql.Identifier(self.schema, self.name)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its declared and its base type, its collation, and who may read it."""

    name: str
    declared_type: int
    type: str
    collation: tuple[str, str] | None
    is_virtual: bool
    is_unique: bool
    is_readable: bool
    is_readable_to_owner: bool
    our_owner: str


def find_relation(connection: Connection, name: str) -> Relation:
    """Return the table of a name, quoted or not, with its schema or not. Raises NotFoundError."""
    matched = _NAME.fullmatch(name.strip())
    if matched is None:
        raise NotFoundError(
            f"{name!r} is not the name of a table; expected something like story or news.story"
        )
    schema, table = matched.groups()
    parameters = {"names": _meanings(table), "schemas": None if schema is None else _meanings(schema)}
    run(connection, "use_own_search_path")
    path = run(connection, "read_search_path").value()
    run(connection, "use_pinned_search_path")
    oid = run(connection, "find_relation", path=path, **parameters).value()
    found = None if oid is None else read_relation(connection, oid)
    if found is None:
        raise NotFoundError(f"there is no table {name!r}; add its schema if that is not on the search path")
    return found


def _meanings(name: str) -> list[str]:
    """Return the identifiers a name in SQL may mean: the quoted one, else as spelled, or in lower case."""
    if _QUOTED.fullmatch(name):
        return [name[1:-1].replace('""', '"')]
    return list(dict.fromkeys((name, name.lower())))


def read_relation(connection: Connection, oid: int) -> Relation | None:
    """Return a table as it is now; None if it was dropped."""
    return run(connection, "read_relation", relation=oid).first(partial(Relation, oid))


def lock_relation(connection: Connection, oid: int) -> Relation | None:
    """Return a table as it stays until the transaction ends, apart from its indexes; None if it was dropped.

    A table in a schema that the user may not use is not locked.
    """
    backend = connection.backend
    assert not backend.autocommit or backend.info.transaction_status == TransactionStatus.INTRANS
    found, locked = read_relation(connection, oid), None
    while found is not None and found.may_use_schema and found.identifier != locked:
        locked = found.identifier
        backend.execute(statement("lock_definition", relation=locked))
        found = read_relation(connection, oid)
    return found


def read_current_types(connection: Connection, relation: Relation, names: Sequence[str]) -> list[int]:
    """Return the present types of columns, also in a transaction with an older snapshot of the catalog.

    Raises UndefinedColumn for one that was renamed or dropped.
    """
    types = sql.SQL(", ").join(
        sql.SQL("CAST(pg_typeof({}) AS oid)").format(sql.Identifier(name)) for name in names
    )
    command = statement("read_current_types", types=types, relation=relation.identifier)
    return [int(one) for one in run(connection, command).row()]


def read_columns(connection: Connection, relation: Relation) -> dict[str, Column]:
    """Return the columns of a table, by name."""
    return {
        name: Column(name, declared_type, kind, None if collation is None else (schema, collation), *flags)
        for name, declared_type, kind, schema, collation, *flags in run(
            connection, "read_columns", relation=relation.oid
        ).rows()
    }


def resolve_columns(connection: Connection, relation: Relation, requested: Columns) -> Columns:
    """Resolve column names against the catalog. Raises NotFoundError, listing the columns of the table."""
    available = read_columns(connection, relation)
    found: dict[str, str] = {}
    for kind, name in requested.named().items():
        meant = next((one for one in _meanings(name) if one in available), None)
        if meant is None:
            raise NotFoundError(
                f"table {relation.shown} has no column {name!r}; it has: {', '.join(sorted(available))}"
            )
        found[kind] = meant
    return Columns(**found)
