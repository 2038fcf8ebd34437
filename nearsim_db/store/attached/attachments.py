"""Which collections follow a table of an application, and the triggers on it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from psycopg import sql
from sqlalchemy import Connection

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.attached.tables import Columns, Relation, read_relation
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement


@dataclass(frozen=True, slots=True)
class Attachment:
    """A collection that follows a table; `table` is None where that is gone, `trouble` why it cannot be followed now.

    A sweep that began at `swept_at` was finished after `sweep_seconds`; one was wanted at `wanted_at`, and is still to
    come if that is later. It left out `unusable` rows, which have no id that can be one.
    """

    collection_id: CollectionId
    collection: str
    relation: int
    table: str | None
    columns: Columns
    attached_at: datetime
    wanted_at: datetime
    swept_at: datetime | None
    sweep_seconds: float
    unusable: int
    detaching: bool
    trouble: str | None
    troubled_at: datetime | None

    @property
    def problem(self) -> str | None:
        """Why the table is not followed now, as far as is known."""
        if self.table is None:
            command = detach_command(self.collection)
            return f"collection {self.collection!r} follows a table that is gone; run: {command}"
        return self.trouble

    @property
    def is_swept(self) -> bool:
        """Whether what was missed is taken in, as far as is known."""
        return self.swept_at is not None and self.swept_at >= self.wanted_at


def detach_command(collection: str) -> str:
    """What to run for a collection to follow its table no more, as a shell takes it."""
    return f"nearsim detach {shlex.quote(collection)}"


def list_attachments(connection: Connection, collection_id: CollectionId | None = None) -> list[Attachment]:
    """All of them, or that of one collection."""
    parameters = {"collection_id": collection_id}
    rows = driver(connection).execute(statement("list_attachments"), parameters).fetchall()
    return [_attachment(*row) for row in cast(list[_Row], rows)]


_Row = tuple[Any, ...]


def _attachment(*row: Any) -> Attachment:
    return Attachment(*row[:4], Columns(*row[4:10]), *row[10:])  # type: ignore[call-arg]


def find_attachment(connection: Connection, collection_id: CollectionId) -> Attachment | None:
    """What a collection follows, or None."""
    return next(iter(list_attachments(connection, collection_id)), None)


def get_attachment(connection: Connection, collection_id: CollectionId, name: str) -> Attachment:
    """What a collection follows. Raises NotFoundError."""
    found = find_attachment(connection, collection_id)
    if found is None:
        raise NotFoundError(f"collection {name!r} follows no table; see: nearsim attach --list")
    return found


def refuse_attached(connection: Connection, collection_id: CollectionId, doing: str) -> None:
    """Raise ConflictError where a collection follows a table."""
    found = find_attachment(connection, collection_id)
    if found is not None:
        raise ConflictError(
            f"collection {found.collection!r} follows the table {found.table or 'that is gone'}: {doing} there, or "
            f"run: {detach_command(found.collection)} --keep"
        )


def store_attachment(
    connection: Connection, collection_id: CollectionId, relation: Relation, columns: Columns
) -> None:
    """Have a collection follow a table; one that does already follows other columns of it from now on."""
    parameters: dict[str, object] = {"collection_id": collection_id, "relation": relation.oid}
    parameters |= dict.fromkeys(("title", "source", "url", "published_at"))
    parameters |= {str(kind): name for kind, name in columns.named().items()}
    driver(connection).execute(statement("store_attachment"), parameters)


def limit_lock_wait(connection: Connection, milliseconds: int) -> None:
    """In this transaction no lock is waited for longer than that."""
    driver(connection).execute(statement("limit_transaction_lock_wait"), {"milliseconds": str(milliseconds)})


def create_triggers(
    connection: Connection, collection_id: CollectionId, relation: Relation, columns: Columns
) -> None:
    """Make the triggers of a table, which every writer of it waits for until this transaction ends."""
    arguments = [sql.Literal(str(collection_id)), *map(sql.Literal, dict.fromkeys(columns.named().values()))]
    command = statement(
        "create_source_triggers",
        relation=relation.identifier,
        arguments=sql.SQL(", ").join(arguments),
        rows=_trigger(collection_id, "rows"),
        truncate=_trigger(collection_id, "truncate"),
    )
    driver(connection).execute(command)


def drop_triggers(connection: Connection, attachment: Attachment) -> None:
    """Take our triggers off the table, if it is still there."""
    relation = read_relation(connection, attachment.relation)
    if relation is not None:
        command = statement(
            "drop_source_triggers",
            relation=relation.identifier,
            rows=_trigger(attachment.collection_id, "rows"),
            truncate=_trigger(attachment.collection_id, "truncate"),
        )
        driver(connection).execute(command)


def _trigger(collection_id: CollectionId, kind: str) -> sql.Identifier:
    return sql.Identifier(f"nearsim_{collection_id}_{kind}")


def set_detaching(connection: Connection, collection_id: CollectionId) -> None:
    """From now on the table is not followed."""
    driver(connection).execute(statement("set_detaching"), {"collection_id": collection_id})


def forget(connection: Connection, collection_id: CollectionId) -> None:
    """The collection follows no table any more."""
    driver(connection).execute(statement("delete_attachment"), {"collection_id": collection_id})


def find_noted(connection: Connection) -> list[CollectionId]:
    """Collections of whose tables writes were noted."""
    return [
        CollectionId(int(str(row[0])))
        for row in driver(connection).execute(statement("find_changed_sources"))
    ]


def take_noted(connection: Connection, collection_id: CollectionId, batch: int) -> list[str | None]:
    """Take notes of writes: ids, and None for the whole table."""
    parameters = {"collection_id": collection_id, "batch": batch}
    rows = driver(connection).execute(statement("take_source_changes"), parameters).fetchall()
    return [None if row[0] is None else str(row[0]) for row in rows]


def note_texts(connection: Connection, doc_ids: Sequence[int]) -> None:
    """Have those of some documents looked at again whose texts are elsewhere."""
    if doc_ids:
        driver(connection).execute(statement("queue_text_checks"), {"doc_ids": list(doc_ids)})


def doubt_texts(
    connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int], age_seconds: int | None
) -> None:
    """Documents whose texts are elsewhere were not what was known; they make new revisions when they are looked at."""
    if doc_ids:
        parameters = {"collection_id": collection_id, "doc_ids": list(doc_ids), "age": age_seconds}
        driver(connection).execute(statement("invalidate_texts"), parameters)


def want_sweep(connection: Connection, collection_id: CollectionId) -> None:
    """Have all of the table compared."""
    driver(connection).execute(statement("request_sweep"), {"collection_id": collection_id})


def note_trouble(connection: Connection, collection_id: CollectionId, trouble: str) -> None:
    """Write down why a table cannot be followed now."""
    parameters = {"collection_id": collection_id, "trouble": trouble}
    driver(connection).execute(statement("record_trouble"), parameters)


def find_due_sweeps(connection: Connection, collection_id: CollectionId | None = None) -> list[CollectionId]:
    """The collections whose tables are to be swept now."""
    rows = driver(connection).execute(statement("find_due_sweeps"), {"collection_id": collection_id})
    return [CollectionId(int(str(row[0]))) for row in rows]


def end_sweep(connection: Connection, collection_id: CollectionId, began: datetime, unusable: int) -> None:
    """Write down that a sweep is done."""
    parameters = {"collection_id": collection_id, "began": began, "unusable": unusable}
    driver(connection).execute(statement("finish_sweep"), parameters)
