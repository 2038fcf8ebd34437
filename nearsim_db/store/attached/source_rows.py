"""Reading the rows of an attached table, and writing them as documents of one or several collections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from nearsim_db.errors import NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.attached import attachments
from nearsim_db.store.attached.obstacles import unreadable
from nearsim_db.store.attached.tables import (
    COMPUTABLE,
    NUMBERS,
    ZONELESS,
    Column,
    Columns,
    Kind,
    Relation,
    lock_relation,
    read_columns,
    read_current_types,
)
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Expression, run, statement

# Collection and doc_id of a document. The documents of several collections are read in the order of these.
Place = tuple[CollectionId, int]


@dataclass(frozen=True, slots=True)
class AttachedSource:
    """An attached table that can be read now, for one collection, or for a parent and the collections of its values."""

    collection_id: CollectionId
    relation: Relation
    columns: Columns
    parts: dict[str, sql.Composable]  # names, types and expressions that are filled into statements
    values: Mapping[
        CollectionId, str
    ]  # value of the collection field for each collection; '' means all other rows

    @property
    def collections(self) -> dict[str, object]:
        """Return the parameters for statements that write to all collections of the table."""
        return {"collection_ids": list(self.values), "values": list(self.values.values())}

    def statement(self, name: str, **parts: sql.Composable) -> sql.Composed:
        """Return the statement of that name, filled in for this table."""
        return statement(name, None, **self.parts, **parts)


def find_source(connection: Connection, collection_id: CollectionId) -> AttachedSource | None:
    """Return the table that is attached to a collection, or None; lock its definition until the transaction ends.

    Raises NotFoundError if the table, or one of its columns, was dropped or cannot be read.
    """
    attachment = attachments.find_attachment(connection, collection_id)
    if attachment is None:
        return None

    relation = lock_relation(connection, attachment.relation)
    if relation is None:
        raise NotFoundError(attachment.problem)
    available, columns = read_columns(connection, relation), attachment.columns
    reason = unreadable(relation, available, columns)
    if reason is not None:
        raise NotFoundError(attachment.describe_unreadable(reason))

    # The snapshot of the transaction may contain an older definition of the table than the locked one.
    names = columns.read()
    if read_current_types(connection, relation, names) != [available[name].declared_type for name in names]:
        raise NotFoundError(attachment.describe_unreadable("it was altered meanwhile"))

    parts: dict[str, sql.Composable] = {
        "relation": rows_of(relation, columns),
        "id": sql.Identifier(columns.id),
        "text": sql.Identifier(column_of(columns, "text")),
        "key": key_of(available[columns.id]),
        "id_type": type_of(available[columns.id]),
        "fields": fields_of(available, columns),
        "whole": rows_of(relation, columns.of_all_values()),
        "field": sql.Identifier(columns.collection_field or columns.id),
        "value": sql.SQL("''"),
    }
    return AttachedSource(collection_id, relation, columns, parts, {collection_id: ""})


def get_source(connection: Connection, collection_id: CollectionId) -> AttachedSource:
    """Return the table that is attached to a collection. Raises NotFoundError if there is none."""
    source = find_source(connection, collection_id)
    if source is None:
        raise NotFoundError("the collection has no attached table; see: nearsim table list")
    return source


def with_values(connection: Connection, source: AttachedSource) -> AttachedSource:
    """Return the table of a parent with the rows of all its collections; return any other table unchanged."""
    if source.columns.collection_field is None:
        return source
    of_values = attachments.list_of_values(connection, source.collection_id)
    if not of_values:
        return source
    value = sql.SQL("CASE WHEN octet_length({0}) <= 1024 THEN {0} ELSE '' END").format(
        sql.SQL('CAST(source.{} AS text) COLLATE "C"').format(source.parts["field"])
    )
    parts = {**source.parts, "relation": source.parts["whole"], "value": value}
    values = {row.collection_id: row.value for row in of_values}
    return replace(source, parts=parts, values={**source.values, **values})


def update_ids(
    connection: Connection, source: AttachedSource, changed: Sequence[tuple[str, str | None]]
) -> None:
    """Update the documents with these ids from their rows, and delete documents that have no row.

    `changed` has, with each id, a value that the row has or had in the collection field: the collection of that value
    may contain a document to delete.
    """
    ids = [external_id for external_id, _ in changed]
    _write(connection, source, "select_rows_by_id", {"ids": ids})

    with_collection = set(source.values.values())
    former_values = [value if value is not None and value in with_collection else "" for _, value in changed]
    command = source.statement("delete_orphans")
    run(connection, command, ids=ids, former_values=former_values, **source.collections)


def find_values(connection: Connection, source: AttachedSource, ids: Sequence[str]) -> list[str]:
    """Return the values of the collection field in the rows with these ids."""
    return run(connection, source.statement("find_values"), ids=list(ids)).values()


def find_new_values(connection: Connection, source: AttachedSource) -> list[str]:
    """Return the values of the collection field that have no collection yet."""
    return run(connection, source.statement("find_new_values"), collection_id=source.collection_id).values()


def find_slice(connection: Connection, source: AttachedSource, start: str | None, amount: int) -> str | None:
    """Return the id that is `amount` rows after `start`, or after the first id; None if there are fewer rows."""
    command = source.statement("find_slice", from_here=from_id(source, start))
    next_start: str | None = run(connection, command, start=start, amount=amount).value()
    return next_start


def update_slice(
    connection: Connection, source: AttachedSource, start: str | None, amount: int
) -> tuple[int, int, int]:
    """Update documents from a slice of rows.

    Returns the number of inserted documents, the number of updated documents, and the number of rows.
    """
    parameters: dict[str, object] = {"start": start, "amount": amount}
    return _write(connection, source, "select_rows_in_slice", parameters, from_here=from_id(source, start))


def from_id(source: AttachedSource, start: str | None) -> sql.Composable:
    """Return the condition for the rows from the id `start` on, or for all rows with an id."""
    if start is None:
        return sql.SQL("source.{} IS NOT NULL").format(source.parts["id"])
    return sql.SQL("source.{} >= CAST(%(start)s AS {})").format(source.parts["id"], source.parts["id_type"])


def _write(
    connection: Connection,
    source: AttachedSource,
    rows: str,
    parameters: dict[str, object],
    **parts: sql.Composable,
) -> tuple[int, int, int]:
    command = statement("upsert_source_documents", rows=source.statement(rows, **parts))
    inserted, updated, count = run(connection, command, **parameters, **source.collections).row()
    return inserted, updated, count


def delete_orphans(
    connection: Connection, source: AttachedSource, after: Place, amount: int
) -> tuple[Place | None, int, int]:
    """Delete those documents in the next slice of documents that have no row.

    Returns the place of the slice's last document, the number of documents in the slice, and the number of deleted
    documents.
    """
    parameters = {"collection_id": after[0], "after": after[1], "amount": amount, **source.collections}
    collection_id, doc_id, documents, deleted = run(
        connection, source.statement("delete_orphans_in_slice"), **parameters
    ).row()
    return (collection_id, doc_id) if documents else None, documents, deleted


def count_unusable(connection: Connection, source: AttachedSource) -> dict[CollectionId, int]:
    """Return, for each collection, the number of rows whose id is unusable (NULL, empty or too long)."""
    counts = dict(run(connection, source.statement("count_unusable_rows")).rows())
    return {collection_id: counts.get(value, 0) for collection_id, value in source.values.items()}


def copy_texts(
    connection: Connection, source: AttachedSource, after: int, amount: int
) -> tuple[int | None, int]:
    """Copy the texts of the next slice of documents from the table.

    Returns the last doc_id of the slice, and the number of documents in it.
    """
    parameters = {"collection_id": source.collection_id, "after": after, "amount": amount}
    last, count = run(connection, source.statement("copy_texts"), **parameters).row()
    return last, count


def read_bodies(
    connection: Connection, source: AttachedSource, doc_ids: Sequence[int]
) -> dict[int, str | None]:
    """Return the current texts of those documents that have a row, by doc_id."""
    return dict(run(connection, source.statement("read_source_bodies"), doc_ids=list(doc_ids)).rows())


def find_existing_ids(connection: Connection, source: AttachedSource, ids: Sequence[str]) -> list[str]:
    """Return those of the ids that have a row."""
    return run(connection, source.statement("find_existing_ids"), ids=list(ids)).values()


def rows_of(relation: Relation, columns: Columns) -> sql.Composable:
    """Return the rows that are documents: the table itself or a subquery on it, which needs an alias."""
    if not columns.computed:
        return relation.identifier

    outputs: list[sql.Composable] = [sql.Identifier(name) for name in dict.fromkeys(columns.plain().values())]
    expressions = columns.named()
    outputs += [
        sql.SQL("{} AS {}").format(Expression(expressions[kind]), sql.Identifier(column_of(columns, kind)))
        for kind in COMPUTABLE
        if kind in columns.computed and kind != "where"
    ]
    condition = sql.SQL("true") if columns.where is None else Expression(columns.where)
    return sql.SQL("(SELECT {} FROM {} WHERE {})").format(
        sql.SQL(", ").join(outputs), relation.identifier, condition
    )


def column_of(columns: Columns, kind: Kind) -> str:
    """Return the name that a column, or the value of an expression, has in the rows of `rows_of`."""
    return f"nearsim {kind}" if kind in columns.computed else columns.named()[kind]


def key_of(column: Column) -> sql.Composable:
    """Return the expression that converts `attached.external_id` to the type of the table's id."""
    external_id = sql.Identifier("attached", "external_id")
    if column.type in NUMBERS:
        return sql.SQL("nearsim.as_bigint({})").format(external_id)
    if column.type == "uuid":
        return sql.SQL("nearsim.as_uuid({})").format(external_id)
    assert column.collation is not None
    return sql.SQL("({} COLLATE {})").format(external_id, sql.Identifier(*column.collation))


