"""Obstacles: reasons why a table cannot be attached or read as documents, or why its changes are not captured."""

from collections.abc import Mapping

from nearsim_db.errors import InputError
from nearsim_db.records import CollectionId
from nearsim_db.store.access import access
from nearsim_db.store.attached import attachments
from nearsim_db.store.attached.attachments import Attachment
from nearsim_db.store.attached.tables import (
    NUMBERS,
    ZONELESS,
    Column,
    Columns,
    Relation,
    read_columns,
    read_relation,
)
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import INDEX_SCHEMA, SCHEMA, run

_TEXTS = ("text", "character varying")
_IDS = (*NUMBERS, "uuid", *_TEXTS)
_MOMENTS = ("timestamp with time zone", *ZONELESS)
# FirstNormalObjectId in PostgreSQL's source: the OIDs of its own types are smaller.
_FIRST_USER_TYPE_OID = 16_384
_TABLES = ("r", "p")
_VIEWS = ("v", "m")
_NOT_TABLES = {"v": "a view", "m": "a materialised view", "f": "a foreign table"}


def check_table(connection: Connection, relation: Relation) -> None:
    """Raise InputError with the reason if a table cannot be attached, or if this user may not attach it."""
    reason = _unfit(relation) or _not_allowed(relation)
    if reason is None and placement.has_shards(connection, relation.shown):
        reason = "it is a table of Citus, which refuses nearsim's triggers there"
    if relation.kind in _VIEWS and (
        tables := run(connection, "list_base_tables", relation=relation.oid).values()
    ):
        reason = (
            f"{reason}; attach the table that it reads, {' or '.join(tables)}, with --where for its rows and SQL "
            "expressions for its columns"
        )
    if reason is not None:
        raise InputError(f"{relation.shown} cannot be attached: {reason}")


def check_columns(connection: Connection, relation: Relation, columns: Columns) -> None:
    """Raise InputError with the reason if these columns of a table cannot be read as documents."""
    available = read_columns(connection, relation)
    reason = unreadable(relation, available, columns) or not_unique(relation, available, columns)
    field = columns.collection_field
    if reason is None and field is not None and not available[field].leads_index:
        reason = (
            f"column {field!r} has no index, but nearsim reads the rows of each of its values; run: CREATE INDEX ON "
            f"{relation.shown} ({field}, {columns.id})"
        )
    if reason is None and columns.mark_column is not None:
        reason = unmarkable(connection, relation, available, columns)
    if reason is not None:
        raise InputError(f"{relation.shown} cannot be attached: {reason}")


def unmarkable(
    connection: Connection, relation: Relation, available: Mapping[str, Column], columns: Columns
) -> str | None:
    """Return why the id of another document cannot be written into the mark column; None if it can."""
    name = columns.mark_column
    column = None if name is None else available.get(name)
    if column is None:
        return f"its column {name!r} does not exist"
    if name in columns.read():
        return f"column {name!r} is read as part of the documents, so it cannot be the mark column"

    id_type = available[columns.id].type
    types = dict.fromkeys((id_type, *(["bigint"] if id_type in NUMBERS else []), *_TEXTS))
    if column.type not in types:
        return f"column {name!r} is of type {column.type}; the mark column may be {' or '.join(types)}"
    if column.is_generated:
        return f"column {name!r} is a generated column, which nobody can write"
    if column.is_required:
        return f"column {name!r} is NOT NULL, but it is NULL in rows that are kept"
    if not column.is_writable:
        return f"the user may not write column {name!r}; run: GRANT UPDATE ({name}) ON {relation.shown} TO <role>"

    # Triggers of the table run with the rights of the worker that updates it.
    foreign_code = run(connection, "find_foreign_update_code", relation=relation.oid).value()
    if foreign_code is not None:
        return f"{foreign_code}, whose code would run with this user's rights when marks are written"
    return None


