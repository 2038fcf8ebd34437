"""Retention: documents older than a profile's retention age are removed from its index, as if they had been deleted.

They stay in the table `document`, unless the recipe says that they are to be deleted (`retain.delete`).
"""

from collections.abc import Callable

from nearsim_db.indexing.context import Context
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import retry_conflicts

_DOCUMENTS_PER_DELETE = 2_000


def expire_documents(engine: Engine, context: Context, between: Callable[[], None] = lambda: None) -> int:
    """Queue documents that expired since the last call for removal from a generation's index; return how many.

    If the recipe has `retain.delete`, the expired documents are then deleted from the collection, as an application
    would delete them, and so from all indexes of the collection. `between` is called after each transaction. Several
    processes may do this at once.
    """
    if context.retained_seconds is None:
        return 0

    with engine.connect() as connection:
        removals = context.tables(connection).removals
        expired = retry_conflicts(connection, removals.queue_expired, context.collection_id)
        connection.commit()
        between()

        if context.encoder.profile.recipe.retain.delete:
            _delete_documents(connection, context, between)

    return expired


def _delete_documents(connection: Connection, context: Context, between: Callable[[], None]) -> None:
    deleted, removals = _DOCUMENTS_PER_DELETE, context.tables(connection).removals
    while deleted == _DOCUMENTS_PER_DELETE:
        deleted = retry_conflicts(
            connection, removals.delete_expired, context.collection_id, _DOCUMENTS_PER_DELETE
        )
        connection.commit()
        between()
