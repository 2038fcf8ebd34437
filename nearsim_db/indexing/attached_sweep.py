"""Sweep attached tables: compare all rows with the documents, to find changes that the triggers missed.

A table may have a collection for each value of a field. Such collections are created as the values appear in the rows.
The table itself is attached to one collection, their parent. The parent has the triggers, and the documents of the rows
without a value. The collection of a value is attached to the rows with this value. It needs no triggers, because each
captured change contains the value before and the value after. A sweep of the parent writes the documents of all these
collections; the collection of a value can also be swept alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import md5

from nearsim_db.errors import ConflictError
from nearsim_db.indexing import profiles
from nearsim_db.records import CollectionId, Progress, silent
from nearsim_db.similarity.profile import restore
from nearsim_db.store.access import collection_rows
from nearsim_db.store.access.collection_rows import Collection
from nearsim_db.store.attached import attachments, source_rows, tables
from nearsim_db.store.attached.attachments import Attachment
from nearsim_db.store.attached.obstacles import find_obstacle
from nearsim_db.store.attached.source_rows import AttachedSource, Place
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import is_transient, retry_conflicts
from nearsim_db.store.driver.locks import Lock, is_lock_taken, release_lock, take_lock, take_transaction_lock
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.work import queue

_ROWS_PER_SLICE = 2_000
_DOCUMENTS_PER_SLICE = 5_000
_COLLECTIONS_PER_BATCH = 50
_FIRST: Place = (CollectionId(0), 0)


@dataclass(slots=True)
class SweepResult:
    """What a sweep found, in all collections that it swept."""

    new: int = 0  # rows that had no document yet
    changed: int = 0  # rows that differed from their document
    gone: int = 0  # documents that were deleted, because their rows had been deleted
    unusable: int = 0  # rows that were left out, because their id cannot be an external id
    trouble: str | None = None  # why later changes will not be captured; None if they will be
    collections: int = (
        1  # number of swept collections; a parent's sweep includes the collections of its values
    )


def sweep(
    engine: Engine,
    collection_id: CollectionId,
    progress: Progress = silent,
    *,
    wait: bool = True,
    meanwhile: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> SweepResult | None:
    """Compare a whole table with the documents of its collection, in slices; a parent includes its values' collections.

    If `wait` is false and another process is sweeping, the result is None. It is also None if `stopping` ended the
    sweep. An interrupted sweep starts again from the beginning, but then has little left to write. `meanwhile` is
    called after each slice. Raises NotFoundError if the table cannot be read.
    """
    with engine.connect() as connection:
        lock_id = table_lock_id(connection, collection_id)
        if not take_lock(connection, Lock.SWEEP, lock_id, wait=wait):
            return None
        connection.commit()

        try:
            return _sweep(connection, collection_id, progress, meanwhile, stopping)
        except Exception as error:
            connection.rollback()
            if not is_transient(error):
                attachments.record_trouble(connection, collection_id, str(error))
                connection.commit()
            raise
        finally:
            connection.rollback()
            release_lock(connection, Lock.SWEEP, lock_id)
            connection.commit()


def _sweep(
    connection: Connection,
    collection_id: CollectionId,
    progress: Progress,
    meanwhile: Callable[[], None],
    stopping: Callable[[], bool],
) -> SweepResult | None:
    _create_collections(connection, collection_id)
    began = queue.server_time(connection)
    connection.commit()
    swept, done = SweepResult(), 0

    # Write the rows.
    start: str | None = None
    while start is not None or not done:
        start, new, changed, compared = retry_conflicts(
            connection, _compare_rows, connection, collection_id, start
        )
        if not compared:
            break
        swept.new, swept.changed, done = swept.new + new, swept.changed + changed, done + compared
        progress("follow", done, None)
        meanwhile()
        if stopping():
            return None

    # Delete the documents without a row.
    after: Place | None = _FIRST
    while after is not None:
        after, gone = retry_conflicts(connection, _compare_documents, connection, collection_id, after)
        swept.gone += gone
        meanwhile()
        if stopping():
            return None

    # Record what is wrong with the table.
    source = source_rows.get_source(connection, collection_id)
    unusable = source_rows.count_unusable(connection, source_rows.with_values(connection, source))
    swept.unusable, swept.collections = sum(unusable.values()), len(unusable)
    attachment = attachments.find_attachment(connection, collection_id)
    swept.trouble = None if attachment is None else find_obstacle(connection, attachment)
    attachments.finish_sweep(connection, collection_id, began, unusable, swept.trouble)
    connection.commit()
    return swept


def _create_collections(connection: Connection, collection_id: CollectionId) -> None:
    """If each value of a field has a collection, create the collections that are missing."""
    attachment = attachments.find_attachment(connection, collection_id)
    values = list[str]()
    if attachment is not None and has_values(attachment):
        values = source_rows.find_new_values(connection, source_rows.get_source(connection, collection_id))
    connection.commit()

    for begin in range(0, len(values), _COLLECTIONS_PER_BATCH):
        source = lock_source(connection, collection_id)
        attachment = attachments.find_attachment(connection, collection_id)
        if attachment is not None and not attachment.detaching:
            batch = values[begin : begin + _COLLECTIONS_PER_BATCH]
            create_missing(connection, attachment, source, batch)
        connection.commit()


def _compare_rows(
    connection: Connection, collection_id: CollectionId, start: str | None
) -> tuple[str | None, int, int, int]:
    """Apply a slice of rows in one transaction, beginning at the id `start`, or at the first row.

    Returns the id at which the next slice starts (None after the last slice), the numbers of new and of changed
    documents, and the number of rows.
    """
    source = source_rows.with_values(connection, lock_source(connection, collection_id))
    following = source_rows.find_slice(connection, source, start, _ROWS_PER_SLICE)
    new, changed, compared = source_rows.update_slice(connection, source, start, _ROWS_PER_SLICE)
    connection.commit()
    return following, new, changed, compared


def _compare_documents(
    connection: Connection, collection_id: CollectionId, after: Place
) -> tuple[Place | None, int]:
    """Delete, in one transaction, the documents of a slice that have no row.

    Returns the place of the last document of the slice (None at the end), and the number of deleted documents.
    """
    source = source_rows.with_values(connection, lock_source(connection, collection_id))
    last, documents, gone = source_rows.delete_orphans(connection, source, after, _DOCUMENTS_PER_SLICE)
    connection.commit()
    return last if documents == _DOCUMENTS_PER_SLICE else None, gone


def lock_source(connection: Connection, collection_id: CollectionId) -> AttachedSource:
    """Take the lock under which rows of the table are applied, and return the table."""
    lock_updates(connection, collection_id)
    return source_rows.get_source(connection, collection_id)


def lock_updates(connection: Connection, collection_id: CollectionId) -> None:
    """Take the lock under which rows of a collection's table are applied."""
    take_transaction_lock(connection, Lock.ATTACHED_UPDATE, table_lock_id(connection, collection_id))


