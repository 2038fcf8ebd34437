"""Tables of applications as the catalog describes them: whether one can be attached, and how it is read."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

from psycopg import sql

from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.rows import fetch_first, fetch_rows, fetch_value
from nearsim_db.store.driver.statements import INDEX_SCHEMA, SCHEMA, statement

Kind = Literal["id", "text", "title", "source", "url", "published_at"]

_NUMBERS = ("smallint", "integer", "bigint")
_TEXTS = ("text", "character varying")
_IDS = (*_NUMBERS, "uuid", *_TEXTS)
_ZONELESS = ("date", "timestamp without time zone")
_MOMENTS = ("timestamp with time zone", *_ZONELESS)
_TABLES = ("r", "p")
_NOT_TABLES = {"v": "a view", "m": "a materialised view", "f": "a foreign table"}
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
        by_kind = {
            "id": self.id,
            "text": self.text,
            "title": self.title,
            "source": self.source,
            "url": self.url,
            "published_at": self.published_at,
        }
        return {cast(Kind, kind): name for kind, name in by_kind.items() if name is not None}


@dataclass(frozen=True, slots=True)
class Relation:
    """A table and the user's rights on it; shown names and owners are quoted as in SQL."""

    oid: int
    schema: str
    name: str
    shown_schema: str
    shown: str
    kind: str
    persistence: str
    is_owner: bool
    owner: str
    is_owner_trusted: bool
    hides_rows: bool
    has_children: bool
    may_use_schema: bool
    may_our_owner_use_schema: bool

    @property
    def identifier(self) -> sql.Identifier:
        """Return its name for statements."""
        return sql.Identifier(self.schema, self.name)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its base type, its collation, and who may read it."""

    name: str
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
    driver(connection).execute(statement("use_own_search_path"))
    oid = fetch_value(connection, statement("find_relation"), parameters)
    driver(connection).execute(statement("use_pinned_search_path"))
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
    return fetch_first(connection, partial(Relation, oid), statement("read_relation"), {"relation": oid})


def read_columns(connection: Connection, relation: Relation) -> dict[str, Column]:
    """Return the columns of a table, by name."""
    return {
        name: Column(name, kind, None if collation is None else (schema, collation), *flags)
        for name, kind, schema, collation, *flags in fetch_rows(
            connection, statement("read_columns"), {"relation": relation.oid}
        )
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


def check_table(relation: Relation) -> None:
    """Raise InputError, with the reason, if a table cannot be attached, or not by this user."""
    reason = _unfit(relation) or _not_allowed(relation)
    if reason is not None:
        raise InputError(f"{relation.shown} cannot be attached: {reason}")


def check_columns(connection: Connection, relation: Relation, columns: Columns) -> None:
    """Raise InputError, with the reason, if columns of a table cannot be read as documents."""
    reason = unreadable(connection, relation, columns)
    if reason is None and not read_columns(connection, relation)[columns.id].is_unique:
        reason = (
            f"column {columns.id!r} is not unique: make it the primary key or give it a unique index "
            "of its own, on all rows"
        )
    if reason is not None:
        raise InputError(f"{relation.shown} cannot be attached: {reason}")


def unreadable(connection: Connection, relation: Relation, columns: Columns) -> str | None:
    """Return why columns of a table cannot serve in their declared role; None if they can."""
    if relation.kind not in _TABLES:
        return _not_a_table(relation)
    available = read_columns(connection, relation)
    kinds = {"id": _IDS, "published_at": _MOMENTS}
    for kind, name in columns.named().items():
        column, wanted = available.get(name), kinds.get(kind, _TEXTS)
        if column is None:
            return f"its column {name!r} does not exist"
        if column.type not in wanted:
            return f"column {name!r} is of type {column.type}; the {kind} may be {', '.join(wanted)}"
        if column.is_virtual:
            return f"column {name!r} is a virtual generated column, whose changes no trigger sees"
        if not column.is_readable:
            return f"the user may not read column {name!r}; run: GRANT SELECT ON {relation.shown} TO <role>"
    if relation.hides_rows:
        return "its row-level security hides rows from this user, which the index would lack"
    return None


def _unfit(relation: Relation) -> str | None:
    if relation.schema in (SCHEMA, INDEX_SCHEMA):
        return f"it is in nearsim's own schema; move it by ALTER TABLE {relation.shown} SET SCHEMA"
    if relation.schema in ("pg_catalog", "information_schema"):
        return "it belongs to PostgreSQL"
    if relation.kind not in _TABLES:
        return _not_a_table(relation)
    if relation.persistence == "t":
        return "it is a temporary table, visible to one session only"
    if relation.has_children:
        return "other tables inherit from it, whose rows its triggers do not see"
    return None


def _not_a_table(relation: Relation) -> str:
    return f"it is {_NOT_TABLES.get(relation.kind, 'no table')}, on which triggers do not report changes"


def _not_allowed(relation: Relation) -> str | None:
    if not relation.may_use_schema:
        return (
            f"the user may not use its schema; run: GRANT USAGE ON SCHEMA {relation.shown_schema} TO <role>"
        )
    if not relation.is_owner:
        return (
            f"only its owner can create triggers that always fire, and drop them; GRANT {relation.owner} to the user, "
            "or attach it as a user with that role"
        )
    return None


def key_of(column: Column) -> sql.Composable:
    """Return the table's id that `attached.external_id` denotes."""
    external_id = sql.Identifier("attached", "external_id")
    if column.type in _NUMBERS:
        return sql.SQL("nearsim.as_bigint({})").format(external_id)
    if column.type == "uuid":
        return sql.SQL("nearsim.as_uuid({})").format(external_id)
    assert column.collation is not None
    return sql.SQL("({} COLLATE {})").format(external_id, sql.Identifier(*column.collation))


