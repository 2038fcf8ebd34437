"""The generations that a worker can work on, each with its context; the collections in its scope; periodic services."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from nearsim_db.errors import NearsimError, NotFoundError
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.similarity.screening import FeatureCache
from nearsim_db.store import collection_rows, generation_rows
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.settings import Settings

_log = logging.getLogger("nearsim.worker")


class Contexts:
    """Contexts by generation, created on first use.

    `refused` holds the generations whose recipe this version cannot reproduce, each with the error, logged once.
    """

    def __init__(self, settings: Settings, pool: Executor) -> None:
        self.refused: dict[GenerationId, NearsimError] = {}
        self._settings = settings
        self._pool = pool
        self._contexts: dict[GenerationId, Context] = {}
        self._purges: dict[CollectionId, datetime] = {}

    @property
    def known(self) -> Mapping[GenerationId, Context]:
        """The generations that the worker has worked on."""
        return self._contexts

    def facts(self, generation: Generation) -> dict[str, object]:
        """Return the structured log fields of a generation."""
        return {
            "collection": generation.collection,
            "profile": generation.profile,
            "generation": generation.generation_id,
        }

    def describe(self, generation: Generation) -> str:
        """Return a generation's label in log messages."""
        place = f"profile {generation.profile} of collection {generation.collection}"
        return f"{place} (generation {generation.generation_id})"

    def place(self, generation: Generation) -> str:
        """Return a generation's collection and profile, as news/default."""
        return f"{generation.collection}/{generation.profile}"

    def refresh(self, connection: Connection) -> None:
        """Drop the contexts of deleted generations, and cached features of collections whose texts were purged."""
        existing = {one.generation_id for one in generation_rows.list_generations(connection)}
        self._contexts = {id: context for id, context in self._contexts.items() if id in existing}
        self.refused = {id: error for id, error in self.refused.items() if id in existing}
        purges = collection_rows.read_purges(connection)
        for context in self._contexts.values():
            collection_id = context.collection_id
            if purges.get(collection_id) != self._purges.get(collection_id):
                context.cache = FeatureCache()
        self._purges = purges

    def find(self, connection: Connection, generation_id: GenerationId) -> Context | None:
        """Return the context of a generation; None if it was deleted or is refused."""
        if generation_id not in self._contexts and generation_id not in self.refused:
            with suppress(NotFoundError):
                self._add(generation_rows.get_generation(connection, generation_id))
        return self._contexts.get(generation_id)

    def _add(self, generation: Generation) -> None:
        factory = ContextFactory(self._settings, self._pool, self._warner(generation))
        try:
            self._contexts[generation.generation_id] = factory.make(generation)
        except NearsimError as error:
            self.refused[generation.generation_id] = error
            facts = self.facts(generation)
            _log.error(
                f"{self.describe(generation)} is skipped: {error}", extra={"event": "refused", "facts": facts}
            )

    def _warner(self, generation: Generation) -> Callable[[str], None]:
        facts, place = self.facts(generation), self.place(generation)

        def warn(message: str) -> None:
            _log.warning(f"{place}: {message}", extra={"event": "warning", "facts": facts})

        return warn


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


@dataclass(frozen=True, slots=True)
class Service:
    """A task that runs when its schedule starts, then `period_seconds` after the end of each run."""

    name: str
    period_seconds: float
    run: Callable[[], None]


class Schedule:
    """Services in the order in which they run."""

    def __init__(self, services: Sequence[Service], clock: Callable[[], float] = time.monotonic) -> None:
        self._services = tuple(services)
        self._clock = clock
        self._due_at = {service.name: -float("inf") for service in services}

    def run_due(self) -> None:
        """Run each service whose period has passed."""
        for service in self._services:
            if self._clock() >= self._due_at[service.name]:
                service.run()
                self._due_at[service.name] = self._clock() + service.period_seconds
