"""The column of an attached table that names, for each duplicate, the document to keep instead."""

from dataclasses import replace
from datetime import datetime

from psycopg import sql

from nearsim_db.errors import NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.attached import source_rows
from nearsim_db.store.attached.obstacles import unmarkable
from nearsim_db.store.attached.source_rows import AttachedSource
from nearsim_db.store.attached.tables import read_columns
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run


def find_due_marks(
    connection: Connection, collection_id: CollectionId | None, *, at_once: bool = False
) -> list[CollectionId]:
    """Return the attached collections whose mark column is due for a pass.

    With `at_once`, return every attached collection with a mark column.
    """
    return run(connection, "find_due_marks", collection_id=collection_id, at_once=at_once).values()


def find_marked_source(connection: Connection, collection_id: CollectionId) -> AttachedSource:
    """Return an attached table with its mark column, as a source of all its rows, even rows that are not documents.

    The definition of the table is locked until the transaction ends. Raises NotFoundError if the table cannot be read,
    or if its mark column cannot be written.
    """
    source = source_rows.with_values(connection, source_rows.get_source(connection, collection_id))
    available, name = read_columns(connection, source.relation), source.columns.mark_column
    if (
        reason := unmarkable(connection, source.relation, available, source.columns)
    ) is not None or name is None:
        raise NotFoundError(f"the marks of {source.relation.shown} cannot be written: {reason}")

    parts: dict[str, sql.Composable] = {
        "relation": source.relation.identifier,
        "mark": sql.Identifier(name),
        "mark_type": source_rows.type_of(available[name]),
    }
    return replace(source, parts={**source.parts, **parts})


def write_slice(
    connection: Connection, source: AttachedSource, start: str | None, amount: int
) -> tuple[int, int, int]:
    """Write the marks of a slice of rows that begins at the id `start`, or at the first row if `start` is None.

    Returns three numbers: rows in the slice, rows whose mark differed, and rows that were written. Rows that other
    transactions have locked are not written.
    """
    # The amount is a literal, because the planner must see that a slice has few rows.
    command = source.statement(
        "write_marks", from_here=source_rows.from_id(source, start), amount=sql.Literal(amount)
    )
    slice_rows, differing, written = run(connection, command, start=start, **source.collections).row()
    return slice_rows, differing, written


def record_pass(
    connection: Connection, collection_id: CollectionId, began: datetime, failure: str | None = None
) -> None:
    """Record a pass over a mark column, with the reason if it failed."""
    run(connection, "record_marks", collection_id=collection_id, began=began, trouble=failure)
