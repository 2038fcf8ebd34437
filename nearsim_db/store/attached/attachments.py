"""Attachments: which table of an application is attached to a collection, and the triggers on that table."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import sql

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.messages import count_of
from nearsim_db.records import CollectionId
from nearsim_db.store.attached.tables import Columns, Relation, read_relation
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run, statement


@dataclass(frozen=True, slots=True)
class Attachment:
    """A collection that is attached to a table."""

    collection_id: CollectionId
    collection: str
    relation: int  # OID of the table
    table: str | None  # name of the table; None if it was dropped
    columns: Columns
    parent: CollectionId | None  # collection that has the triggers; None if it is this collection
    value: (
        str | None
    )  # value of the collection field whose rows belong to this collection; None without a parent
    attached_as: str  # name of the collection that has the triggers
    attached_at: datetime
    wanted_at: datetime  # when a sweep was last requested; a sweep is due if this is later than `swept_at`
    swept_at: datetime | None  # when the last sweep began
    sweep_seconds: float  # duration of the last sweep
    unusable: int  # number of rows that the last sweep skipped because their ids cannot be external ids
    detaching: bool
    trouble: str | None  # why changes of the table are not indexed; None if they are
    troubled_at: datetime | None  # since when
    marked_at: datetime | None  # when the last completed pass began that wrote the mark column
    mark_trouble: str | None  # why the last pass failed; None if it did not

    @property
    def problem(self) -> str | None:
        """Return why changes of the table are not indexed now, as far as nearsim has recorded it."""
        if self.table is None:
            command = detach_command(self.attached_as)
            return f"collection {self.collection!r} is attached to a table that was dropped; run: {command}"
        return self.trouble

    def describe_unreadable(self, reason: str) -> str:
        """Return the message that says why the table cannot be read, and what to do."""
        return (
            f"collection {self.collection!r} cannot read its attached table {self.table}: {reason}; correct that, "
            f"attach it again with other columns, or run: {detach_command(self.attached_as)}"
        )

    def describe_missed(self, reason: str) -> str:
        """Return the message that says why only sweeps find changes of the table, and what to do."""
        words = ["nearsim", "table", "attach", self.table or ""]
        for kind, name in self.columns.given().items():
            words += [f"--{kind.replace('_', '-')}", name]
        return (
            f"collection {self.collection!r} misses changes of its attached table {self.table}: {reason}; to repair "
            f"it: {shlex.join([*words, '-c', self.attached_as])}"
        )

    @property
    def is_swept(self) -> bool:
        """Whether a sweep has begun since the last request for one."""
        return self.swept_at is not None and self.swept_at >= self.wanted_at


def detach_command(collection: str) -> str:
    """Return the shell command that detaches a collection from its table."""
    return f"nearsim table detach {shlex.quote(collection)}"


def list_attachments(
    connection: Connection, collection_id: CollectionId | None = None, *, of_values: bool = False
) -> list[Attachment]:
    """Return the attachment of one collection, or of all collections without a parent or with a recorded trouble.

    `of_values`: include all collections of the values of a collection field.
    """
    parameters = {"collection_id": collection_id, "of_values": of_values}
    return run(connection, "list_attachments", **parameters).all(_attachment)


def _attachment(*row: Any) -> Attachment:
    return Attachment(*row[:4], Columns(*row[4:15]), *row[15:])  # type: ignore[call-arg]


def find_attachment(connection: Connection, collection_id: CollectionId) -> Attachment | None:
    """Return a collection's attachment, or None if no table is attached to it."""
    return next(iter(list_attachments(connection, collection_id)), None)


def get_attachment(connection: Connection, collection_id: CollectionId, name: str) -> Attachment:
    """Return a collection's attachment. Raises NotFoundError if no table is attached to it."""
    attachment = find_attachment(connection, collection_id)
    if attachment is None:
        raise NotFoundError(f"collection {name!r} has no attached table; see: nearsim table list")
    return attachment


