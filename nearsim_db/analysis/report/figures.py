"""What a report holds: plain values, as the page shows them and as `--json` prints them."""

from dataclasses import dataclass
from typing import Any, Literal

from nearsim_db.analysis.report.diffs import Diff
from nearsim_db.analysis.report.rejects import RejectSummary
from nearsim_db.store.reports import Bucket, ClusterFacts, Copies, Corpus, Featureless, Member, SourceCount

Why = Literal["least similar", "other numbers", "sample"]


@dataclass(frozen=True, slots=True)
class Step:
    """Stored pairs from one similarity up to the next step: with the same numbers, and with others."""

    similarity: float
    same_numbers: int
    other_numbers: int


@dataclass(frozen=True, slots=True)
class Similarities:
    """The stored pairs by similarity in the metric's own scale, and the profile's curve over the same scale.

    `curve` holds (similarity, probability of becoming a candidate); pairs below `threshold` are not known.
    """

    metric: str
    threshold: float
    step: float
    steps: tuple[Step, ...]
    curve: tuple[tuple[float, float], ...]

    @property
    def pairs(self) -> int:
        """All pairs that are drawn."""
        return sum(one.same_numbers + one.other_numbers for one in self.steps)

    @property
    def renumbered(self) -> int:
        """Those whose texts have different numbers."""
        return sum(one.other_numbers for one in self.steps)


@dataclass(frozen=True, slots=True)
class ListedCluster:
    """A cluster, its suspicion from 0 to 100, and its first members."""

    facts: ClusterFacts
    suspicion: float
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Clusters:
    """All clusters by size, as (members, clusters), and those that are the largest and the most suspicious."""

    clusters: int
    documents: int
    sizes: tuple[tuple[int, int], ...]
    largest: tuple[ListedCluster, ...]
    suspicious: tuple[ListedCluster, ...]
    all_suspicious: int


@dataclass(frozen=True, slots=True)
class Side:
    """One of two documents that are compared; `stale` says that its text is not the one that was indexed."""

    external_id: str
    title: str | None
    source: str | None
    date: str | None
    has_text: bool
    is_cut: bool
    stale: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A pair side by side, and why it was chosen. Counts are None where the metric has none."""

    why: Why
    left: Side
    right: Side
    similarity: float
    estimate: float
    shared_bands: int
    intersection: int | None
    union: int | None
    numbers_differ: bool
    diff: Diff


@dataclass(frozen=True, slots=True)
class LikeBuckets:
    """Some of the largest buckets, all of one size and with the same first members, of which `bucket` is one."""

    bucket: Bucket
    buckets: int


@dataclass(frozen=True, slots=True)
class LargeBuckets:
    """The largest buckets, and of all with two or more members how many there are, and what the limit leaves out.

    `listed` buckets are in the rows of `largest`.
    """

    largest: tuple[LikeBuckets, ...]
    listed: int
    shared: int
    over_limit: int
    left_out: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """Work on a document that was given up."""

    external_id: str
    stage: str
    attempts: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Index:
    """What a live index says."""

    similarities: Similarities
    clusters: Clusters
    comparisons: tuple[Comparison, ...]
    sources: tuple[SourceCount, ...]
    all_sources: int
    copies: tuple[Copies, ...]
    all_copies: int
    buckets: LargeBuckets
    featureless: tuple[Featureless, ...]
    set_aside: tuple[SetAside, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report; `stats` are those of `nearsim stats`.

    `index` is None, and `missing` says why, where none answers.
    """

    title: str
    collection: str
    profile: str | None
    made_at: str
    version: str
    top: int
    corpus: Corpus
    stats: dict[str, Any] | None
    recipe: str | None
    index: Index | None
    missing: str | None
    rejects: RejectSummary | None
