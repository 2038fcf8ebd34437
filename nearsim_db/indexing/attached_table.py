"""Collections that follow a table of an application: what its triggers noted, and sweeps for what they missed.

Triggers only note ids. Whoever looks at them makes the documents what the rows are by then, under a lock of the
collection, so that of two who look the later also sees later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tenacity import RetryError, Retrying, retry_if_exception, stop_after_attempt, wait_random

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.records import CollectionId, Progress, silent
from nearsim_db.store.attached import attachments, source_rows
from nearsim_db.store.attached.source_rows import Source
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import again_after_conflicts, is_lock_timeout, is_passing
from nearsim_db.store.driver.locks import Lock, give_lock_back, hold_lock, take_lock
from nearsim_db.store.work import queue

_CHANGES_PER_BATCH = 2_000
_ROWS_PER_SLICE = 2_000
_DOCUMENTS_PER_SLICE = 5_000
_TEXTS_PER_BATCH = 500
_READING_WAIT_MILLISECONDS = 200
_TRIGGER_WAIT_MILLISECONDS = 1_000
_TRIGGER_ATTEMPTS = 60

Result = TypeVar("Result")


@dataclass(slots=True)
class SweepResult:
    """What a sweep found: rows that were new or had changed, documents whose rows were gone, and rows left out as no
    document can have their id."""

    new: int = 0
    changed: int = 0
    gone: int = 0
    unusable: int = 0


def catch_up(engine: Engine) -> int:
    """Make documents what the rows are that were noted; returns how many notes were taken.

    A table that cannot be followed now has that written down, and is swept when it can.
    """
    done = 0
    with engine.connect() as connection:
        noted = attachments.find_noted(connection)
        connection.rollback()
        for collection_id in noted:
            taken = _CHANGES_PER_BATCH
            while taken == _CHANGES_PER_BATCH:
                taken = again_after_conflicts(connection, partial(_take_in, connection, collection_id))
                done += taken
    return done


def _take_in(connection: Connection, collection_id: CollectionId) -> int:
    """One transaction."""
    hold_lock(connection, Lock.FOLLOW, collection_id)
    noted = attachments.take_noted(connection, collection_id, _CHANGES_PER_BATCH)
    attachment = attachments.find_attachment(connection, collection_id)
    if attachment is not None and not attachment.detaching:
        if None in noted:
            attachments.want_sweep(connection, collection_id)
        attachments.limit_lock_wait(connection, _READING_WAIT_MILLISECONDS)
        try:
            with connection.begin_nested():
                source = source_rows.get_source(connection, collection_id)
                source_rows.follow_ids(connection, source, [id for id in noted if id is not None])
        except Exception as error:
            if is_lock_timeout(error):  # somebody alters the table, and the notes can wait
                connection.rollback()
                return 0
            if is_passing(error):
                raise
            attachments.note_trouble(connection, collection_id, str(error))
    connection.commit()
    return len(noted)


def sweep(
    engine: Engine,
    collection_id: CollectionId,
    progress: Progress = silent,
    *,
    wait: bool = True,
    meanwhile: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> SweepResult | None:
    """Compare all of the table with the documents, in slices; None if somebody else does and that is not waited for.

    One that ends early, or is killed, is done again from the start, where there is then little to write. `meanwhile` is
    called after each slice. Raises NotFoundError where the table cannot be followed.
    """
    with engine.connect() as connection:
        if not take_lock(connection, Lock.SWEEP, collection_id, wait=wait):
            return None
        connection.commit()
        try:
            return _sweep(connection, collection_id, progress, meanwhile, stopping)
        except Exception as error:
            connection.rollback()
            if not is_passing(error):
                attachments.note_trouble(connection, collection_id, str(error))
                connection.commit()
            raise
        finally:
            connection.rollback()
            give_lock_back(connection, Lock.SWEEP, collection_id)
            connection.commit()


def _sweep(
    connection: Connection,
    collection_id: CollectionId,
    progress: Progress,
    meanwhile: Callable[[], None],
    stopping: Callable[[], bool],
) -> SweepResult | None:
    began = queue.server_time(connection)
    connection.commit()
    swept, done = SweepResult(), 0
    start = source_rows.find_slice(connection, source_rows.get_source(connection, collection_id), None, 0)
    while start is not None:
        start, new, changed = again_after_conflicts(
            connection, partial(_compare_rows, connection, collection_id, start)
        )
        swept.new, swept.changed, done = swept.new + new, swept.changed + changed, done + _ROWS_PER_SLICE
        progress("follow", done, None)
        meanwhile()
        if stopping():
            return None
    after: int | None = 0
    while after is not None:
        after, gone = again_after_conflicts(
            connection, partial(_compare_documents, connection, collection_id, after)
        )
        swept.gone += gone
        meanwhile()
        if stopping():
            return None
    swept.unusable = source_rows.count_unusable(connection, source_rows.get_source(connection, collection_id))
    attachments.end_sweep(connection, collection_id, began, swept.unusable)
    connection.commit()
    return swept


def _compare_rows(
    connection: Connection, collection_id: CollectionId, start: str
) -> tuple[str | None, int, int]:
    """One slice in a transaction: the id with which the next begins, and how many documents were new and changed."""
    source = _hold(connection, collection_id)
    following = source_rows.find_slice(connection, source, start, _ROWS_PER_SLICE)
    new, changed = source_rows.follow_slice(connection, source, start, _ROWS_PER_SLICE)
    connection.commit()
    return following, new, changed


def _compare_documents(
    connection: Connection, collection_id: CollectionId, after: int
) -> tuple[int | None, int]:
    source = _hold(connection, collection_id)
    last, gone = source_rows.delete_gone(connection, source, after, _DOCUMENTS_PER_SLICE)
    connection.commit()
    return last, gone


def _hold(connection: Connection, collection_id: CollectionId) -> Source:
    hold_lock(connection, Lock.FOLLOW, collection_id)
    return source_rows.get_source(connection, collection_id)


def catch_up_collection(engine: Engine, collection_id: CollectionId, progress: Progress) -> None:
    """Make the documents of a collection what the table has that it follows, if it does.

    Raises NotFoundError where that table cannot be followed.
    """
    catch_up(engine)
    with engine.connect() as connection:
        attachment = attachments.find_attachment(connection, collection_id)
        if attachment is None or attachment.detaching:
            return
        source_rows.get_source(connection, collection_id)
    if attachment.trouble is not None or not attachment.is_swept:
        sweep(engine, collection_id, progress)


def drop_triggers(engine: Engine, collection_id: CollectionId) -> None:
    """Stop to follow: take our triggers off the table, if the collection follows one that is still there."""
    with engine.connect() as connection:
        attachment = attachments.find_attachment(connection, collection_id)
        if attachment is None:
            return

        def drop() -> None:
            attachments.drop_triggers(connection, attachment)
            attachments.set_detaching(connection, collection_id)
            connection.commit()

        with_exclusive_lock(connection, attachment.table or "", drop)


def with_exclusive_lock(connection: Connection, table: str, action: Callable[[], Result]) -> Result:
    """Do one transaction's work that nobody may write a table beside.

    Its lock is waited for only shortly, as all other writers wait behind, and again after a while. Raises ConflictError
    where it is never to be had.
    """
    attempts = Retrying(
        retry=retry_if_exception(is_lock_timeout),
        stop=stop_after_attempt(_TRIGGER_ATTEMPTS),
        wait=wait_random(0.2, 1.0),
        before_sleep=lambda state: connection.rollback(),
    )

    def attempt() -> Result:
        attachments.limit_lock_wait(connection, _TRIGGER_WAIT_MILLISECONDS)
        return action()

    try:
        return attempts(attempt)
    except RetryError as error:
        connection.rollback()
        raise ConflictError(
            f"table {table} is in use: others hold it so long that no trigger of it could be changed; nothing was "
            "done, try again when their transactions have ended"
        ) from error


def copy_texts(engine: Engine, collection_id: CollectionId, progress: Progress = silent) -> None:
    """Copy the texts of a table that was let go of to the documents, and forget the table. Killed, it is run again."""
    with engine.connect() as connection:
        after: int | None = 0
        done = 0
        while after is not None:
            after = again_after_conflicts(connection, partial(_keep_some, connection, collection_id, after))
            done += _TEXTS_PER_BATCH
            progress("keep", done, None)
        attachments.forget(connection, collection_id)
        connection.commit()


def _keep_some(connection: Connection, collection_id: CollectionId, after: int) -> int | None:
    source = _hold(connection, collection_id)
    last = source_rows.keep_texts(connection, source, after, _TEXTS_PER_BATCH)
    connection.commit()
    return last


def refuse_attached_rows(engine: Engine, collection_id: CollectionId, external_ids: list[str]) -> None:
    """Raise ConflictError for documents whose texts a table that is followed still has."""
    with engine.connect() as connection:
        source = None
        try:
            source = source_rows.find_source(connection, collection_id)
        except NotFoundError:
            return
        kept = [] if source is None else source_rows.find_still_there(connection, source, external_ids)
    if kept and source is not None:
        raise ConflictError(
            f"table {source.relation.shown} still has {', '.join(map(repr, kept[:5]))}: delete the rows there first, "
            "then purge"
        )