def is_being_swept(connection: Connection, collection_id: CollectionId) -> bool:
    """Whether a process is sweeping the collection's table now, so that documents may be added soon."""
    return is_lock_taken(connection, Lock.SWEEP, table_lock_id(connection, collection_id))


def table_lock_id(connection: Connection, collection_id: CollectionId) -> CollectionId:
    """Return the id under which a collection's table is locked: the id of its parent, or its own if it has none."""
    attachment = attachments.find_attachment(connection, collection_id)
    return collection_id if attachment is None else attachment.parent or collection_id


def has_values(attachment: Attachment) -> bool:
    """Whether this is the attachment of a parent, that is, of a table with a collection for each value of a field."""
    return attachment.columns.collection_field is not None and attachment.parent is None


def create_missing(
    connection: Connection, parent: Attachment, source: AttachedSource, values: Sequence[str]
) -> list[CollectionId]:
    """Create the missing collections among those of `values`, with the parent's profiles; return the new collections.

    The caller has taken the lock under which rows of the parent are applied.
    """
    existing = attachments.list_of_values(connection, parent.collection_id, values)
    existing_values = {of_value.value for of_value in existing}
    missing = [value for value in values if value not in existing_values]
    if not missing:
        return []

    # A profile's recipe is that of its live generation, or of the first one still in use if none is live.
    generation_by_profile: dict[str, Generation] = {}
    for generation in generation_rows.list_generations(connection, parent.collection_id):
        is_used = generation.state not in ("retired", "abandoned")
        if generation.state == "live" or (is_used and generation.profile not in generation_by_profile):
            generation_by_profile[generation.profile] = generation
    resolved = {
        name: restore(generation.recipe, generation.fingerprint, generation.bands, generation.rows)
        for name, generation in generation_by_profile.items()
    }

    field = tables.read_columns(connection, source.relation)[parent.columns.collection_field or ""]
    created = []
    for value in missing:
        collection_id = _create_named(connection, parent.collection, value).collection_id
        columns = tables.of_value(parent.columns, field, value)
        attachments.store_attachment(
            connection, collection_id, source.relation, columns, parent.collection_id, value
        )
        for name, profile in resolved.items():
            profiles.create(connection, collection_id, name, profile)
        created.append(collection_id)
    return created


def _create_named(connection: Connection, parent: str, value: str) -> Collection:
    """Create a collection named after its parent and its value, or the value's digest if that name cannot be used."""
    try:
        return collection_rows.create_collection(connection, f"{parent}:{value}")
    except ConflictError:
        digest = md5(value.encode(), usedforsecurity=False).hexdigest()
        return collection_rows.create_collection(connection, f"{parent}:{digest}")
