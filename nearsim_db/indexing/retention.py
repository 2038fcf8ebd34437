"""Retention: remove documents older than a profile's retention window from its index.

They stay in `document`, unless the recipe deletes them (`retain.delete`).
"""

from collections.abc import Callable
from functools import partial

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.store.documents import documents, purges
from nearsim_db.store.documents.purges import Cutoffs
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import retry_conflicts
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.work import queue

_DOCUMENTS_PER_SLICE = 2_000


def sweep(engine: Engine, context: Context, meanwhile: Callable[[], None] = lambda: None) -> int:
    """Remove from a generation the documents that left its window since the last sweep; return how many.

    Several processes may sweep at once. After a sweep that was killed the next one finishes its work. `meanwhile` is
    called after each slice.
    """
    age = context.encoder.profile.recipe.retain.seconds
    if age is None:
        return 0
    with engine.connect() as connection:
        edge = retry_conflicts(connection, partial(_find_edge, connection, context, age))
        if edge is None:
            return 0
        collection_id = context.generation.collection_id
        expired = purges.find_expired(connection, context.leaves, collection_id, edge)
        connection.commit()
        for at in range(0, len(expired), _DOCUMENTS_PER_SLICE):
            leaving = expired[at : at + _DOCUMENTS_PER_SLICE]
            retry_conflicts(connection, partial(_remove, connection, context, leaving, age))
            meanwhile()
        purges.advance(connection, context.leaves, edge.through)
        connection.commit()
        if context.encoder.profile.recipe.retain.delete:
            _delete(connection, context, age, meanwhile)
    return len(expired)


def _delete(connection: Connection, context: Context, age: int, meanwhile: Callable[[], None]) -> None:
    """Delete what is older than the age from the collection, as an application would: all its indexes follow."""
    generation, deleted = context.generation, _DOCUMENTS_PER_SLICE
    while deleted == _DOCUMENTS_PER_SLICE:
        deleted = retry_conflicts(
            connection,
            partial(
                purges.delete_expired,
                connection,
                generation.collection_id,
                generation.generation_id,
                age,
                _DOCUMENTS_PER_SLICE,
            ),
        )
        connection.commit()
        meanwhile()


def _find_edge(connection: Connection, context: Context, age: int) -> Cutoffs | None:
    """Return the edge of the window at a moment when no process is storing signatures.

    Signatures stored before are committed, so the sweep sees them; a process that stores later checks the window by a
    later clock and queues documents that left it. So none is missed that is read inside the window and stored outside.
    """
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id)
    edge = purges.read_cutoffs(connection, context.leaves, age)
    connection.commit()
    return edge


def _remove(connection: Connection, context: Context, leaving: list[int], age: int) -> None:
    """Remove a slice of documents, largest doc_ids first.

    Anchors and heads have the smallest doc_ids, so a document that replaces one of them stays, and is searched once.
    """
    steps.store_signatures(connection, context, leaving, steps.sign_documents(context, []))
    # Documents whose date was changed meanwhile may have been signed again before this slice removed them.
    outside = documents.find_past_retention(connection, context.generation.collection_id, leaving, age)
    queue.queue_work(connection, context.leaves, "sign", sorted(set(leaving) - set(outside.tolist())))
    connection.commit()
