"""Mark columns: passes over an attached table, which name in a column the document to keep instead of each duplicate.

A pass compares the column with the clusters of the default profile, and writes only the rows whose value differs.
nearsim's triggers on the table do not capture these writes, because no other column changes.
"""

from collections.abc import Callable

from nearsim_db.indexing.attached_sweep import table_lock_id
from nearsim_db.records import CollectionId
from nearsim_db.store.attached import attachments, mark_columns, source_rows
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import is_lock_timeout, is_transient, retry_conflicts
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.work import queue

_ROWS_PER_SLICE = 2_000
_LOCK_TIMEOUT_MILLISECONDS = 200


def write_marks(
    engine: Engine,
    collection_id: CollectionId,
    meanwhile: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> str | None:
    """Bring the mark column of a collection's table up to date. Returns the reason if this failed, otherwise None.

    While another process sweeps the table or writes its marks, this does nothing. `meanwhile` is called after each
    slice. If `stopping` or a lock on the table ends the pass early, a later pass starts again.
    """
    with engine.connect() as connection:
        lock_id = table_lock_id(connection, collection_id)
        if not take_lock(connection, Lock.SWEEP, lock_id, wait=False):
            return None
        began = queue.server_time(connection)
        connection.commit()

        try:
            if _write_all(connection, collection_id, meanwhile, stopping):
                mark_columns.record_pass(connection, collection_id, began)
                connection.commit()
            return None
        except Exception as error:
            connection.rollback()
            if is_transient(error):
                raise
            if is_lock_timeout(error):
                return None  # another session is altering the table
            mark_columns.record_pass(connection, collection_id, began, str(error))
            connection.commit()
            return str(error)
        finally:
            connection.rollback()
            release_lock(connection, Lock.SWEEP, lock_id)
            connection.commit()


def _write_all(
    connection: Connection,
    collection_id: CollectionId,
    meanwhile: Callable[[], None],
    stopping: Callable[[], bool],
) -> bool:
    """Write the marks slice by slice, each slice in its own transaction. Returns whether all slices were written."""
    start: str | None = None
    while True:
        start = retry_conflicts(connection, _write_slice, connection, collection_id, start)
        if start is None:
            return True
        meanwhile()
        if stopping():
            return False


def _write_slice(connection: Connection, collection_id: CollectionId, start: str | None) -> str | None:
    """Write the marks of a slice. Returns the id at which the next slice starts, None after the last slice."""
    attachments.limit_lock_wait(connection, _LOCK_TIMEOUT_MILLISECONDS)
    source = mark_columns.find_marked_source(connection, collection_id)
    next_start = source_rows.find_slice(connection, source, start, _ROWS_PER_SLICE)
    mark_columns.write_slice(connection, source, start, _ROWS_PER_SLICE)
    connection.commit()
    return next_start
