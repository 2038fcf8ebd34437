"""What every step is given: one generation with what it takes to work on it."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from nearsim_db.errors import NearsimError
from nearsim_db.records import CollectionId, GenerationId, Notable, Tell
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import restore
from nearsim_db.similarity.screening import FeatureCache
from nearsim_db.store import catalog
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.settings import Settings


@dataclass(slots=True)
class Context:
    """One generation at work. `figures` counts what the steps did; `warn` takes what its user should know;
    `stale` are documents that could not be verified because their text is another than that signed, `doubles` digests
    that were found to have more than one head; `tally` counts pairs stored and documents failed and set aside since the
    context was made."""

    generation: Generation
    encoder: Encoder
    pool: Executor
    threads: int
    warn: Callable[[str], None]
    cache: FeatureCache = field(default_factory=FeatureCache)
    figures: dict[str, int] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)
    doubles: set[UUID] = field(default_factory=set)
    tally: Counter[str] = field(default_factory=Counter)

    @property
    def leaves(self) -> Leaves:
        """The generation's own tables."""
        return self.generation.leaves

    @property
    def bucket_limit(self) -> int:
        """How many anchors a bucket has, 0 for no limit."""
        return self.encoder.profile.recipe.match.bucket_limit

    def count(self, name: str, amount: int) -> None:
        """Add to a figure."""
        self.figures[name] = self.figures.get(name, 0) + amount

    def forget_findings(self) -> None:
        """Begin a transaction's work with nothing counted and nothing found yet."""
        self.figures.clear()
        self.stale.clear()
        self.doubles.clear()


class Contexts:
    """Contexts by generation. One whose recipe this code cannot reproduce is `refused`, which is told once."""

    def __init__(self, settings: Settings, pool: Executor, tell: Tell) -> None:
        self.refused: dict[GenerationId, NearsimError] = {}
        self._settings = settings
        self._pool = pool
        self._tell = tell
        self._kept: dict[GenerationId, Context] = {}
        self._purges: dict[CollectionId, datetime] = {}
        self._collections: dict[CollectionId, str] = {}

    def facts(self, generation: Generation) -> dict[str, object]:
        """What tells a generation that was found here from others, for programs."""
        return {
            "collection": self._collections[generation.collection_id],
            "profile": generation.profile,
            "generation": generation.generation_id,
        }

    def shown(self, generation: Generation) -> str:
        """The same for people."""
        collection = self._collections[generation.collection_id]
        return (
            f"profile {generation.profile} of collection {collection} (generation {generation.generation_id})"
        )

    @contextmanager
    def telling(self, tell: Tell) -> Iterator[None]:
        """In the block warnings are told to another."""
        before, self._tell = self._tell, tell
        try:
            yield
        finally:
            self._tell = before

    def refresh(self, connection: Connection) -> None:
        """Let go of generations that are gone, and of the features of collections from which texts were purged."""
        there = {one.generation_id for one in catalog.list_generations(connection)}
        self._kept = {id: context for id, context in self._kept.items() if id in there}
        self.refused = {id: error for id, error in self.refused.items() if id in there}
        purges = catalog.read_purges(connection)
        for context in self._kept.values():
            collection_id = context.generation.collection_id
            if purges.get(collection_id) != self._purges.get(collection_id):
                context.cache = FeatureCache()
        self._purges = purges

    def find(self, connection: Connection, generation_id: GenerationId) -> Context | None:
        """The context of a generation; None where it is gone or refused."""
        if generation_id not in self._kept and generation_id not in self.refused:
            for generation in catalog.list_generations(connection):
                if generation.generation_id == generation_id:
                    named = catalog.list_collections(connection)
                    self._collections |= {one.collection_id: one.name for one in named}
                    # Its collection may have been deleted since the generations were listed.
                    if generation.collection_id in self._collections:
                        self._take_in(generation)
        return self._kept.get(generation_id)

    def _take_in(self, generation: Generation) -> None:
        settings = self._settings
        try:
            encoder = Encoder(restore(generation.recipe, generation.fingerprint), settings.backend)
        except NearsimError as error:
            self.refused[generation.generation_id] = error
            message = f"{self.shown(generation)} is left alone: {error}"
            self._tell(Notable("refused", message, "error", self.facts(generation)))
            return
        self._kept[generation.generation_id] = Context(
            generation, encoder, self._pool, settings.threads, self._warner(generation)
        )

    def _warner(self, generation: Generation) -> Callable[[str], None]:
        facts = self.facts(generation)
        place = f"{facts['collection']}/{generation.profile}"
        return lambda message: self._tell(Notable("warning", f"{place}: {message}", "warning", facts))
