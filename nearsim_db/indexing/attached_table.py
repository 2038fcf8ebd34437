"""Keep documents in step with the rows of an attached table.

Triggers capture the ids of changed rows. A process that applies these changes locks the collection and then reads the
current rows, so the later of two processes also sees the later rows. Sweeps find changes that the triggers missed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from tenacity import RetryError, Retrying, retry_if_exception, stop_after_attempt, wait_random

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.indexing.attached_sweep import create_missing, has_values, lock_source, lock_updates, sweep
from nearsim_db.records import CollectionId, Progress, silent
from nearsim_db.store.attached import attachments, source_rows
from nearsim_db.store.attached.attachments import Attachment, OfValue
from nearsim_db.store.attached.obstacles import find_obstacle
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import is_lock_timeout, is_transient, retry_conflicts
from nearsim_db.store.work import queue

_CHANGES_PER_BATCH = 2_000
_TEXTS_PER_BATCH = 500
_READ_LOCK_TIMEOUT_MILLISECONDS = 200
_TRIGGER_LOCK_TIMEOUT_MILLISECONDS = 1_000
_TRIGGER_ATTEMPTS = 60

Result = TypeVar("Result")


def catch_up(engine: Engine) -> int:
    """Apply the captured changes of all attached tables to their documents; return the number of changes.

    If a table cannot be read, the error is recorded, and the table is swept once it can be read again.
    """
    applied = 0
    with engine.connect() as connection:
        collection_ids = attachments.find_changed_sources(connection)
        connection.rollback()

        for collection_id in collection_ids:
            taken = _CHANGES_PER_BATCH
            while taken == _CHANGES_PER_BATCH:
                taken = retry_conflicts(connection, _apply_changes, connection, collection_id)
                applied += taken
    return applied


def _apply_changes(connection: Connection, collection_id: CollectionId) -> int:
    """Apply a batch of changes in one transaction; return its size."""
    lock_updates(connection, collection_id)
    changes = attachments.take_source_changes(connection, collection_id, _CHANGES_PER_BATCH)
    attachment = attachments.find_attachment(connection, collection_id)
    if attachment is None or attachment.detaching:
        connection.commit()
        return len(changes)

    # A change without an id means all rows, for example after a TRUNCATE.
    rows = [(external_id, value) for external_id, value in changes if external_id is not None]
    if len(rows) < len(changes):
        attachments.request_sweep(connection, collection_id)

    attachments.limit_lock_wait(connection, _READ_LOCK_TIMEOUT_MILLISECONDS)
    try:
        if has_values(attachment):
            _create_collections(connection, attachment, rows)
        with _recording_error(connection, collection_id):
            source = source_rows.get_source(connection, collection_id)
            source_rows.update_ids(connection, source_rows.with_values(connection, source), rows)
    except Exception as error:
        if not is_lock_timeout(error):
            raise
        connection.rollback()  # another session is altering the table, and the changes can wait
        return 0
    connection.commit()
    return len(changes)


def _create_collections(
    connection: Connection, attachment: Attachment, rows: list[tuple[str, str | None]]
) -> None:
    """Create the collections of the values that these rows have now; an error is recorded in the attachment."""
    with _recording_error(connection, attachment.collection_id):
        source = source_rows.get_source(connection, attachment.collection_id)
        values = source_rows.find_values(connection, source, [external_id for external_id, _ in rows])
        create_missing(connection, attachment, source, values)


@contextmanager
def _recording_error(connection: Connection, collection_id: CollectionId) -> Iterator[None]:
    """Undo the block after an error, and record the error; lock timeouts and transient errors are raised instead."""
    try:
        with connection.begin_nested():
            yield
    except Exception as error:
        if is_lock_timeout(error) or is_transient(error):
            raise
        attachments.record_trouble(connection, collection_id, str(error))


def catch_up_collection(engine: Engine, collection_id: CollectionId, progress: Progress) -> str | None:
    """Apply captured changes, and sweep the collection's table if it was never swept or if changes were not captured.

    Returns the reason why later changes will not be captured, or None if they will, or if a sweep reported the reason
    within the last minute. Raises NotFoundError if the table cannot be read.
    """
    catch_up(engine)
    with engine.connect() as connection:
        attachment = attachments.find_attachment(connection, collection_id)
        if attachment is None or attachment.detaching:
            return None
        source_rows.get_source(connection, collection_id)
        obstacle = find_obstacle(connection, attachment)
        a_minute_ago = queue.server_time(connection) - timedelta(minutes=1)

    if obstacle is None and attachment.trouble is None and attachment.is_swept:
        return None
    if obstacle is not None and attachment.swept_at is not None and attachment.swept_at > a_minute_ago:
        return None
    swept = sweep(engine, collection_id, progress)
    return None if swept is None else swept.trouble


def drop_triggers(engine: Engine, collection_id: CollectionId) -> list[OfValue]:
    """Drop the triggers of the table that a collection is attached to, and mark the attachment as being detached.

    Returns the collections of the table's values; none if the collection is not attached.
    """
    with engine.connect() as connection:
        attachment = attachments.find_attachment(connection, collection_id)
        if attachment is None:
            return []

        def drop() -> None:
            if attachment.parent is None:
                attachments.drop_triggers(connection, attachment)
            attachments.set_detaching(connection, collection_id)
            connection.commit()

        with_exclusive_lock(connection, attachment.table or "", drop)

        # Wait for processes that are still applying changes, because they may create a collection.
        lock_updates(connection, collection_id)
        return attachments.list_of_values(connection, collection_id)


def with_exclusive_lock(connection: Connection, table: str, action: Callable[[], Result]) -> Result:
    """Run a transaction that locks an application's table exclusively.

    All writers queue behind a waiting exclusive lock, so the lock has a short timeout and the transaction is retried.
    Raises ConflictError if the lock is not granted in 60 attempts.
    """
    attempts = Retrying(
        retry=retry_if_exception(is_lock_timeout),
        stop=stop_after_attempt(_TRIGGER_ATTEMPTS),
        wait=wait_random(0.2, 1.0),
        before_sleep=lambda state: connection.rollback(),
    )

    def attempt() -> Result:
        attachments.limit_lock_wait(connection, _TRIGGER_LOCK_TIMEOUT_MILLISECONDS)
        return action()

    try:
        return attempts(attempt)
    except RetryError as error:
        connection.rollback()
        raise ConflictError(
            f"table {table} is locked by long transactions, so its triggers could not be changed; nothing was changed, "
            "try again when they have ended"
        ) from error


def copy_texts(engine: Engine, collection_id: CollectionId, progress: Progress = silent) -> None:
    """Copy the texts of a detached table to the documents, and delete the attachment; safe to rerun if interrupted."""
    with engine.connect() as connection:
        after: int | None = 0
        done = 0
        while after is not None:
            after, copied = retry_conflicts(connection, _copy_batch, connection, collection_id, after)
            done += copied
            progress("keep", done, None)
        attachments.delete_attachment(connection, collection_id)
        connection.commit()


def _copy_batch(connection: Connection, collection_id: CollectionId, after: int) -> tuple[int | None, int]:
    """Copy a batch of texts; return the last doc_id, or None at the end, and the number of texts."""
    source = lock_source(connection, collection_id)
    last, copied = source_rows.copy_texts(connection, source, after, _TEXTS_PER_BATCH)
    connection.commit()
    return last, copied


def refuse_attached_rows(engine: Engine, collection_id: CollectionId, external_ids: list[str]) -> None:
    """Raise ConflictError if the attached table still has rows of these documents."""
    with engine.connect() as connection:
        source = None
        try:
            source = source_rows.find_source(connection, collection_id)
        except NotFoundError:
            return
        existing = [] if source is None else source_rows.find_existing_ids(connection, source, external_ids)

    if existing and source is not None:
        raise ConflictError(
            f"table {source.relation.shown} still has {', '.join(map(repr, existing[:5]))}: delete the rows there "
            "first, then purge"
        )
