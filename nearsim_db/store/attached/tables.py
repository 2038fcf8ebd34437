"""Tables of applications and their columns: looking them up by name, and reading their properties from the catalog."""

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

Kind = Literal[
    "id", "text", "title", "source", "url", "published_at", "where", "collection_field", "mark_column"
]
COMPUTABLE: tuple[Kind, ...] = ("text", "title", "source", "url", "where")

NUMBERS = ("smallint", "integer", "bigint")
ZONELESS = ("date", "timestamp without time zone")

_WORD = re.compile(r'\w+|"(?:[^"]|"")+"')
_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_NAME = re.compile(r'(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)')


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an attached table that nearsim reads, names or SQL expressions, and the one that it writes."""

    id: str
    text: str
    title: str | None = None
    source: str | None = None
    url: str | None = None
    published_at: str | None = None
    where: str | None = (
        None  # condition for the rows that are documents; with `collection_field`, of one collection
    )

    # For each kind that is an expression, the names of the columns that the expression reads.
    computed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # The column by whose values rows are distributed to collections; None if all rows belong to one collection.
    collection_field: str | None = None
    # With `collection_field`: the user's condition for the rows of all collections.
    given_where: str | None = None
    # The column into which workers write which document each row duplicates. It is the only column that is not read.
    mark_column: str | None = None

    def named(self) -> dict[Kind, str]:
        """Return the columns and expressions that are set, by kind."""
        names = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _NO_KINDS}
        return {cast(Kind, kind): name for kind, name in names.items() if name is not None}

    def given(self) -> dict[Kind, str]:
        """Return the columns and expressions that the user named, without the condition added by `collection_field`."""
        return self.named() if self.collection_field is None else self.of_all_values().named()

    def of_all_values(self) -> "Columns":
        """Return the columns with the condition for the rows of all collections."""
        computed = dict(self.computed)
        if self.given_where is None:
            computed.pop("where", None)
        return replace(self, where=self.given_where, computed=computed)

    def as_parameters(self) -> dict[str, Any]:
        """Return the parameters for the statement that stores the columns."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, "computed": Jsonb(dict(self.computed))}

    def plain(self) -> dict[Kind, str]:
        """Return the columns that are not expressions, by kind."""
        return {
            kind: name
            for kind, name in self.named().items()
            if kind not in self.computed and kind != "mark_column"
        }

    def read(self) -> list[str]:
        """Return the names of all columns that are read, without repetitions, the id first."""
        in_expressions = [name for names in self.computed.values() for name in names]
        return list(dict.fromkeys([*self.plain().values(), *in_expressions]))


_NO_KINDS = ("computed", "given_where")


def join_texts(parts: Sequence[str]) -> str:
    """Return the expression that joins columns or expressions to one text, separated by line ends.

    A single column or expression is returned unchanged.
    """
    if len(parts) == 1:
        return parts[0]
    return " || chr(10) || ".join(f"coalesce(CAST(({part}) AS text), '')" for part in parts)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table and the user's rights on it."""

    oid: int
    schema: str
    name: str
    shown_schema: str  # name of the schema, quoted as in SQL
    shown: str  # name with the schema, quoted as in SQL
    kind: str  # relkind of pg_class
    persistence: str  # relpersistence of pg_class
    is_owner: bool  # whether the user has the owner's rights
    owner: str  # name of the owner, quoted as in SQL
    hides_rows: bool  # whether row-level security applies to the user
    has_children: bool  # whether other tables inherit from it
    may_use_schema: bool  # whether the user may use the schema
    may_our_owner_use_schema: bool  # whether the owner of nearsim's functions may use the schema

    # The object that lets an untrusted role run code with the user's rights when the table is read; None if there is
    # none.
    foreign_code: str | None

    @property
    def identifier(self) -> sql.Identifier:
        """Return the name of the table for statements."""
        return sql.Identifier(self.schema, self.name)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    declared_type: int  # OID of the declared type
    type: str  # name of the base type
    collation: tuple[str, str] | None  # schema and name of the collation
    is_virtual: bool
    is_unique: bool
    leads_index: bool  # whether it is the first column of an index
    is_readable: bool  # whether the user may read it
    is_readable_to_owner: bool  # whether the owner of nearsim's functions may read it
    our_owner: str  # name of the owner of nearsim's functions
    is_generated: bool  # whether its values are computed, stored or not
    is_writable: bool  # whether the user may update it
    is_required: bool  # whether it cannot be NULL


def find_relation(connection: Connection, name: str) -> Relation:
    """Return the table with this name, which may be quoted and may have a schema. Raises NotFoundError."""
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise NotFoundError(
            f"{name!r} is not the name of a table; expected something like story or news.story"
        )
    schema, table = match.groups()

    # Sessions of nearsim have a fixed search path, but the user's search path decides what the name means.
    run(connection, "use_own_search_path")
    path = run(connection, "read_search_path").value()
    run(connection, "use_pinned_search_path")

    parameters = {"names": _meanings(table), "schemas": None if schema is None else _meanings(schema)}
    oid = run(connection, "find_relation", path=path, **parameters).value()
    relation = None if oid is None else read_relation(connection, oid)
    if relation is None:
        raise NotFoundError(f"there is no table {name!r}; add its schema if that is not on the search path")
    return relation


