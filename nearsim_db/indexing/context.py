"""What every step is given: one generation with what it takes to work on it."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from uuid import UUID

from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.screening import FeatureCache
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver.statements import Leaves


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
