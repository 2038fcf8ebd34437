"""What the services of one worker share."""

from collections.abc import Callable
from dataclasses import dataclass

from nearsim_db.records import CollectionId
from nearsim_db.store import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Engine
from nearsim_db.worker.contexts import Contexts


@dataclass(slots=True)
class Scope:
    """The collection that a worker works on, or all if `collection` is None.

    `collection_id` is known after the first `refresh`. `stopping` says whether the worker was asked to stop.
    """

    database: Database
    collection: str | None
    contexts: Contexts
    stopping: Callable[[], bool]
    collection_id: CollectionId | None = None

    @property
    def engine(self) -> Engine:
        """The database's engine."""
        return self.database.engine

    def refresh(self) -> None:
        """Look the collection up again, and drop contexts that are out of date. Raises NotFoundError."""
        with self.engine.connect() as connection:
            if self.collection is not None:
                self.collection_id = collection_rows.get_collection(connection, self.collection).collection_id
            self.contexts.refresh(connection)

    def includes(self, collection_id: CollectionId) -> bool:
        """Whether the worker works on a collection."""
        return self.collection_id in (None, collection_id)
