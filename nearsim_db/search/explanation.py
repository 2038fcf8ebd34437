"""The explanation of two documents: whether they are a pair, and why or why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from nearsim_db.store.query_rows import SharedBucket

ReasonKind = Literal[
    "vetoed",
    "pinned",
    "twins",
    "pair",
    "not_indexed",
    "no_features",
    "below_threshold",
    "too_few_shared_bands",
    "bucket_limit",
    "unexplained",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why two documents are a pair, or are not, as a word for programs and as a sentence."""

    kind: ReasonKind
    text: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """A changed recipe, computed on the texts of the two documents.

    `settings` are `key=value`, as for `--set`; `bands`, `rows` and `shared_bands` are those under the changed recipe,
    and `probability` is that of becoming candidates at this similarity. `sufficient`: the two would be candidates.
    """

    settings: tuple[str, ...]
    bands: int
    rows: int
    shared_bands: int
    probability: float
    sufficient: bool


@dataclass(frozen=True, slots=True)
class ExplainedDocument:
    """One of two documents: `text` is what the profile compares, `only_here` the numbers that the other lacks.

    `only_here` is None while a text is newer than the index.
    """

    id: str
    title: str | None
    text: str
    only_here: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The evidence for two documents as a pair in a live generation.

    `similarity`, `intersection`, `union` and `distance` are computed from the present texts, also of two documents
    that are no pair; None if a document has no features, its text cannot be read, or this version would make
    different sketches. `stored_similarity` is that of the stored pair, an estimate unless `verified`. `probability`
    is that of two documents of this similarity becoming candidates. `estimate`, `shared_bands` and `buckets` are
    from the stored sketches. `bands` of `rows` values are those of the index, of which `required` must be shared.
    `remedy` is a recipe under which they would be a pair.
    """

    left: ExplainedDocument
    right: ExplainedDocument
    collection: str
    profile: str
    generation: int
    metric: str
    is_pair: bool
    are_twins: bool
    same_cluster: bool
    similarity: float | None
    intersection: int | None
    union: int | None
    distance: float | None
    stored_similarity: float | None
    estimate: float | None
    threshold: float
    shared_bands: int | None
    required: str
    bands: int
    rows: int
    bucket_limit: int
    buckets: tuple[SharedBucket, ...]
    probability: float | None
    numbers_differ: bool | None
    verified_at: datetime | None
    verdict: str | None
    verdict_by: str | None
    verdict_why: str | None
    reasons: tuple[Reason, ...]
    remedy: Remedy | None
    verified: bool | None

    @property
    def signature_similarity(self) -> float | None:
        """The share of equal values among the distinct ones of two MinHash signatures, m / (2 k - m) for m of k equal.

        None for other metrics than Jaccard. The estimate is m / k.
        """
        if self.estimate is None or self.metric != "jaccard":
            return None
        return round(self.estimate / (2 - self.estimate), 6)
