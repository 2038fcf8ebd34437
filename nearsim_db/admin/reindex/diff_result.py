"""The result of comparing two generations, as `--json` prints it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nearsim_db.admin.reindex.limits import CheckedLimit
from nearsim_db.store.diffs import ChangedCluster, ClusterCounts, DocumentTotals, PairCounts, PairInGeneration


@dataclass(frozen=True, slots=True)
class Compared:
    """One of the two generations."""

    generation: int
    state: str
    fingerprint: str
    bands: int
    rows: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of both generations."""

    live: DocumentTotals
    new: DocumentTotals


@dataclass(frozen=True, slots=True)
class Waiting:
    """Work queued for each generation, work set aside, and changes that are not dispatched yet."""

    live: int
    new: int
    live_set_aside: int
    new_set_aside: int
    changes: int

    @property
    def anything(self) -> bool:
        """Whether this can account for some of the differences."""
        return any((self.live, self.new, self.live_set_aside, self.new_set_aside, self.changes))


@dataclass(frozen=True, slots=True)
class SampledDocument:
    """A document of a pair; `id` is the external id, or #doc_id if it was deleted.

    `text` is what either recipe compares, its beginning if it `is_cut`, None if it cannot be read. If it is `stale`, it
    has changed since it was compared.
    """

    id: str
    doc_id: int
    title: str | None
    text: str | None
    is_cut: bool
    stale: bool


@dataclass(frozen=True, slots=True)
class SampledPair:
    """A sample pair standing for `pairs` pairs of the same two heads, with the evidence of each generation and why they
    differ."""

    left: SampledDocument
    right: SampledDocument
    pairs: int
    live: PairInGeneration
    new: PairInGeneration
    why: str


@dataclass(frozen=True, slots=True)
class Samples:
    """A random sample of the differences, the same each time for the same generations."""

    lost: tuple[SampledPair, ...]
    gained: tuple[SampledPair, ...]
    rescored: tuple[SampledPair, ...]
    merged: tuple[ChangedCluster, ...]
    split: tuple[ChangedCluster, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between a generation and the live one; `recipe` has the keys that differ, as (live, new)."""

    collection: str
    profile: str
    live: Compared
    new: Compared
    recipe: dict[str, tuple[Any, Any]]
    documents: Documents
    pairs: PairCounts
    clusters: ClusterCounts
    samples: Samples
    limits: tuple[CheckedLimit, ...]
    exceeded: bool
    waiting: Waiting
    seconds: float