def refuse_attached(connection: Connection, collection_id: CollectionId, doing: str) -> None:
    """Raise ConflictError if a collection is attached to a table."""
    attachment = find_attachment(connection, collection_id)
    if attachment is not None:
        raise ConflictError(
            f"collection {attachment.collection!r} is attached to {attachment.table or 'a dropped table'}: {doing} "
            f"there, or run: {detach_command(attachment.collection)} --keep"
        )


@dataclass(frozen=True, slots=True)
class LostTexts:
    """Documents whose texts were in an attached table, although no table is attached to their collection now."""

    collection_id: CollectionId
    collection: str
    documents: int

    def __str__(self) -> str:
        texts = (
            f"the texts of {count_of(self.documents, 'document')} of collection {self.collection!r} are gone"
        )
        return f"{texts}: they were in an attached table, and the database was restored without it"

    @property
    def remedy(self) -> str:
        """Return a sentence that says what to do."""
        return (
            "restore a dump of the whole database, which has that table; or run: "
            f"nearsim collection delete {shlex.quote(self.collection)}"
        )


def count_lost_texts(connection: Connection, collection_id: CollectionId | None = None) -> list[LostTexts]:
    """Return the collections whose texts are gone, of all collections or only of one."""
    return run(connection, "count_lost_texts", collection_id=collection_id).all(LostTexts)


def refuse_lost_texts(connection: Connection, collection_id: CollectionId) -> None:
    """Raise ConflictError if the texts of a collection are gone."""
    for lost in count_lost_texts(connection, collection_id):
        raise ConflictError(f"{lost}; {lost.remedy}")


def store_attachment(
    connection: Connection,
    collection_id: CollectionId,
    relation: Relation,
    columns: Columns,
    parent: CollectionId | None = None,
    value: str | None = None,
) -> None:
    """Attach a table to a collection, or change the columns that are read from it.

    `parent` and `value` have the meaning that they have in `Attachment`.
    """
    run(
        connection,
        "store_attachment",
        collection_id=collection_id,
        relation=relation.oid,
        parent_id=parent,
        collection_value=value,
        **columns.as_parameters(),
    )


def limit_lock_wait(connection: Connection, milliseconds: int) -> None:
    """Limit how long the transaction waits for a lock."""
    run(connection, "limit_transaction_lock_wait", milliseconds=str(milliseconds))


def create_triggers(
    connection: Connection, collection_id: CollectionId, relation: Relation, columns: Columns
) -> None:
    """Create the triggers on a table; sessions that write to it wait until the transaction ends."""
    # The arguments of nearsim.capture_source are the collection, the id, the collection field and the other columns.
    names = [columns.id, columns.collection_field or ""]
    names += [name for name in columns.read() if name not in names]
    arguments = [sql.Literal(str(collection_id)), *map(sql.Literal, names)]
    command = statement(
        "create_source_triggers",
        relation=relation.identifier,
        arguments=sql.SQL(", ").join(arguments),
        rows=_trigger(collection_id, "rows"),
        truncate=_trigger(collection_id, "truncate"),
    )
    run(connection, command)


def drop_triggers(connection: Connection, attachment: Attachment) -> None:
    """Drop the triggers from the table, if it still exists."""
    relation = read_relation(connection, attachment.relation)
    if relation is not None:
        command = statement(
            "drop_source_triggers",
            relation=relation.identifier,
            rows=_trigger(attachment.collection_id, "rows"),
            truncate=_trigger(attachment.collection_id, "truncate"),
        )
        run(connection, command)


def _trigger(collection_id: CollectionId, kind: str) -> sql.Identifier:
    return sql.Identifier(f"nearsim_{collection_id}_{kind}")


@dataclass(frozen=True, slots=True)
class OfValue:
    """The collection for the rows that have a value in the collection field of an attached table."""

    value: str
    collection_id: CollectionId
    collection: str


