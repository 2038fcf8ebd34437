"""The window: documents older than a profile retains leave its index, in bulk, and stay in `document`."""

from collections.abc import Callable
from functools import partial

from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.similarity.profile import Profile
from nearsim_db.store import documents, retention
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import again_after_conflicts
from nearsim_db.store.driver.locks import Lock, hold_lock
from nearsim_db.store.retention import Edge
from nearsim_db.store.work import queue

_DOCUMENTS_AT_ONCE = 2_000


def sweep(engine: Engine, context: Context, meanwhile: Callable[[], None] = lambda: None) -> int:
    """Take out of a generation what has left its window since the sweep before; returns how many documents.

    Any number may sweep at once. One that is killed has moved nothing on, and the next one finishes. `meanwhile` is
    called after each slice.
    """
    age = context.encoder.profile.recipe.retain.seconds
    if age is None:
        return 0
    with engine.connect() as connection:
        edge = again_after_conflicts(connection, partial(_find_edge, connection, context, age))
        if edge is None:
            return 0
        collection_id = context.generation.collection_id
        expired = retention.find_expired(connection, context.leaves, collection_id, edge)
        connection.commit()
        for at in range(0, len(expired), _DOCUMENTS_AT_ONCE):
            leaving = expired[at : at + _DOCUMENTS_AT_ONCE]
            again_after_conflicts(connection, partial(_take_out, connection, context, leaving, age))
            meanwhile()
        retention.move_through(connection, context.leaves, edge.through)
        connection.commit()
    return len(expired)


def refuse_outside(
    connection: Connection, generation: Generation, profile: Profile, doc_id: int, external_id: str
) -> None:
    """Raise NotFoundError for a document that is in no index only because it is too old for it."""
    retain = profile.recipe.retain
    if len(documents.find_outside(connection, generation.collection_id, [doc_id], retain.seconds)):
        raise NotFoundError(
            f"document {external_id!r} is outside of the window of profile {generation.profile!r}, which holds "
            f"documents of the last {retain.age}"
        )


def _find_edge(connection: Connection, context: Context, age: int) -> Edge | None:
    """The edge of the window at a moment when nobody stores signatures.

    Who stored before has committed, so the sweep sees it; who stores after finds by a later clock that a document has
    left, and queues it. So none slips through between being read inside the window and being stored outside of it.
    """
    hold_lock(connection, Lock.STORE, context.generation.generation_id)
    edge = retention.read_edge(connection, context.leaves, age)
    connection.commit()
    return edge


def _take_out(connection: Connection, context: Context, leaving: list[int], age: int) -> None:
    """One slice. The largest doc_ids come first: anchors and heads are the smallest, so whatever takes the place of a
    document that leaves is one that stays, and is searched once for all that left before it."""
    steps.store_signatures(connection, context, leaving, steps.sign_documents(context, []))
    # Their date was changed meanwhile, and they may have been signed again before this slice took them out.
    outside = documents.find_outside(connection, context.generation.collection_id, leaving, age)
    queue.queue_work(connection, context.leaves, "sign", sorted(set(leaving) - set(outside.tolist())))
    connection.commit()
