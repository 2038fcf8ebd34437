"""The rows of a table that a collection follows: read where they are, and made documents of."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql
from sqlalchemy import Connection

from nearsim_db.errors import NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.attached import attachments
from nearsim_db.store.attached.tables import (
    Relation,
    fields_of,
    key_of,
    read_columns,
    read_relation,
    type_of,
    unreadable,
)
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement


@dataclass(frozen=True, slots=True)
class Source:
    """A table that is followed and can be read now; `parts` are its names in statements."""

    collection_id: CollectionId
    relation: Relation
    parts: dict[str, sql.Composable]

    def statement(self, name: str, **more: sql.Composable) -> sql.Composed:
        """The statement of that name, about this table."""
        return statement(name, None, **self.parts, **more)


def find_source(connection: Connection, collection_id: CollectionId) -> Source | None:
    """The table that a collection follows, or None where it follows none.

    Raises NotFoundError where the table or one of its columns is gone or cannot be read.
    """
    attachment = attachments.find_attachment(connection, collection_id)
    if attachment is None:
        return None
    relation = read_relation(connection, attachment.relation)
    if relation is None:
        raise NotFoundError(attachment.problem)
    columns = attachment.columns
    reason = unreadable(connection, relation, columns)
    if reason is not None:
        raise NotFoundError(
            f"collection {attachment.collection!r} cannot follow table {relation.shown}: {reason}; put that right, or "
            f"attach it again with other columns, or run: {attachments.detach_command(attachment.collection)}"
        )
    there = read_columns(connection, relation)
    parts: dict[str, sql.Composable] = {
        "relation": relation.identifier,
        "id": sql.Identifier(columns.id),
        "text": sql.Identifier(columns.text),
        "key": key_of(there[columns.id]),
        "id_type": type_of(there[columns.id]),
        "fields": fields_of(there, columns),
    }
    return Source(collection_id, relation, parts)


def get_source(connection: Connection, collection_id: CollectionId) -> Source:
    """The table that a collection follows, where it is known to follow one. Raises NotFoundError."""
    source = find_source(connection, collection_id)
    if source is None:
        raise NotFoundError("the collection follows no table, or none any more; see: nearsim attach --list")
    return source


def follow_ids(connection: Connection, source: Source, ids: Sequence[str]) -> None:
    """Make the documents of some ids what their rows are."""
    parameters = {"collection_id": source.collection_id, "ids": list(ids)}
    _write(connection, source, "select_rows_by_id", parameters)
    driver(connection).execute(source.statement("delete_orphans"), parameters)


def find_slice(connection: Connection, source: Source, start: str | None, amount: int) -> str | None:
    """The id `amount` rows after an id, or the first of all; None where there are not so many."""
    if start is None:
        from_here: sql.Composable = sql.SQL("source.{} IS NOT NULL").format(source.parts["id"])
    else:
        from_here = sql.SQL("source.{} >= CAST({} AS {})").format(
            source.parts["id"], sql.Literal(start), source.parts["id_type"]
        )
    command = source.statement("find_slice", from_here=from_here)
    row = driver(connection).execute(command, {"amount": amount}).fetchone()
    return None if row is None else str(row[0])


def follow_slice(connection: Connection, source: Source, start: str, amount: int) -> tuple[int, int]:
    """Make documents of so many rows from an id on, where they differ: how many were new, and how many changed."""
    parameters = {"collection_id": source.collection_id, "start": start, "amount": amount}
    return _write(connection, source, "select_rows_in_slice", parameters)


def _write(
    connection: Connection, source: Source, rows: str, parameters: dict[str, object]
) -> tuple[int, int]:
    command = statement("upsert_source_documents", rows=source.statement(rows))
    row = driver(connection).execute(command, parameters).fetchone()
    assert row is not None
    return int(str(row[0])), int(str(row[1]))


def delete_gone(connection: Connection, source: Source, after: int, amount: int) -> tuple[int | None, int]:
    """Delete documents without a row among the next ones after a doc_id: the last of these, and how many went."""
    parameters = {"collection_id": source.collection_id, "after": after, "amount": amount}
    row = driver(connection).execute(source.statement("delete_orphans_in_slice"), parameters).fetchone()
    assert row is not None
    return None if row[0] is None else int(str(row[0])), int(str(row[1]))


def count_unusable(connection: Connection, source: Source) -> int:
    """How many rows have no id that a document can have."""
    row = driver(connection).execute(source.statement("count_unusable_rows")).fetchone()
    assert row is not None
    return int(str(row[0]))


def keep_texts(connection: Connection, source: Source, after: int, amount: int) -> int | None:
    """Copy the texts of the next documents after a doc_id to where they are documents: the last of these."""
    parameters = {"collection_id": source.collection_id, "after": after, "amount": amount}
    row = driver(connection).execute(source.statement("copy_texts"), parameters).fetchone()
    return None if row is None or row[0] is None else int(str(row[0]))


def read_body(connection: Connection, source: Source, doc_id: int) -> str | None:
    """The text of a document as it is now."""
    command = source.statement("read_source_body")
    row = driver(connection).execute(command, {"doc_id": doc_id}).fetchone()
    return None if row is None or row[0] is None else str(row[0])


def find_still_there(connection: Connection, source: Source, ids: Sequence[str]) -> list[str]:
    """Those of some ids that have a row."""
    rows = driver(connection).execute(source.statement("find_existing_ids"), {"ids": list(ids)})
    return [str(row[0]) for row in rows]
