"""Drop generations or whole collections without blocking sessions that use other generations.

Tables are detached and dropped under locks with a short timeout. This is retried until all sessions that read the
tables have ended. If the time for this runs out, a worker finishes the drop later.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tenacity import RetryError, Retrying, retry_if_exception, stop_after_delay, wait_random

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.indexing import attached_table
from nearsim_db.messages import count_of
from nearsim_db.records import GenerationId
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import attachments
from nearsim_db.store.attached.attachments import limit_lock_wait
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import is_lock_timeout, retry_conflicts, translate_errors
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock, take_transaction_lock
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.generations import generation_rows, generation_states, partitions
from nearsim_db.store.generations.generation_rows import Generation, State
from nearsim_db.store.generations.tables import GenerationTables

# Readers and writers queue behind a waiting table lock.
_MAX_TABLE_LOCK_MILLISECONDS = 40
# Only builders and workers queue behind these locks.
_MAX_BUILDER_LOCK_MILLISECONDS = 1_000
_VALUES_SHOWN = 5
_DROPPABLE: tuple[State, ...] = (*generation_states.PENDING, "retired", "abandoned")


@dataclass(frozen=True, slots=True)
class Dropped:
    """An abandoned generation, dropped now or later."""

    generation: Generation
    finished: bool  # False if a worker drops the tables later, once nobody reads them
    held_by: list[str]  # the sessions that still read the tables, if the drop is not finished


class _Busy(Exception):
    """Another process is detaching partitions."""


def drop(engine: Engine, generation: Generation, patience_seconds: float = 10.0) -> Dropped:
    """Drop a generation that is not live, with its tables and its queue.

    Waits up to `patience_seconds` for sessions that read the tables; if they do not end, a worker finishes the drop
    later. Safe to rerun if interrupted.
    """
    with translate_errors(), suppress(NotFoundError):
        with engine.begin() as connection:
            try:
                generation_states.abandon(connection, generation, _DROPPABLE, drop=True)
            except ConflictError:
                generation_rows.reread(connection, generation)  # NotFoundError if another session dropped it
                raise
        return finish(engine, generation, patience_seconds)
    return Dropped(generation, True, [])


def finish(engine: Engine, generation: Generation, patience_seconds: float = math.inf) -> Dropped:
    """Drop the tables of an abandoned generation, unless sessions still read them after `patience_seconds`."""
    with translate_errors(), engine.connect(autocommit=True) as connection:
        tables = generation.tables(connection)
        if _empty(tables, patience_seconds, partial(_drop, engine, generation)):
            return Dropped(generation, True, [])
        return Dropped(generation, False, tables.list_lock_holders())


def drop_remains(engine: Engine) -> list[GenerationId]:
    """Drop tables and rows of generations that were deleted in SQL; return their numbers.

    Tables that other sessions use, and rows in a damaged table, are left to the next call.
    """
    with translate_errors(), engine.connect(autocommit=True) as connection:
        remains = partitions.list_remains(connection)
        for leaves in remains:
            _empty(GenerationTables(connection, leaves), 0.0, partial(_drop_tables, engine, leaves))
        left = partitions.list_remains(connection) if remains else []
    return [leaves.generation_id for leaves in remains if leaves not in left]


def _empty(tables: GenerationTables, patience_seconds: float, drop: Callable[[], None]) -> bool:
    """Detach tables or delete their rows, and drop them; return False if sessions use them for too long."""
    try:
        _retry_for(patience_seconds, partial(_detach, tables))
        tables.empty()
        _retry_for(patience_seconds, drop)
        tables.reuse_space()
    except RetryError:
        return False
    return True


def _retry_for(seconds: float, action: Callable[[], None]) -> None:
    """Retry an action until it gets its locks, which have a short timeout. Raises RetryError after `seconds`."""
    attempts = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, _Busy) or is_lock_timeout(error)),
        stop=stop_after_delay(seconds),
        wait=wait_random(0.05, 0.2),
    )
    attempts(action)


def _detach(tables: GenerationTables) -> None:
    connection = tables.connection
    # PostgreSQL can detach only one partition of a table at a time.
    if not take_lock(connection, Lock.DROP, 0, wait=False):
        raise _Busy
    try:
        partitions.limit_lock_wait(connection, _MAX_TABLE_LOCK_MILLISECONDS)
        tables.detach()
    finally:
        partitions.limit_lock_wait(connection, 0)
        release_lock(connection, Lock.DROP, 0)


def _drop(engine: Engine, generation: Generation) -> None:
    with engine.connect() as connection, suppress(NotFoundError):
        retry_conflicts(connection, _drop_locked, connection, generation)
        connection.commit()


def _drop_locked(connection: Connection, generation: Generation) -> None:
    _lock(connection, generation.generation_id)
    generation_rows.reread(connection, generation)
    generation_rows.drop_generation(connection, generation)


def _drop_tables(engine: Engine, leaves: Leaves) -> None:
    with engine.begin() as connection:
        _lock(connection, leaves.generation_id)
        GenerationTables(connection, leaves).drop()


def _lock(connection: Connection, generation_id: GenerationId) -> None:
    """Take the locks of builds, stores and links, which lock the tables in another order than DROP does."""
    limit_lock_wait(connection, _MAX_BUILDER_LOCK_MILLISECONDS)
    for lock in (Lock.REINDEX, Lock.STORE, Lock.LINK):
        take_transaction_lock(connection, lock, generation_id)
    limit_lock_wait(connection, _MAX_TABLE_LOCK_MILLISECONDS)


@dataclass(frozen=True, slots=True)
class DeletedCollections:
    """What is deleted together with a collection."""

    documents: int  # documents of the collection itself
    of_values: dict[str, int]  # documents by collection, for the collections of an attached table's values

    @property
    def total(self) -> int:
        """The number of documents in all these collections."""
        return self.documents + sum(self.of_values.values())


def describe_deletion(database: Database, name: str) -> DeletedCollections:
    """Return what `delete_collection` would delete. Raises NotFoundError if there is no such collection."""
    with database.transaction() as connection:
        collection = collection_rows.get_collection(connection, name)
        of_values = attachments.list_of_values(connection, collection.collection_id)
        counts = {
            value.collection: collection_rows.count_documents(connection, value.collection_id)
            for value in of_values
        }
        return DeletedCollections(
            collection_rows.count_documents(connection, collection.collection_id), counts
        )


def refuse_values(name: str, deleted: DeletedCollections) -> None:
    """Raise ConflictError if the collections of an attached table's values would be deleted with a collection."""
    if not deleted.of_values:
        return

    shown = [f"{value} ({count:,})" for value, count in list(deleted.of_values.items())[:_VALUES_SHOWN]]
    ellipsis = ", ..." if len(deleted.of_values) > _VALUES_SHOWN else ""
    raise ConflictError(
        f"collection {name!r} follows a table with a collection field: "
        f"{count_of(len(deleted.of_values), 'collection')} of its values with {count_of(deleted.total, 'document')} "
        f"would be deleted with it: {', '.join(shown)}{ellipsis}; to delete all of them add --with-values"
    )


def delete_collection(database: Database, name: str, *, with_values: bool = True) -> int:
    """Delete a collection with its documents and indexes; return the number of documents.

    The collections of an attached table's values are deleted as well. If there are any and `with_values` is false, this
    raises ConflictError. Builds of the collection's indexes stop at their next step.
    """
    if not with_values:
        refuse_values(name, describe_deletion(database, name))

    # Stop the builds, which hold the lock that is taken next.
    with database.transaction() as connection:
        collection = collection_rows.get_collection(connection, name)
        existing = generation_rows.list_generations(connection, collection.collection_id)
        generation_states.mark_abandoned(connection, existing)

    with database.builder(collection.collection_id):
        of_values = attached_table.drop_triggers(database.engine, collection.collection_id)
        documents = sum(delete_collection(database, value.collection) for value in of_values)
        documents += database.count_documents(collection)

        with database.transaction() as connection:
            existing = generation_rows.list_generations(connection, collection.collection_id)
        for generation in existing:
            finish(database.engine, generation)
        with database.transaction() as connection:
            collection_rows.delete_collection(connection, collection)
    return documents
