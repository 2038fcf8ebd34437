"""Tables of applications and their columns, as the catalog describes them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, cast

from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb

from nearsim_db.errors import InputError, NearsimError, NotFoundError
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.driver.statements import Expression, run, statement

Kind = Literal["id", "text", "title", "source", "url", "published_at", "where", "collection_field"]
COMPUTABLE: tuple[Kind, ...] = ("text", "title", "source", "url", "where")

NUMBERS = ("smallint", "integer", "bigint")
ZONELESS = ("date", "timestamp without time zone")

_WORD = re.compile(r'\w+|"(?:[^"]|"")+"')
_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_NAME = re.compile(r'(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)')


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of an attached table are read, by name, and `where`, the condition on rows that are documents.

    What is in `computed` is an SQL expression instead of a column, with the names of the columns that it reads. If the
    values of `collection_field` have a collection each, `where` holds for one of them, and `given_where` for all.
    """

    id: str
    text: str
    title: str | None = None
    source: str | None = None
    url: str | None = None
    published_at: str | None = None
    where: str | None = None
    computed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    collection_field: str | None = None
    given_where: str | None = None

    def named(self) -> dict[Kind, str]:
        """Return the columns and expressions that are set, by kind."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _NO_KINDS}
        return {cast(Kind, kind): name for kind, name in given.items() if name is not None}

    def given(self) -> dict[Kind, str]:
        """Return what `named` does as it was given, without the condition that `collection_field` adds."""
        return self.named() if self.collection_field is None else self.of_all_values().named()

    def of_all_values(self) -> "Columns":
        """Return the columns with the condition on rows of all collections."""
        computed = dict(self.computed)
        if self.given_where is None:
            computed.pop("where", None)
        return replace(self, where=self.given_where, computed=computed)

    def as_parameters(self) -> dict[str, Any]:
        """Return the parameters of the statement that stores them."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**given, "computed": Jsonb(dict(self.computed))}

    def plain(self) -> dict[Kind, str]:
        """Return the columns that are read as they are, by kind."""
        return {kind: name for kind, name in self.named().items() if kind not in self.computed}

    def read(self) -> list[str]:
        """Return the names of all columns that are read, each once, the id first."""
        in_expressions = [name for names in self.computed.values() for name in names]
        return list(dict.fromkeys([*self.plain().values(), *in_expressions]))


_NO_KINDS = ("computed", "given_where")


def join_texts(parts: Sequence[str]) -> str:
    """Return the column or expression of a text that has several, one after the other, each on a line of its own."""
    if len(parts) == 1:
        return parts[0]
    return " || chr(10) || ".join(f"coalesce(CAST(({part}) AS text), '')" for part in parts)


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
    """A column: its declared and its base type, its collation, its indexes, and who may read it."""

    name: str
    declared_type: int
    type: str
    collation: tuple[str, str] | None
    is_virtual: bool
    is_unique: bool
    leads_index: bool
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
    while named := run(connection, "read_relation_name", relation=oid).rows():
        schema, name, may_use_schema = named[0]
        locked = sql.Identifier(schema, name)
        if may_use_schema:
            backend.execute(statement("lock_definition", relation=locked))

        # It may have been renamed or dropped before it was locked.
        found = read_relation(connection, oid)
        if found is None or found.identifier == locked:
            return found
    return None


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
    """Resolve column names and SQL expressions against the catalog.

    Raises NotFoundError, listing the columns of the table, and InputError for an expression that cannot be used.
    """
    available = read_columns(connection, relation)
    found: dict[str, str] = {}
    computed: dict[str, list[str]] = {}
    for kind, name in requested.named().items():
        meant = next((one for one in _meanings(name) if one in available), None)
        if kind == "where" or (meant is None and kind in COMPUTABLE and not _WORD.fullmatch(name)):
            found[kind], computed[kind] = _resolve_expression(connection, relation, kind, name)
        elif meant is not None:
            found[kind] = meant
        else:
            raise NotFoundError(
                f"table {relation.shown} has no column {name!r}; it has: {', '.join(sorted(available))}"
            )
    given_where = found.get("where") if "collection_field" in found else None
    return Columns(**found, computed=computed, given_where=given_where)


def of_value(columns: Columns, field: Column, value: str | None) -> Columns:
    """Return columns whose condition holds for the rows with a value of the collection field, as text.

    With None it holds for rows without a value, or with one that cannot name a collection: empty or over 1,024 bytes.
    """
    is_text = field.type not in (*NUMBERS, "uuid")
    if value is None:
        condition = "coalesce(octet_length({}), 0) NOT BETWEEN 1 AND 1024" if is_text else "{} IS NULL"
    else:
        # Values are compared byte by byte, whatever the collation; the first condition uses the index.
        condition = '{0} = {1} AND CAST({0} AS text) COLLATE "C" = {1}' if is_text else "{} = {}"
    added = sql.SQL(condition).format(sql.Identifier(field.name), sql.Literal(value)).as_string()
    given = columns.given_where
    read = {*columns.computed.get("where", ()), field.name}
    return replace(
        columns,
        where=added if given is None else f"({given}) AND {added}",
        computed={**columns.computed, "where": sorted(read)},
    )


def _resolve_expression(
    connection: Connection, relation: Relation, kind: Kind, expression: str
) -> tuple[str, list[str]]:
    """Return an expression as PostgreSQL writes it, and the names of the columns that it reads.

    Raises InputError for one that is not immutable, or uses functions or types that are not part of PostgreSQL:
    workers evaluate it with their own rights, and the owner of such a function may replace it.
    """
    # The user's own SQL, run with the user's own rights and undone.
    given = Expression(expression)
    make = statement(
        "make_expression",
        relation=relation.identifier,
        type=sql.SQL("boolean" if kind == "where" else "text"),
        expression=given,
    )
    attempt = connection.begin_nested()
    try:
        with translate_errors():
            run(connection, make)
            written, names, foreign = run(connection, "read_expression").row()
    except NearsimError as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise InputError(
            f"--{kind} {expression!r} is neither a column nor an expression: {reason}"
        ) from error
    finally:
        attempt.rollback()
    if foreign:
        raise InputError(f"--{kind} {expression!r} uses what is not part of PostgreSQL: {', '.join(foreign)}")
    return written, names
