"""Undo an attachment whose first ingest failed, so that attaching is all or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from nearsim_db.admin.attach import Attached
from nearsim_db.errors import BuildStoppedError, DatabaseError, NearsimError
from nearsim_db.indexing import attached_table, drop_generation, profiles
from nearsim_db.store import collection_rows, generation_rows
from nearsim_db.store.attached import attachments
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import is_transient, translate_errors
from nearsim_db.store.driver.locks import Lock, take_transaction_lock


@contextmanager
def undo_if_failed(database: Database, attached: Attached) -> Iterator[None]:
    """Undo a new attachment if the block fails.

    It stays after an interruption, a lost connection, a full disk or a paused build: attaching again continues there.
    """
    try:
        yield
    except Exception as error:
        if attached.before.attachment or _can_continue(error):
            raise
        try:
            _undo(database, attached)
        except NearsimError as failure:
            command = attachments.detach_command(attached.collection)
            message = f"{error}; the attachment could not be undone ({failure}); run: {command}"
            raise DatabaseError(message) from error
        raise


def _can_continue(error: Exception) -> bool:
    cause = error.__cause__
    return isinstance(error, BuildStoppedError) or (isinstance(cause, Exception) and is_transient(cause))


def _undo(database: Database, attached: Attached) -> None:
    """Drop the triggers, and delete what the attachment created: documents, profiles, the collection."""
    if not attached.before.collection:
        drop_generation.delete_collection(database, attached.collection)
        return
    with database.transaction() as connection:
        collection = collection_rows.get_collection(connection, attached.collection)
        created = (
            generation_rows.profile_names(connection, collection.collection_id) - attached.before.profiles
        )
    for name in created:
        profiles.drop(database, collection, name)
    with translate_errors():
        attached_table.drop_triggers(database.engine, collection.collection_id)
    with database.transaction() as connection:
        take_transaction_lock(connection, Lock.ATTACHED_UPDATE, collection.collection_id)
        attachments.delete_attached_documents(connection, collection.collection_id)
        attachments.delete_attachment(connection, collection.collection_id)
