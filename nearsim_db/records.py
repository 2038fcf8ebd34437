"""The plain values that cross the boundaries: documents in, pairs and clusters out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, NewType, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STANDARD_OUTPUT = Path("-")

DocId = NewType("DocId", int)
CollectionId = NewType("CollectionId", int)
ProfileId = NewType("ProfileId", int)
GenerationId = NewType("GenerationId", int)

Id = TypeVar("Id", int, str)

OnDuplicate = Literal["flag", "skip", "raise"]  # what to do with a document that has near-duplicates


@dataclass(frozen=True, slots=True)
class Document:
    """A document as its owner gives it; `external_id` is the owner's name for it, at most 1,024 bytes.

    `vector` are numbers that the owner computed, stored as 32-bit floats, for profiles that compare vectors; a document
    that is stored already keeps the one it has if it is given without.
    """

    external_id: str
    title: str | None = None
    body: str | None = None
    source: str | None = None
    url: str | None = None
    published_at: datetime | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    vector: "Sequence[float] | NDArray[np.floating[Any]] | None" = None


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document and where it was read: `file`, and `line` counted from 1 (0 for a whole file).

    `replaced` counts the characters that PostgreSQL cannot hold (NUL, lone surrogates) or that were not UTF-8,
    each replaced by U+FFFD.
    """

    document: Document
    file: str
    line: int
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that was set aside: where it stands and why."""

    file: str
    line: int
    reason: str
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents whose similarity was verified; `left` and `right` are external ids.

    `similarity` is at most 1: for Jaccard intersection / union, for a distance 1 / (1 + distance). `intersection` and
    `union` count distinct features, None where the metric counts none; `distance` is None where it measures none.
    `estimate` is the sketch's guess of the similarity; `shared_bands` counts bands whose keys are equal.
    """

    left: str
    right: str
    similarity: float
    intersection: int | None
    union: int | None
    estimate: float
    shared_bands: int
    distance: float | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Documents tied together by pairs; `survivor` is the one to keep, `members` includes it."""

    cluster: int
    survivor: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A document found similar to a query, with the figures that a `Pair` has."""

    external_id: str
    title: str | None
    similarity: float
    intersection: int | None
    union: int | None
    estimate: float
    shared_bands: int
    distance: float | None = None


class Matches(list[Match]):
    """Matches, the most similar first, with the metric of their similarity: jaccard, weighted_jaccard, cosine ..."""

    def __init__(self, matches: Iterable[Match], metric: str) -> None:
        super().__init__(matches)
        self.metric = metric


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A document that was found to have near-duplicates when it was to be added, the most similar first."""

    external_id: str
    matches: tuple[Match, ...]


class Judgement(NamedTuple, Generic[Id]):
    """What becomes of a document of a result set: it is kept, or a duplicate of one that is kept before it.

    Documents are named as they were given, by doc_id or external id. What is not `indexed` has no sketch to compare.
    """

    id: Id
    duplicate_of: Id | None
    indexed: bool

    @property
    def keep(self) -> bool:
        """Whether it is no duplicate."""
        return self.duplicate_of is None


@dataclass(slots=True)
class IngestSummary:
    """What became of the records read: read = inserted + updated + unchanged + skipped + rejected.

    `skipped` were left out because of near-duplicates; `duplicates` are all that had some, where they were looked up.
    `replaced_characters` counts characters that PostgreSQL cannot hold, or that were not UTF-8, each now U+FFFD.
    """

    read: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0
    rejected: int = 0
    replaced_characters: int = 0
    first_rejects: list[Reject] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person decided about two documents: `left` and `right` are external ids, or #numbers of what is gone.

    `verdict` is "pinned" (always in one cluster) or "vetoed" (never). What `undone_` says is None while it stands.
    """

    left: str
    right: str
    verdict: Literal["pinned", "vetoed"]
    by: str
    why: str
    at: datetime
    undone_by: str | None
    undone_why: str | None
    undone_at: datetime | None


# (what is being done, how much is done, how much there is or None when that is not known)
Progress = Callable[[str, int, int | None], None]


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""
