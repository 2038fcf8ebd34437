"""The generations that a worker can work on, each with its context."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from datetime import datetime

from nearsim_db.errors import NearsimError
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.similarity.screening import FeatureCache
from nearsim_db.store import collection_rows, generation_rows
from nearsim_db.store.driver import Connection
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
        self._names: dict[CollectionId, str] = {}

    @property
    def known(self) -> Mapping[GenerationId, Context]:
        """The generations that the worker has worked on."""
        return self._contexts

    def facts(self, generation: Generation) -> dict[str, object]:
        """Return the structured log fields of a generation."""
        return {
            "collection": self._names[generation.collection_id],
            "profile": generation.profile,
            "generation": generation.generation_id,
        }

    def describe(self, generation: Generation) -> str:
        """Return a generation's label in log messages."""
        collection = self._names[generation.collection_id]
        return (
            f"profile {generation.profile} of collection {collection} (generation {generation.generation_id})"
        )

    def place(self, generation: Generation) -> str:
        """Return a generation's collection and profile, as news/default."""
        return f"{self._names[generation.collection_id]}/{generation.profile}"

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
            for generation in generation_rows.list_generations(connection):
                if generation.generation_id == generation_id:
                    collections = collection_rows.list_collections(connection)
                    self._names |= {one.collection_id: one.name for one in collections}
                    # The collection may have been deleted after the generations were listed.
                    if generation.collection_id in self._names:
                        self._add(generation)
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
