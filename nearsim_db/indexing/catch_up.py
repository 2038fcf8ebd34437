"""Build the indexes of collections in the calling process, and bring them up to date with their documents."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext

from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.indexing import build, build_plan, profiles, retention
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.records import DEFAULT, CollectionId, Progress, silent
from nearsim_db.similarity.backend import FIRST_PLAIN_CHARACTERS, plain_characters
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store import query_rows
from nearsim_db.store.access import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.generations import generation_rows, generation_states
from nearsim_db.store.generations.generation_rows import Generation

# An index of texts up to this size shares its tables with other indexes.
_MAX_SHARED_TABLES_BYTES = 8_000_000


class CatchUp:
    """Brings the indexes of collections up to date in the calling process."""

    def __init__(self, database: Database, contexts: ContextFactory, progress: Progress) -> None:
        self._database = database
        self._contexts = contexts
        self._progress = progress
        # The limit applies to all builds together, because there may be hundreds of small ones.
        self._plain_characters = FIRST_PLAIN_CHARACTERS

    def catch_up(self, generation: Generation) -> None:
        """Do all work that is queued for a generation; if it was catching up, it is ready afterwards."""
        engine = self._database.engine
        context = self._contexts.make(generation, plain_characters=FIRST_PLAIN_CHARACTERS)
        retention.expire_documents(engine, context)

        with self._database.transaction() as connection:
            has_work = context.tables(connection).work.has_any()
        if has_work:
            # Open the lease only now: it would expire if it sent no heartbeat during a long build or sweep.
            with self._database.lease() as lease_id:
                Runner(engine, context).drain(lease_id, self._progress)

        if generation.state == "catching_up":
            with self._database.transaction() as connection:
                generation_states.mark_ready(connection)

    def ensure_built(self, collection_id: CollectionId, prepared: Sequence[Context] = ()) -> list[Generation]:
        """Build the first generations that are not built yet; return all generations of the collection.

        `prepared` has the contexts of those generations for which documents were signed already. A collection without a
        profile gets one with the default recipe.
        """
        existing = self.generations(collection_id)
        if existing and not any(generation.is_first_build for generation in existing):
            return existing
        self._build_first(collection_id, self._progress, prepared)
        return self.generations(collection_id)

    def ensure_all_built(self, collection_ids: Sequence[CollectionId]) -> list[Generation]:
        """Build the first generations of collections with attached tables; return all generations of the collections.

        Raises InputError if a recipe does not suit the documents of its collection.
        """
        existing = self.generations(*collection_ids)
        built = {generation.collection_id for generation in existing}
        built -= {generation.collection_id for generation in existing if generation.is_first_build}
        unbuilt = [collection_id for collection_id in collection_ids if collection_id not in built]
        if not unbuilt:
            return existing

        limit = build.MAX_SMALL_BUILD_ATTACHED_DOCUMENTS
        with self._database.transaction() as connection:
            counts = [
                collection_rows.count_documents(connection, collection_id, limit + 1)
                for collection_id in unbuilt
            ]

        # Run small builds side by side, because during a small build either this process or the server is idle. Run
        # large builds one after the other, because each uses all threads.
        small = [
            collection_id for collection_id, count in zip(unbuilt, counts, strict=True) if count <= limit
        ]
        with ThreadPoolExecutor(self._contexts.settings.threads, thread_name_prefix="nearsim-builds") as pool:
            builds = [pool.submit(self._build_if_suitable, collection_id, silent) for collection_id in small]
            try:
                for future in builds:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for collection_id in unbuilt:
            if collection_id not in small:
                self._build_if_suitable(collection_id, self._progress)
        return self.generations(*collection_ids)

    def _build_if_suitable(self, collection_id: CollectionId, progress: Progress) -> None:
        profiles.refuse_unusable_recipes(self._database, collection_id, only_new=True)
        self._build_first(collection_id, progress)

    def _build_first(
        self, collection_id: CollectionId, progress: Progress, prepared: Sequence[Context] = ()
    ) -> None:
        """Build the first generations of a collection; `prepared` has the same meaning as in `ensure_built`."""
        prepared_by_id = {context.generation.generation_id: context for context in prepared}
        with self._database.builder(collection_id):
            # Another process may have built the generations while this one waited for the lock.
            existing = self.generations(collection_id)
            for generation in existing or [self._default_profile(collection_id)]:
                context = prepared_by_id.get(generation.generation_id)
                if not generation.is_first_build:
                    continue
                if existing and context is None:
                    with self._database.transaction() as connection:
                        generation = build_plan.place(connection, generation)
                self._build(generation, context, progress)

    def build(self, generation: Generation) -> None:
        """Build a generation from the stage at which it stopped."""
        self._build(generation, None, self._progress)

    def _build(self, generation: Generation, context: Context | None, progress: Progress) -> None:
        """Build a generation in a prepared context, or in a new one."""
        if context is None:
            context = self._contexts.make(generation, plain_characters=self._plain_characters)
        build.build(self._database.engine, context, progress)
        self._plain_characters = min(self._plain_characters, max(0, context.encoder.plain_left))

    @contextmanager
    def prepare_first_builds(
        self,
        collection_id: CollectionId,
        existing: Sequence[Generation],
        expected_bytes: int | None,
        *,
        is_few: bool,
    ) -> Iterator[list[Context]]:
        """Keep workers from building first indexes until the block has written its documents.

        Yields contexts of the generations for which documents can be signed while they are written; pass them to
        `ensure_built` afterwards. If documents are signed early, a collection without a profile gets one with the
        default recipe.

        `existing`: the collection's generations. `expected_bytes`: the approximate size of the texts, None if unknown.
        `is_few`: leave signing to the build, which then is a single transaction with fewer statements.
        """
        if existing and not any(generation.is_first_build for generation in existing):
            yield []
            return

        with self._database.builder(collection_id, wait=False) as is_builder:
            contexts: list[Context] = []
            if is_builder and not is_few and self._database.may_index:
                contexts = self._begin_signing(collection_id, expected_bytes)
            try:
                yield contexts
            finally:
                for context in contexts:
                    context.build.finish_spool()

    def _begin_signing(self, collection_id: CollectionId, expected_bytes: int | None) -> list[Context]:
        """Return contexts of the generations that can be signed early; the caller has taken the build lock."""
        plain = plain_characters(expected_bytes)
        is_large = expected_bytes is None or expected_bytes > _MAX_SHARED_TABLES_BYTES
        contexts: list[Context] = []
        for generation in self.generations(collection_id) or [self._default_profile(collection_id)]:
            if not generation.is_first_build:
                continue

            with self._database.transaction() as connection:
                placed = build_plan.place(connection, generation, is_large=is_large)
            context = self._contexts.make_if_reproducible(placed, plain_characters=plain)
            if context is None or not _signs_from_texts(context):
                continue

            with self._database.transaction() as connection:
                context.tables(connection).create()
                was_empty = not query_rows.has_documents(connection, collection_id)
            context.build.begin_signing(context.encoder, was_empty=was_empty)
            contexts.append(context)
        return contexts

    def delay_first_build(self, collection_id: CollectionId) -> AbstractContextManager[object]:
        """Keep workers from building a first index until the block has written its documents."""
        if not any(generation.is_first_build for generation in self.generations(collection_id)):
            return nullcontext()
        return self._database.builder(collection_id, wait=False)

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

    def generations(self, *collection_ids: CollectionId) -> list[Generation]:
        """Return the generations of these collections."""
        with self._database.transaction() as connection:
            return generation_rows.list_of_collections(connection, collection_ids)


def _signs_from_texts(context: Context) -> bool:
    """Whether each document of a new generation can be signed before its build, from its text alone."""
    return (
        not context.encoder.profile.recipe.match.ignore_common
        and not context.encoder.freezes
        and context.generation.stage == "sign"
        and context.retained_seconds is None
        and not context.encoder.takes_vectors
        and context.encoder.field_rules is None
    )
