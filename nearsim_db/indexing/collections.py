"""Delete collections and generations, and create collections that last as long as a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nearsim_db.errors import NearsimError
from nearsim_db.store import access, collection_rows, generation_rows, generations
from nearsim_db.store.collection_rows import Collection
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import translate_errors
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.driver.rows import fetch_value

# Deleted documents. VACUUM attempts for up to five seconds to cut off a table that other sessions read all the time.
_VACUUM_FROM = 20_000


def open_database(url: str | None = None) -> Database:
    """Open a database, as `Database.connect` does, and delete the collections that killed processes left behind."""
    database = Database.connect(url)
    try:
        delete_abandoned_collections(database)
    except NearsimError:
        database.close()
        raise
    return database


@dataclass(frozen=True, slots=True)
class TemporaryCollection:
    """A collection that lasts as long as its connection; its index is not written to the write-ahead log."""

    collection: Collection
    _lease: Connection

    def check_kept(self) -> None:
        """Raise UnreachableError if the server has ended the connection: a crash empties unlogged tables."""
        with translate_errors():
            fetch_value(self._lease, "SELECT true")
            self._lease.commit()


@contextmanager
def temporary_collection(database: Database, name: str) -> Iterator[TemporaryCollection]:
    """Create a collection that is deleted at the end of the block.

    The process holds its lease: when it is killed, `open_database` deletes the collection. Call `check_kept` after its
    index was read.
    """
    with translate_errors(), database.engine.connect() as lease:
        collection = collection_rows.create_collection(lease, name, temporary=True)
        take_lock(lease, Lock.TEMPORARY, collection.collection_id)
        lease.commit()
        try:
            yield TemporaryCollection(collection, lease)
        finally:
            _drop(database, collection)
            release_lock(lease, Lock.TEMPORARY, collection.collection_id)
            lease.commit()


def delete_collection(database: Database, name: str) -> int:
    """Delete a collection with its documents and indexes; return the number of documents.

    Builds of its indexes stop at their next step.
    """
    with database.transaction() as connection:
        collection = collection_rows.get_collection(connection, name)
        generations.mark_abandoned(
            connection, generation_rows.list_generations(connection, collection.collection_id)
        )
    from nearsim_db.indexing import attached_table

    with database.builder(collection.collection_id):
        attached_table.drop_triggers(database.engine, collection.collection_id)
        documents = database.count_documents(collection)
        _drop(database, collection)
    return documents


def delete_abandoned_collections(database: Database) -> None:
    """Delete temporary collections whose process has ended, if the user may."""
    with database.transaction() as connection:
        temporary = collection_rows.list_collections(connection, temporary=True)
        may_drop = bool(temporary) and access.has_owners_rights(connection)
    for collection in temporary if may_drop else ():
        with translate_errors(), database.engine.connect() as connection:
            if _is_abandoned(connection, collection):
                _drop(database, collection)


def _is_abandoned(connection: Connection, collection: Collection) -> bool:
    if not take_lock(connection, Lock.TEMPORARY, collection.collection_id, wait=False):
        return False
    return collection_rows.find_collection(connection, collection.name) is not None


def _drop(database: Database, collection: Collection) -> None:
    # Few commands find something to drop; the others do not import this.
    from nearsim_db.indexing.drop_generation import finish

    with database.transaction() as connection:
        existing = generation_rows.list_generations(connection, collection.collection_id)
    for generation in existing:
        finish(database.engine, generation)
    with database.transaction() as connection:
        documents = collection_rows.count_documents(connection, collection.collection_id)
        collection_rows.delete_collection(connection, collection)
    if documents >= _VACUUM_FROM:
        with database.engine.connect(autocommit=True) as connection:
            collection_rows.vacuum_documents(connection)