def unreadable(
    relation: Relation, available: Mapping[str, Column], columns: Columns, *, own_rights: bool = True
) -> str | None:
    """Return why columns of a table cannot be read as documents; None if they can.

    `available`: the columns that the table has
    `own_rights`: also check the rights of the user
    """
    if relation.kind not in _TABLES:
        return _not_a_table(relation)
    if own_rights and not relation.may_use_schema:
        return _no_schema(relation)

    # Columns that only expressions read may have any type that is part of PostgreSQL.
    types_of_kind = {"id": _IDS, "published_at": _MOMENTS, "collection_field": _IDS}
    plain = {name: (kind, types_of_kind.get(kind, _TEXTS)) for kind, name in columns.plain().items()}
    for name in columns.read():
        column, (kind, types) = available.get(name), plain.get(name, ("expression", None))
        if column is None:
            return f"its column {name!r} does not exist"
        if types is not None and column.type not in types:
            return f"column {name!r} is of type {column.type}; the {kind} may be {', '.join(types)}"
        if types is None and column.declared_type >= _FIRST_USER_TYPE_OID:
            return f"column {name!r}, which an expression reads, is not of a type of PostgreSQL itself"
        if column.is_virtual:
            return f"column {name!r} is a virtual generated column, whose changes no trigger sees"
        if own_rights and not column.is_readable:
            return f"the user may not read column {name!r}; run: GRANT SELECT ON {relation.shown} TO <role>"

    if own_rights and relation.foreign_code is not None:
        return (
            f"{relation.foreign_code}, whose code could run with this user's rights; only roles that may act as this "
            f"user or as {available[columns.id].our_owner} may own it"
        )
    if own_rights and relation.hides_rows:
        return "its row-level security hides rows from this user, which the index would lack"
    return None


def not_unique(relation: Relation, available: Mapping[str, Column], columns: Columns) -> str | None:
    """Return the message that the id is not unique, with the remedy; None if it is unique."""
    if available[columns.id].is_unique:
        return None
    return (
        f"column {columns.id!r} is not unique: make it the primary key or give it a unique index of its own, on all "
        "rows"
    )


def _unfit(relation: Relation) -> str | None:
    if relation.schema in (SCHEMA, INDEX_SCHEMA):
        return "it is in nearsim's own schema; attach a table of another schema"
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


def _no_schema(relation: Relation) -> str:
    return f"the user may not use its schema; run: GRANT USAGE ON SCHEMA {relation.shown_schema} TO <role>"


def _not_allowed(relation: Relation) -> str | None:
    if not relation.may_use_schema:
        return _no_schema(relation)
    if not relation.is_owner:
        return (
            f"only its owner can create triggers that always fire, and drop them; GRANT {relation.owner} to the user, "
            "or attach it as a user with that role"
        )
    return None


def list_problems(connection: Connection, collection_id: CollectionId | None = None) -> dict[str, str]:
    """Return why changes of attached tables are not indexed, by name of the collection, for all collections or one.

    Each table is looked up in the catalog. Rights are checked only if the user may build indexes; for other users, the
    troubles that workers recorded are reported.
    """
    problems: dict[str, str] = {}
    attached = attachments.list_attachments(connection, collection_id)
    own_rights = bool(attached) and access.has_owners_rights(connection)
    for attachment in attached:
        problem = attachment.problem or find_obstacle(connection, attachment, own_rights=own_rights)
        if problem is not None and not attachment.detaching:
            problems[attachment.collection] = problem
    return problems


def find_obstacle(connection: Connection, attachment: Attachment, *, own_rights: bool = True) -> str | None:
    """Return why an attached table cannot be read, or why its changes are not captured; None if all is well."""
    relation = read_relation(connection, attachment.relation)
    if relation is None:
        return attachment.problem
    available, columns = read_columns(connection, relation), attachment.columns
    reason = unreadable(relation, available, columns, own_rights=own_rights)
    if reason := reason or not_unique(relation, available, columns):
        return attachment.describe_unreadable(reason)
    silent = attachments.find_silent_triggers(connection, attachment.collection_id)
    return attachment.describe_missed(", ".join(silent)) if silent else None