def type_of(column: Column) -> sql.SQL:
    """Return the type by which ids of a table are compared."""
    if column.type in _NUMBERS:
        return sql.SQL("bigint")
    return sql.SQL("uuid") if column.type == "uuid" else sql.SQL("text")


def fields_of(available: dict[str, Column], columns: Columns) -> sql.Composable:
    """Return the columns of a document from a row of `source`; dates without a time zone are UTC."""
    fields = [_as_text(columns.id, "external_id")]
    fields += [_as_text(getattr(columns, name), name) for name in ("title", "source", "url")]
    published = None if columns.published_at is None else available[columns.published_at]
    fields.append(sql.SQL("CAST({} AS timestamptz) AS published_at").format(_moment(published)))
    text = sql.Identifier("source", columns.text)
    fields.append(sql.SQL("CAST(md5(coalesce({}, '')) AS uuid) AS body_digest").format(text))
    fields.append(sql.SQL("length({}) AS body_length").format(text))
    return sql.SQL(", ").join(fields)


def _moment(column: Column | None) -> sql.Composable:
    """Return the publication time; NULL for dates beyond the last timestamp."""
    if column is None:
        return sql.SQL("NULL")
    value = sql.Identifier("source", column.name)
    if column.type not in _ZONELESS:
        return value
    moment = sql.SQL("CAST({} AS timestamp) AT TIME ZONE 'UTC'").format(value)
    if column.type != "date":
        return moment
    beyond = sql.SQL("isfinite({value}) AND {value} >= CAST('294277-01-01' AS date)").format(value=value)
    return sql.SQL("CASE WHEN {beyond} THEN NULL ELSE {moment} END").format(beyond=beyond, moment=moment)


def _as_text(column: str | None, name: str) -> sql.Composable:
    value = sql.SQL("NULL") if column is None else sql.Identifier("source", column)
    return sql.SQL('CAST({} AS text) COLLATE "C" AS {}').format(value, sql.Identifier(name))
