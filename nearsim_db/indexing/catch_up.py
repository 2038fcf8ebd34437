"""Catch up: build the indexes of a collection, and apply to them what was written to it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from nearsim_db.errors import DEFAULT, FingerprintError, RecipeError
from nearsim_db.indexing import build, build_plan, profiles, retention, work_queue
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.indexing.feature_spool import FeatureSpool, SpoolPlace
from nearsim_db.indexing.helper_process import HelpBuild, HelperKilledError, HelperProcess
from nearsim_db.indexing.signing import EarlySigning, is_suitable
from nearsim_db.records import CollectionId, GenerationId, Progress
from nearsim_db.similarity.backend import FEW_CHARACTERS, plain_characters
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store import query_rows
from nearsim_db.store.access import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.generations import generation_rows, generation_states
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.work import queue

_SHARED_BYTES = 8_000_000  # of texts whose index shares its tables with others
_MANY_BYTES = 15_000_000  # of texts, which take longer to sign than a process to start


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
            retention.sweep(engine, context)
            with self._database.transaction() as connection:
                has_work = queue.has_work(connection, context.leaves)
            if has_work:
                # Opened only now: a lease without a heartbeat during a long build or sweep would expire.
                with self._database.lease() as lease_id:
                    work_queue.drain(engine, context, lease_id, self._progress)
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
        engine = self._database.engine
        with self._context(generation) as context:
            if not build.build_few(engine, context):
                with helpers(self._database, context, self._contexts.warn) as running:
                    build.build_by_stages(engine, context, self._progress, running.check)

    @contextmanager
    def _context(self, generation: Generation) -> Iterator[Context]:
        """Return the context that has the generation's spool, or a new one; it is closed after the block."""
        context = self._spooled.pop(generation.generation_id, None)
        context = context or self._contexts.make(generation, plain_characters=FEW_CHARACTERS)
        try:
            yield context
        finally:
            context.build.close()

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
            starting = partial(self._start_helpers, expected_bytes or 0)
            with EarlySigning(engine, contexts, was_empty=was_empty, start_helpers=starting) as signing:
                yield signing

    def _start_helpers(self, expected_bytes: int, context: Context) -> list[HelperProcess]:
        return start_helpers(self._database, context) if expected_bytes >= _MANY_BYTES else []

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


_LEAST_DOCUMENTS = 20_000  # of a build that takes longer than a process to start


class Helpers:
    """Processes that take slices of a build; they end with this process, however it ends."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.processes: list[HelperProcess] = []

    def add(self, process: HelperProcess, spool: SpoolPlace | None = None) -> None:
        """Have a process help, which writes features to a place of a spool, and reads those of all."""
        self.processes.append(process)
        process.send(HelpBuild(spool))

    def check(self) -> None:
        """Raise NearsimError if a process failed; a killed one is only reported, as its slice is done by another."""
        for process in self.processes[:]:
            try:
                if not process.is_done():
                    continue
            except HelperKilledError as error:
                self._warn(f"a process that helped with the build {error}")
            self.processes.remove(process)

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.close()
        self.processes = []


@contextmanager
def helpers(database: Database, context: Context, warn: Callable[[str], None]) -> Iterator[Helpers]:
    """Have processes help during the block: those that signed the documents, or new ones for a large collection."""
    started = Helpers(warn)
    try:
        build = context.build
        processes = build.helpers
        if not processes and _is_large(database, context.generation):
            if build.spool is None and context.generation.stage == "sign":
                build.spool = FeatureSpool.create(context.encoder)
            processes = start_helpers(database, context)
        for number, process in enumerate(processes, 1):
            started.add(process, None if build.spool is None else build.spool.place_for(number))
        yield started
    finally:
        started.close()


def start_helpers(database: Database, context: Context) -> list[HelperProcess]:
    """Start processes for a generation, one less than `database.jobs`; they inherit the file of the spool."""
    threads = max(1, database.settings.threads // database.jobs)
    descriptor = None if context.build.spool is None else context.build.spool.descriptor
    return [
        HelperProcess(database.engine.url, context.generation.generation_id, threads, descriptor)
        for _ in range(database.jobs - 1)
    ]


def _is_large(database: Database, generation: Generation) -> bool:
    with database.transaction() as connection:
        most = _LEAST_DOCUMENTS + 1
        return collection_rows.count_documents(connection, generation.collection_id, most) == most