def type_of(column: Column) -> sql.SQL:
    """Return the type in which the ids of a table are compared."""
    if column.type in NUMBERS:
        return sql.SQL("bigint")
    return sql.SQL("uuid") if column.type == "uuid" else sql.SQL("text")


def fields_of(available: dict[str, Column], columns: Columns) -> sql.Composable:
    """Return the expressions that compute the columns of a document from a row of `source`.

    Dates without a time zone are taken as UTC.
    """
    fields = [_as_text(columns.id, "external_id")]
    others: tuple[Kind, ...] = ("title", "source", "url")
    named = columns.named()
    fields += [_as_text(column_of(columns, kind) if kind in named else None, kind) for kind in others]
    published = None if columns.published_at is None else available[columns.published_at]
    fields.append(sql.SQL("CAST({} AS timestamptz) AS published_at").format(_moment(published)))
    text = sql.Identifier("source", column_of(columns, "text"))
    fields.append(sql.SQL("CAST(md5(coalesce({}, '')) AS uuid) AS body_digest").format(text))
    fields.append(sql.SQL("length({}) AS body_length").format(text))
    return sql.SQL(", ").join(fields)


def _moment(column: Column | None) -> sql.Composable:
    """Return the expression for the publication time, which is NULL for dates beyond the last possible timestamp."""
    if column is None:
        return sql.SQL("NULL")
    value = sql.Identifier("source", column.name)
    if column.type not in ZONELESS:
        return value
    moment = sql.SQL("CAST({} AS timestamp) AT TIME ZONE 'UTC'").format(value)
    if column.type != "date":
        return moment
    beyond = sql.SQL("isfinite({value}) AND {value} >= CAST('294277-01-01' AS date)").format(value=value)
    return sql.SQL("CASE WHEN {beyond} THEN NULL ELSE {moment} END").format(beyond=beyond, moment=moment)


def _as_text(column: str | None, name: str) -> sql.Composable:
    value = sql.SQL("NULL") if column is None else sql.Identifier("source", column)
    return sql.SQL('CAST({} AS text) COLLATE "C" AS {}').format(value, sql.Identifier(name))