def _meanings(name: str) -> list[str]:
    """Return the identifiers that a name may mean: its quoted text, or else its spelling and its lower case."""
    if _QUOTED.fullmatch(name):
        return [name[1:-1].replace('""', '"')]
    return list(dict.fromkeys((name, name.lower())))


def read_relation(connection: Connection, oid: int) -> Relation | None:
    """Return the present properties of a table; None if it was dropped."""
    return run(connection, "read_relation", relation=oid).first(partial(Relation, oid))


def lock_relation(connection: Connection, oid: int) -> Relation | None:
    """Lock the definition of a table, but not its indexes, until the transaction ends; return the table.

    Returns None if the table was dropped. A table in a schema that the user may not use is returned without a lock.
    """
    backend = connection.backend
    assert not backend.autocommit or backend.info.transaction_status == TransactionStatus.INTRANS
    while rows := run(connection, "read_relation_name", relation=oid).rows():
        schema, name, may_use_schema = rows[0]
        locked = sql.Identifier(schema, name)
        if may_use_schema:
            backend.execute(statement("lock_definition", relation=locked))

        # The table may have been renamed or dropped before it was locked.
        relation = read_relation(connection, oid)
        if relation is None or relation.identifier == locked:
            return relation
    return None


def read_current_types(connection: Connection, relation: Relation, names: Sequence[str]) -> list[int]:
    """Return the present types of columns, even in a transaction with an older snapshot of the catalog.

    Raises UndefinedColumn if a column was renamed or dropped.
    """
    types = sql.SQL(", ").join(
        sql.SQL("CAST(pg_typeof({}) AS oid)").format(sql.Identifier(name)) for name in names
    )
    command = statement("read_current_types", types=types, relation=relation.identifier)
    return [int(oid) for oid in run(connection, command).row()]


def read_columns(connection: Connection, relation: Relation) -> dict[str, Column]:
    """Return the columns of a table, by name."""
    return {
        name: Column(name, declared_type, kind, None if collation is None else (schema, collation), *flags)
        for name, declared_type, kind, schema, collation, *flags in run(
            connection, "read_columns", relation=relation.oid
        ).rows()
    }


def resolve_columns(connection: Connection, relation: Relation, requested: Columns) -> Columns:
    """Look up column names and SQL expressions in the catalog, and return the exact names and expressions.

    Raises NotFoundError, with the columns of the table, for a column that does not exist, and InputError for an
    expression that cannot be used.
    """
    available = read_columns(connection, relation)
    resolved: dict[str, str] = {}
    computed: dict[str, list[str]] = {}
    for kind, name in requested.named().items():
        column = next((meaning for meaning in _meanings(name) if meaning in available), None)
        # A single word that is not a column is a mistake and not an expression.
        if kind == "where" or (column is None and kind in COMPUTABLE and not _WORD.fullmatch(name)):
            resolved[kind], computed[kind] = _resolve_expression(connection, relation, kind, name)
        elif column is not None:
            resolved[kind] = column
        else:
            raise NotFoundError(
                f"table {relation.shown} has no column {name!r}; it has: {', '.join(sorted(available))}"
            )

    given_where = resolved.get("where") if "collection_field" in resolved else None
    return Columns(**resolved, computed=computed, given_where=given_where)


def of_value(columns: Columns, field: Column, value: str | None) -> Columns:
    """Return the columns with a condition that selects the rows with a value, as text, in the collection field.

    None selects the rows without a value, or with a value that cannot name a collection because it is empty or longer
    than 1,024 bytes.
    """
    is_text = field.type not in (*NUMBERS, "uuid")
    if value is None:
        condition = "coalesce(octet_length({}), 0) NOT BETWEEN 1 AND 1024" if is_text else "{} IS NULL"
    else:
        # The first condition uses the index; the second compares the values byte by byte, whatever the collation.
        condition = '{0} = {1} AND CAST({0} AS text) COLLATE "C" = {1}' if is_text else "{} = {}"
    of_collection = sql.SQL(condition).format(sql.Identifier(field.name), sql.Literal(value)).as_string()

    where = columns.given_where
    names = {*columns.computed.get("where", ()), field.name}
    return replace(
        columns,
        # The column is written by the passes over the whole table.
        mark_column=columns.mark_column if value is None else None,
        where=of_collection if where is None else f"({where}) AND {of_collection}",
        computed={**columns.computed, "where": sorted(names)},
    )


def _resolve_expression(
    connection: Connection, relation: Relation, kind: Kind, expression: str
) -> tuple[str, list[str]]:
    """Return an expression as PostgreSQL prints it, and the names of the columns that it reads.

    Raises InputError for an expression that is not immutable, or that uses functions or types which are not part of
    PostgreSQL. Such functions are dangerous, because workers evaluate the expression with their rights, while the owner
    of the function may replace it.
    """
    command = statement(
        "make_expression",
        relation=relation.identifier,
        type=sql.SQL("boolean" if kind == "where" else "text"),
        expression=Expression(expression),
    )

    # The user's SQL runs with the user's rights and is rolled back.
    savepoint = connection.begin_nested()
    try:
        with translate_errors():
            run(connection, command)
            written, names, foreign = run(connection, "read_expression").row()
    except NearsimError as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise InputError(
            f"--{kind} {expression!r} is neither a column nor an expression: {reason}"
        ) from error
    finally:
        savepoint.rollback()

    if foreign:
        raise InputError(f"--{kind} {expression!r} uses what is not part of PostgreSQL: {', '.join(foreign)}")
    return written, names
