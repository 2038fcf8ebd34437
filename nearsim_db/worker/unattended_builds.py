"""Generations that were to be built and that nobody builds: a killed ingest left them, they wait for documents, or they
were left to the workers. What somebody began to build beside a live one, and was killed, is for a person to resume."""

import time
from collections.abc import Callable

from nearsim_db.errors import BuildStoppedError, NearsimError
from nearsim_db.indexing import build
from nearsim_db.indexing.context import Context, Contexts
from nearsim_db.records import CollectionId, GenerationId, Notable, Tell
from nearsim_db.store import catalog, documents
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import is_passing
from nearsim_db.store.driver.locks import Lock, give_lock_back, take_lock
from nearsim_db.worker.metrics import Monitor

_AGAIN_SECONDS = 60.0


class _Stopped(Exception):
    """The worker shall stop; the build goes on where it was, by whoever builds next."""


class Orphans:
    """Builds them. `failed` are those that could not be built here, each with the reason; they are tried again later.

    `meanwhile` is called now and then during a build; when `stopping` says so, the build ends early.
    """

    def __init__(
        self,
        engine: Engine,
        contexts: Contexts,
        tell: Tell,
        monitor: Monitor,
        stopping: Callable[[], bool],
        meanwhile: Callable[[], None],
    ) -> None:
        self.failed: dict[GenerationId, NearsimError] = {}
        self._again_at: dict[GenerationId, float] = {}
        self._engine = engine
        self._contexts = contexts
        self._tell = tell
        self._monitor = monitor
        self._stopping = stopping
        self._meanwhile = meanwhile

    def build(self, collection_id: CollectionId | None) -> None:
        """Build those of one collection, or of all lasting ones."""
        with self._engine.connect() as connection:
            lasting = {one.collection_id for one in catalog.list_collections(connection)}
            generations = catalog.list_generations(connection, collection_id)
        there = {one.generation_id for one in generations}
        self.failed = {id: error for id, error in self.failed.items() if id in there}
        for generation in generations:
            due = time.monotonic() >= self._again_at.get(generation.generation_id, 0.0)
            mine = generation.is_first_build or (generation.state == "building" and generation.detached)
            if mine and generation.collection_id in lasting and due:
                with self._engine.connect() as connection:
                    self._build_if_free(connection, generation)

    def _build_if_free(self, connection: Connection, generation: Generation) -> None:
        # What is empty waits for its documents: most of them come at once, and are then built in bulk.
        if generation.is_first_build and not documents.any_document(connection, generation.collection_id):
            return
        lock, id = (
            (Lock.BUILD, int(generation.collection_id))
            if generation.is_first_build
            else (Lock.REINDEX, int(generation.generation_id))
        )
        if not take_lock(connection, lock, id, wait=False):
            return
        try:
            now = {one.generation_id: one.state for one in catalog.list_generations(connection)}
            context = self._contexts.find(connection, generation.generation_id)
            connection.commit()
            if context is not None and now.get(generation.generation_id) == "building":
                self._build_one(context)
        finally:
            give_lock_back(connection, lock, id)
            connection.commit()

    def _build_one(self, context: Context) -> None:
        generation = context.generation
        shown, facts = self._contexts.shown(generation), self._contexts.facts(generation)
        self._tell(Notable("build", f"building {shown}", facts=facts))
        try:
            with self._monitor.batch("build"):
                build.build(self._engine, context, self._goes_on)
        except BuildStoppedError as error:
            self._tell(Notable("build", f"{shown}: {error}", facts=facts))
        except _Stopped:
            self._tell(
                Notable("build", f"{shown} goes on where it stopped when it is built next", facts=facts)
            )
        except Exception as error:
            if is_passing(error):
                raise
            told = f"{shown} cannot be built: {type(error).__name__}: {error}"
            self.failed[generation.generation_id] = NearsimError(told)
            self._again_at[generation.generation_id] = time.monotonic() + _AGAIN_SECONDS
            self._tell(Notable("build_failed", told, "error", facts))
        else:
            self.failed.pop(generation.generation_id, None)
            self._tell(Notable("build", f"built {shown}", facts=facts))

    def _goes_on(self, step: str, done: int, total: int | None) -> None:
        self._monitor.batch_goes_on("build")
        self._meanwhile()
        if self._stopping():
            raise _Stopped