def list_of_values(
    connection: Connection, parent: CollectionId, values: Sequence[str] | None = None
) -> list[OfValue]:
    """Return the collections that belong to these values, or to any value."""
    parameters = {"parent_id": parent, "values": None if values is None else list(values)}
    return run(connection, "list_of_values", **parameters).all(OfValue)


def set_detaching(connection: Connection, collection_id: CollectionId) -> None:
    """Stop reading changes of the table, for its collection and for the collections of its values."""
    run(connection, "set_detaching", collection_id=collection_id)


@dataclass(frozen=True, slots=True)
class TextSize:
    """The number of documents, and the number of characters of their texts in an attached table."""

    documents: int
    characters: int


def measure_texts(connection: Connection, collection_id: CollectionId, limit: int) -> TextSize:
    """Return the size of the texts of up to `limit` documents of a collection with an attached table."""
    return run(connection, "measure_texts", collection_id=collection_id, limit=limit).one(TextSize)


def delete_attached_documents(connection: Connection, collection_id: CollectionId) -> None:
    """Delete the documents of a collection whose texts are in an attached table."""
    run(connection, "delete_attached_documents", collection_id=collection_id)


def delete_attachment(connection: Connection, collection_id: CollectionId) -> None:
    """Delete the attachment."""
    run(connection, "delete_attachment", collection_id=collection_id)


def find_changed_sources(connection: Connection) -> list[CollectionId]:
    """Return the collections for which changes of rows of attached tables were captured."""
    return run(connection, "find_changed_sources").values()


def take_source_changes(
    connection: Connection, collection_id: CollectionId, batch: int
) -> list[tuple[str | None, str | None]]:
    """Take captured changes of rows of an attached table.

    A change is the id of a row, or None for the whole table, and the value of the row's collection field.
    """
    return run(connection, "take_source_changes", collection_id=collection_id, batch=batch).rows()


def queue_text_checks(connection: Connection, doc_ids: Sequence[int]) -> None:
    """Queue documents whose texts are in an attached table, so that they are compared with that table."""
    if doc_ids:
        run(connection, "queue_text_checks", doc_ids=list(doc_ids))


def invalidate_texts(connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int]) -> None:
    """Invalidate documents whose text differs from the recorded digest, so that they get a new revision."""
    if doc_ids:
        run(connection, "invalidate_texts", collection_id=collection_id, doc_ids=list(doc_ids))


def request_sweep(connection: Connection, collection_id: CollectionId) -> None:
    """Request a sweep of the whole table."""
    run(connection, "request_sweep", collection_id=collection_id)


def record_trouble(connection: Connection, collection_id: CollectionId, trouble: str) -> None:
    """Record why changes of a table are not indexed now."""
    run(connection, "record_trouble", collection_id=collection_id, trouble=trouble)


def find_due_sweeps(connection: Connection, collection_id: CollectionId | None = None) -> list[CollectionId]:
    """Return the collections whose tables are due for a sweep."""
    return run(connection, "find_due_sweeps", collection_id=collection_id).values()


def find_silent_triggers(connection: Connection, collection_id: CollectionId) -> list[str]:
    """Return the triggers of a collection's table that are missing or disabled, each with its state and table."""
    return run(connection, "find_silent_triggers", collection_id=collection_id).values()


def finish_sweep(
    connection: Connection,
    collection_id: CollectionId,
    began: datetime,
    unusable: Mapping[CollectionId, int],
    trouble: str | None,
) -> None:
    """Record a finished sweep of several collections, with the number of unusable rows of each.

    `trouble`: why changes of the table that is attached to `collection_id` will not be captured from now on; None if
    they will be
    """
    run(
        connection,
        "finish_sweep",
        collection_id=collection_id,
        began=began,
        collection_ids=list(unusable),
        unusable=list(unusable.values()),
        trouble=trouble,
    )
