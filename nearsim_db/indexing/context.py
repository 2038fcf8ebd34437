"""The context of a generation: its encoder, its threads and its cache, and what the steps count and find.

A `ContextFactory` makes contexts that share one thread pool. It makes none for a generation whose sketches this version
cannot reproduce.
"""

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

_MAX_TEXTS_SAMPLED_PER_BATCH = 100


@dataclass(slots=True)
class BuildInput:
    """What is known about the documents before their build begins; threads may share it."""

    texts: TextSample = field(default_factory=TextSample)  # texts of signed documents, for recipe warnings
    spool: "FeatureSpool | None" = None  # the features of documents signed in this process
    signed_early: int = 0  # documents signed before the build
    is_signed: bool = False  # whether every document is signed, or captured as a change
    _was_empty: bool = False
    _sampling: Lock = field(default_factory=Lock)

    @property
    def is_spooling(self) -> bool:
        """Whether the spool keeps the features of documents when they are signed."""
        return self.spool is not None and self.spool.takes_features

    def open_spool(self, encoder: Encoder) -> None:
        """Open a spool for the features of documents that are signed from now on, unless one is open."""
        from nearsim_db.indexing.feature_spool import FeatureSpool

        if self.spool is None:
            self.spool = FeatureSpool.create(encoder)

    def begin_signing(self, encoder: Encoder, *, was_empty: bool) -> None:
        """Begin to sign documents while this process adds them; `was_empty` if the collection had none before."""
        self._was_empty = was_empty
        self.open_spool(encoder)

    def count_signed_early(self, documents: int) -> None:
        """Count documents that were signed before the build."""
        self.signed_early += documents

    def end_signing(self, added: int) -> None:
        """Record how many documents this process added.

        If the collection was empty before and all added documents are signed, the build need not look for unsigned
        documents: whatever other sessions wrote in the meantime was captured as changes.
        """
        self.is_signed = self._was_empty and self.signed_early == added

    def finish_spool(self) -> None:
        """Complete the spool, if there is one."""
        if self.spool is not None:
            self.spool.finish()

    def sample_texts(self, batch: Sequence[StoredDocument | Document]) -> None:
        """Add some of a batch's texts to the sample for recipe warnings."""
        step = max(1, len(batch) // _MAX_TEXTS_SAMPLED_PER_BATCH)
        with self._sampling:
            self.texts.add(document.body or document.title or "" for document in batch[::step])

    def close_spool(self) -> None:
        """Free the disk space of the spool."""
        if self.spool is not None:
            self.spool.close()
            self.spool = None


@dataclass(slots=True)
class Findings:
    """What the steps counted and found in the current transaction."""

    counts: Counter[str] = field(
        default_factory=Counter
    )  # numbers of "linked", "candidates" and "screened" pairs
    stale: set[int] = field(default_factory=set)  # doc_ids whose text differs from what was signed
    duplicate_digests: set[UUID] = field(default_factory=set)  # digests with more than one head

    def clear(self) -> None:
        """Start over for the next transaction."""
        self.counts.clear()
        self.stale.clear()
        self.duplicate_digests.clear()


@dataclass(slots=True)
class Context:
    """A generation with its encoder, threads and cache."""

    generation: Generation
    encoder: Encoder
    pool: Executor  # shared with other contexts
    threads: int  # number of threads in the pool
    warn: Callable[[str], None]
    build_megabytes: int = BUILD_MEGABYTES  # memory that a build may use for band keys
    cache: FeatureCache = field(default_factory=FeatureCache)  # features of recently used documents
    build: BuildInput = field(default_factory=BuildInput)
    findings: Findings = field(default_factory=Findings)  # findings of the current transaction
    totals: Counter[str] = field(
        default_factory=Counter
    )  # "pairs", "failed" and "set aside" since the creation

    def adopt(self, generation: Generation) -> None:
        """Use a newly read state of the generation: its build may have chosen shingles to leave out since."""
        self.generation = generation
        _freeze(self.encoder, generation)

    def warn_of_profile(self, message: str) -> None:
        """Send a warning that names the profile and the collection, because a worker may build many."""
        self.warn(f"profile {self.generation.profile} of collection {self.generation.collection}: {message}")

    @property
    def leaves(self) -> Leaves:
        """The names of the generation's tables."""
        return self.generation.leaves

    def tables(self, connection: Connection) -> GenerationTables:
        """Return the generation's tables, read and written in the transaction of this connection."""
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
    """Give the encoder what the build counted in the documents: shingles to leave out, and document frequencies."""
    encoder.ignore(generation.common)
    encoder.freeze(Frequencies.from_bytes(generation.frequencies))


@dataclass(frozen=True, slots=True)
class ContextFactory:
    """Makes contexts that share a thread pool and send their warnings to `warn`."""

    settings: Settings
    pool: Executor
    warn: Callable[[str], None]

    @classmethod
    @contextmanager
    def open(cls, settings: Settings, warn: Callable[[str], None]) -> "Iterator[ContextFactory]":
        """Make a factory with a thread pool that is shut down at the end of the block."""
        pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="nearsim")
        may_wait = True
        try:
            yield cls(settings, pool, warn)
        except GeneratorExit:
            # Garbage collection may run while a thread starts; waiting for threads then would deadlock.
            may_wait = False
            raise
        finally:
            if may_wait:
                pool.shutdown()

    def make(self, generation: Generation, *, plain_characters: int = 0) -> Context:
        """Make the context of a generation.

        `plain_characters` is the number of characters that NumPy encodes before numba is started; it has no effect if
        the settings name a backend. Raises FingerprintError and RecipeError as `make_encoder` does.
        """
        settings = self.settings
        if settings.backend is not None:
            plain_characters = 0
        encoder = make_encoder(generation, settings.backend, plain_characters)
        return Context(generation, encoder, self.pool, settings.threads, self.warn, settings.build_megabytes)

    def make_if_reproducible(self, generation: Generation, *, plain_characters: int = 0) -> Context | None:
        """Make the context of a generation; return None if this version would make different sketches."""
        try:
            return self.make(generation, plain_characters=plain_characters)
        except (FingerprintError, RecipeError):
            return None
