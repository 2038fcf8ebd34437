"""Catch up: build the indexes of a collection, and apply to them what was written to it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from nearsim_db.errors import DEFAULT, FingerprintError, RecipeError
from nearsim_db.indexing import build, build_plan, profiles, retention
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.indexing.signing import EarlySigning, is_suitable
from nearsim_db.records import CollectionId, GenerationId, Progress
from nearsim_db.similarity.backend import FEW_CHARACTERS, plain_characters
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store import query_rows
from nearsim_db.store.database import Database
from nearsim_db.store.generations import generation_rows, generation_states
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.work import queue

_SHARED_BYTES = 8_000_000  # of texts whose index shares its tables with others


class CatchUp:
    """Brings the indexes of collections up to date in the calling process."""

    def __init__(self, database: Database, contexts: ContextFactory, progress: Progress) -> None:
        self._database = database
        self._contexts = contexts
        self._progress = progress
        self._spooled: dict[GenerationId, Context] = {}

    def catch_up(self, generation: Generation) -> None:
        """Do everything that is queued for a generation; one that was catching up is ready then."""
        engine = self._database.engine
        with self._context(generation) as context:
            retention.expire_documents(engine, context)
            with self._database.transaction() as connection:
                has_work = queue.has_work(connection, context.leaves)
            if has_work:
                # Opened only now: a lease without a heartbeat during a long build or sweep would expire.
                with self._database.lease() as lease_id:
                    Runner(engine, context).drain(lease_id, self._progress)
        if generation.state == "catching_up":
            with self._database.transaction() as connection:
                generation_states.mark_ready(connection)

    def ensure_built(self, collection_id: CollectionId) -> list[Generation]:
        """Build first generations that are not built yet; return all generations of the collection.

        A collection without a profile gets one with the default recipe.
        """
        existing = self.generations(collection_id)
        if existing and not any(one.is_first_build for one in existing):
            return existing
        with self._database.builder(collection_id):
            existing = self.generations(collection_id)
            for generation in existing or [self._default_profile(collection_id)]:
                if generation.is_first_build:
                    self.build(self._placed(generation, is_large=False) if existing else generation)
        return self.generations(collection_id)

    def build(self, generation: Generation) -> None:
        """Build a generation, from the stage at which it stopped."""
        with self._context(generation) as context:
            build.build(self._database.engine, context, self._progress)

    @contextmanager
    def _context(self, generation: Generation) -> Iterator[Context]:
        """Return the context that has the generation's spool, or a new one; it is closed after the block."""
        context = self._spooled.pop(generation.generation_id, None)
        context = context or self._contexts.make(generation, plain_characters=FEW_CHARACTERS)
        try:
            yield context
        finally:
            context.build.close_spool()

    def delay_first_build(self, collection_id: CollectionId) -> AbstractContextManager[object]:
        """Keep workers from building a first index before the block has written its documents."""
        if not any(one.is_first_build for one in self.generations(collection_id)):
            return nullcontext()
        return self._database.builder(collection_id, wait=False)

    @contextmanager
    def sign_early(
        self,
        collection_id: CollectionId,
        expected_bytes: int | None = None,
        existing: Sequence[Generation] = (),
        *,
        is_few: bool = False,
    ) -> Iterator[EarlySigning]:
        """Delay first builds as above; documents that the block writes can be signed for them meanwhile.

        `expected_bytes` is about the size of their texts, if it is known, `existing` the collection's generations. Few
        documents are one transaction, and are left to the build, as to sign them early would take more statements.
        A collection without a profile gets one with the default recipe.
        """
        engine, contexts = self._database.engine, list[Context]()
        is_built = bool(existing) and not any(one.is_first_build for one in existing)
        if is_few or is_built or not self._database.may_index:
            delay = nullcontext() if is_few or is_built else self.delay_first_build(collection_id)
            with delay, EarlySigning(engine, contexts) as signing:
                yield signing
            return
        with self._database.builder(collection_id, wait=False) as is_builder:
            if is_builder:
                contexts = self._find_signable(collection_id, expected_bytes)
            self._spooled = {one.generation.generation_id: one for one in contexts}
            with self._database.transaction() as connection:
                was_empty = not query_rows.has_documents(connection, collection_id)
            with EarlySigning(engine, contexts, was_empty=was_empty) as signing:
                yield signing

    def _placed(self, generation: Generation, *, is_large: bool) -> Generation:
        """Return a generation whose build begins, with tables of its own if its collection is large, or will be.

        The caller holds the build lock.
        """
        if generation.generation_id in self._spooled:
            return generation
        with self._database.transaction() as connection:
            return build_plan.place(connection, generation, is_large=is_large)

    def _find_signable(self, collection_id: CollectionId, expected_bytes: int | None) -> list[Context]:
        """Return contexts of the generations that can be signed early; the caller holds the build lock."""
        plain = plain_characters(expected_bytes)
        is_large = expected_bytes is None or expected_bytes > _SHARED_BYTES
        generations = self.generations(collection_id) or [self._default_profile(collection_id)]
        first = [self._placed(one, is_large=is_large) for one in generations if one.is_first_build]
        contexts = [self._contexts.make_if_reproducible(one, plain_characters=plain) for one in first]
        return [one for one in contexts if one is not None and is_suitable(one)]

    @contextmanager
    def skip_irreproducible(self) -> Iterator[None]:
        """Turn an error of a generation that this version cannot reproduce into a warning."""
        try:
            yield
        except (FingerprintError, RecipeError) as error:
            self._contexts.warn(str(error))

    def _default_profile(self, collection_id: CollectionId) -> Generation:
        with self._database.transaction() as connection:
            return profiles.create(connection, collection_id, DEFAULT, resolve(Recipe()))

    def generations(self, collection_id: CollectionId) -> list[Generation]:
        """Return the generations of a collection."""
        with self._database.transaction() as connection:
            return generation_rows.list_generations(connection, collection_id)
