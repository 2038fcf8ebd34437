"""Contexts: a generation with everything the steps need to work on it, and the factory that makes them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING
from uuid import UUID

from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.records import CollectionId, Document
from nearsim_db.similarity.common_shingles import Frequencies
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import restore
from nearsim_db.similarity.recipe_warnings import TextSample
from nearsim_db.similarity.screening import FeatureCache
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.generations.tables import GenerationTables
from nearsim_db.store.settings import BUILD_MEGABYTES, Settings

if TYPE_CHECKING:
    from nearsim_db.indexing.feature_spool import FeatureSpool

_TEXTS_SAMPLED = 100  # of a batch, for recipe warnings


@dataclass(slots=True)
class BuildInput:
    """What a build starts from, beside the documents; threads may share it.

    `texts` is a sample of those signed, `spool` has the features of some of them. `signed_early` counts documents
    signed before the build, and `is_signed` says that all others were captured.
    """

    texts: TextSample = field(default_factory=TextSample)
    spool: "FeatureSpool | None" = None
    signed_early: int = 0
    is_signed: bool = False
    _was_empty: bool = False
    _sampling: Lock = field(default_factory=Lock)

    @property
    def is_spooling(self) -> bool:
        """Whether the features of documents that are signed are kept in the spool."""
        return self.spool is not None and self.spool.takes_features

    def open_spool(self, encoder: Encoder) -> None:
        """Keep the features of documents that are signed from now on, unless there was a spool before."""
        from nearsim_db.indexing.feature_spool import FeatureSpool

        if self.spool is None:
            self.spool = FeatureSpool.create(encoder)

    def begin_signing(self, encoder: Encoder, *, was_empty: bool) -> None:
        """Begin to sign documents while this process adds them; `was_empty` if the collection has none before."""
        self._was_empty = was_empty
        self.open_spool(encoder)

    def count_signed_early(self, documents: int) -> None:
        """Count documents that were signed before the build."""
        self.signed_early += documents

    def end_signing(self, added: int) -> None:
        """Record how many documents this process added.

        If the collection was empty before and all of them are signed, the build need not look for others: what other
        sessions wrote meanwhile was captured.
        """
        self.is_signed = self._was_empty and self.signed_early == added

    def finish_spool(self) -> None:
        """Complete the spool, if there is one."""
        if self.spool is not None:
            self.spool.finish()

    def sample_texts(self, batch: Sequence[StoredDocument | Document]) -> None:
        """Add some of a batch's texts to the sample for recipe warnings."""
        step = max(1, len(batch) // _TEXTS_SAMPLED)
        with self._sampling:
            self.texts.add(document.body or document.title or "" for document in batch[::step])

    def close_spool(self) -> None:
        """Free the disk space of the spool."""
        if self.spool is not None:
            self.spool.close()
            self.spool = None


@dataclass(slots=True)
class Findings:
    """What the steps of a transaction counted and found.

    `stale` are documents that could not be verified because their text differs from what was signed,
    `duplicate_digests` are digests with more than one head.
    """

    counts: Counter[str] = field(default_factory=Counter)
    stale: set[int] = field(default_factory=set)
    duplicate_digests: set[UUID] = field(default_factory=set)

    def clear(self) -> None:
        """Start over for the next transaction."""
        for one in (self.counts, self.stale, self.duplicate_digests):
            one.clear()


@dataclass(slots=True)
class Context:
    """A generation with its encoder, threads and cache.

    `totals` counts pairs stored, and documents failed and set aside, since the context was created.
    """

    generation: Generation
    encoder: Encoder
    pool: Executor
    threads: int
    warn: Callable[[str], None]
    build_megabytes: int = BUILD_MEGABYTES
    cache: FeatureCache = field(default_factory=FeatureCache)
    build: BuildInput = field(default_factory=BuildInput)
    found: Findings = field(default_factory=Findings)
    totals: Counter[str] = field(default_factory=Counter)

    def adopt(self, generation: Generation) -> None:
        """Take the generation as it was read again: the build may have found which shingles to leave out."""
        self.generation = generation
        _freeze(self.encoder, generation)

    def warn_of_profile(self, message: str) -> None:
        """Warn of something in the generation's profile, with its collection: a build may be one of many."""
        self.warn(f"profile {self.generation.profile} of collection {self.generation.collection}: {message}")

    @property
    def leaves(self) -> Leaves:
        """The names of the generation's tables."""
        return self.generation.leaves

    def tables(self, connection: Connection) -> GenerationTables:
        """Return the generation's tables, as the transaction of a connection reads and writes them."""
        return GenerationTables(connection, self.generation.leaves)

    @property
    def collection_id(self) -> CollectionId:
        """The collection that the generation indexes."""
        return self.generation.collection_id

    @property
    def bucket_limit(self) -> int:
        """Largest number of anchors of a bucket, 0 for no limit."""
        return self.encoder.profile.recipe.match.bucket_limit

    @property
    def retained_seconds(self) -> int | None:
        """Age in seconds up to which documents are indexed, None for no limit."""
        return self.encoder.profile.recipe.retain.seconds


def make_encoder(generation: Generation, backend: str | None, plain_characters: int = 0) -> Encoder:
    """Return the encoder of a generation.

    Raises FingerprintError or RecipeError if this version would make different sketches.
    """
    profile = restore(generation.recipe, generation.fingerprint, generation.bands, generation.rows)
    encoder = Encoder(profile, backend, plain_characters)
    _freeze(encoder, generation)
    return encoder


def _freeze(encoder: Encoder, generation: Generation) -> None:
    """Set what a generation's build found in its documents: shingles to leave out, and document frequencies."""
    encoder.ignore(generation.common)
    encoder.freeze(Frequencies.from_bytes(generation.frequencies))


@dataclass(frozen=True, slots=True)
class ContextFactory:
    """Makes contexts of generations that share a thread pool; their warnings go to `warn`."""

    settings: Settings
    pool: Executor
    warn: Callable[[str], None]

    @classmethod
    @contextmanager
    def open(cls, settings: Settings, warn: Callable[[str], None]) -> "Iterator[ContextFactory]":
        """Make a factory with a thread pool that is shut down at the end of the block."""
        pool, left = ThreadPoolExecutor(settings.threads, thread_name_prefix="nearsim"), True
        try:
            yield cls(settings, pool, warn)
        except GeneratorExit:
            # Garbage collection may come while a thread starts; to wait for threads then would be a deadlock.
            left = False
            raise
        finally:
            if left:
                pool.shutdown()

    def make(self, generation: Generation, *, plain_characters: int = 0) -> Context:
        """Make the context of a generation; numba is started once so many characters were encoded without it.

        Raises FingerprintError and RecipeError as `make_encoder` does.
        """
        settings = self.settings
        without = plain_characters if settings.backend is None else 0
        encoder = make_encoder(generation, settings.backend, without)
        return Context(generation, encoder, self.pool, settings.threads, self.warn, settings.build_megabytes)

    def make_if_reproducible(self, generation: Generation, *, plain_characters: int = 0) -> Context | None:
        """Make the context of a generation, None if this version would make different sketches."""
        try:
            return self.make(generation, plain_characters=plain_characters)
        except (FingerprintError, RecipeError):
            return None
