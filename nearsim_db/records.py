"""Plain values that cross module boundaries: documents in, pairs and clusters out."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

STANDARD_OUTPUT = Path("-")
# The name of the collection or profile to use if none is named.
DEFAULT = "default"

DocId = NewType("DocId", int)
CollectionId = NewType("CollectionId", int)
ProfileId = NewType("ProfileId", int)
GenerationId = NewType("GenerationId", int)

Id = TypeVar("Id", int, str)
Row = TypeVar("Row")

OnDuplicate = Literal["flag", "skip", "raise"]  # how to handle a document that has near-duplicates
Keep = Literal["survivors", "duplicates", "all"]  # documents to export
CitusUse = Literal["auto", "yes", "no"]  # whether band rows are on the nodes of a Citus cluster
Direction = Literal["contains", "contained_in"]  # what a document holds, and what holds it
WorkStage = Literal["compare", "sign", "search", "anchor", "link"]


# Those of which readers make one per record are not frozen, which takes four times as long to make.
@dataclass(slots=True)
class Document:
    """A document as supplied by its owner; `external_id` is the owner's id, at most 1,024 bytes.

    `published_at` without a zone is in UTC; a `date`, NumPy's and pandas' times and ISO 8601 strings serve too, and NaT
    and NaN are no time.
    `vector` has numbers computed by the owner, stored as 32-bit floats, for profiles that compare vectors; a
    stored document keeps its vector if the new version has none.
    """

    external_id: str
    title: str | None = None
    body: str | None = None
    source: str | None = None
    url: str | None = None
    published_at: datetime | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    vector: "Sequence[float] | NDArray[np.floating[Any]] | None" = None


@dataclass(slots=True)
class ReadDocument:
    """A document and where it was read: `file`, and `line` from 1 (0 for a whole file).

    `replaced` counts the characters that PostgreSQL cannot store (NUL, lone surrogates) or that were not UTF-8,
    each replaced by U+FFFD. `unreadable_date` says why the document has no date though its record has one.
    `is_numbered`: its id is its place, since the record has none.
    """

    document: Document
    file: str
    line: int
    replaced: int = 0
    unreadable_date: str | None = None
    is_numbered: bool = False


@dataclass(slots=True)
class Reject:
    """A record that was set aside: its place and the reason."""

    file: str
    line: int
    reason: str
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """How similar two documents are.

    `similarity` is at most 1: for Jaccard intersection / union, for a distance 1 / (1 + distance).
    `intersection` and `union` count distinct features, None if the metric does not count features;
    `distance` is None if it is not a distance. `estimate` is the similarity estimated from the sketches;
    `shared_bands` counts bands with equal keys. Without `verified`, as recipes may have it (`match.verify`),
    the similarity and the distance are estimates too, and the counts those of values of the sketches.
    """

    similarity: float
    intersection: int | None
    union: int | None
    estimate: float
    shared_bands: int
    distance: float | None
    verified: bool

    def figures(self) -> dict[str, Any]:
        """Return the evidence by name, without what else a subclass has."""
        return {one.name: getattr(self, one.name) for one in fields(Evidence)}


@dataclass(frozen=True, slots=True)
class Pair(Evidence):
    """Two documents that are a pair; `left` and `right` are external ids.

    `left_in_right` and `right_in_left` are as in `Match`.
    """

    left: str
    right: str
    left_title: str | None = None
    right_title: str | None = None
    left_in_right: float | None = None
    right_in_left: float | None = None


@dataclass(frozen=True, slots=True)
class Nearest:
    """One of the documents that are most similar to one, by external ids; the most similar has the rank 1."""

    id: str
    rank: int
    nearest: str
    similarity: float
    title: str | None
    nearest_title: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Documents connected by pairs; `survivor` is the one to keep, `title` is its title, `members` includes it."""

    cluster: int
    survivor: str
    members: tuple[str, ...]
    title: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A document of a cluster, compared with the survivor.

    `similarity` is 1 for twins of the survivor, and None for the survivor itself and for a document that is connected
    only through others; an estimate if `verified` is False. `numbers_differ`: its numbers differ from the survivor's.
    """

    cluster: int
    external_id: str
    title: str | None
    is_survivor: bool
    similarity: float | None
    numbers_differ: bool | None
    source: str | None
    published_at: datetime | None
    verified: bool | None


@dataclass(frozen=True, slots=True)
class Match(Evidence):
    """A document similar to a query.

    `left_in_right` is the share of the query's features that the document has, `right_in_left` that of the document's
    features that the query has: the larger is the containment. None for other metrics, and for estimates.
    """

    external_id: str
    title: str | None
    left_in_right: float | None = None
    right_in_left: float | None = None

    def decisive(self, direction: Direction | None) -> float:
        """The share that is asked for, by default the similarity; 0 if the share is unknown."""
        if direction is None:
            return self.similarity
        return (self.right_in_left if direction == "contains" else self.left_in_right) or 0.0


class Results(Generator[Row, None, None], Generic[Row]):
    """Records of one kind, read as they are used; close it when leaving it early.

    `to_arrow` and `rows` read the remaining records.
    """

    def __init__(self, records: Generator[Row, None, None], kind: type[Row]) -> None:
        self._records, self._kind = records, kind

    def send(self, value: None, /) -> Row:
        """Return the next record."""
        return self._records.send(value)

    def throw(self, *error: Any) -> Row:
        """Raise an error where the records are read."""
        return self._records.throw(*error)

    def to_arrow(self) -> "pyarrow.Table":
        """Return the records as a table with a column for each field, also if there is none. Requires pyarrow.

        Times that Python cannot hold, such as infinity, are null.
        """
        return arrow_table(self, self._kind)

    def rows(self) -> list[dict[str, Any]]:
        """Return the records as dictionaries."""
        return [row_of(one) for one in self]


class Matches(list[Match]):
    """Matches, the most similar first.

    `metric` is that of their similarity: jaccard, containment, weighted_jaccard, cosine or euclidean. `has_more` says
    whether a limit left out others. `doc_ids` of a lookup are the documents, in the same order.
    """

    def __init__(
        self, matches: Iterable[Match], metric: str, *, has_more: bool = False, doc_ids: Sequence[int] = ()
    ) -> None:
        super().__init__(matches)
        self.metric = metric
        self.has_more = has_more
        self.doc_ids = doc_ids

    def to_arrow(self) -> "pyarrow.Table":
        """Return the matches as a table with a column for each field. Requires pyarrow."""
        return arrow_table(self, Match)

    def rows(self) -> list[dict[str, Any]]:
        """Return the matches as dictionaries."""
        return [row_of(one) for one in self]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A new document that has near-duplicates, the most similar first."""

    external_id: str
    matches: tuple[Match, ...]


class Judgement(NamedTuple, Generic[Id]):
    """The decision on a document of a result set: keep it, or drop it as a duplicate of an earlier one that is
    kept.

    Documents are identified as they were given, by doc_id or external id. A document that is not `indexed` has
    no sketch to compare.
    """

    id: Id
    duplicate_of: Id | None
    indexed: bool

    @property
    def keep(self) -> bool:
        """Whether it is not a duplicate."""
        return self.duplicate_of is None


@dataclass(slots=True)
class IngestSummary:
    """Counts of the records read: read = inserted + updated + unchanged + skipped + rejected.

    `skipped` were left out because of near-duplicates; `duplicates` are all that had some, if they were looked
    up. `replaced` counts records that a later one of another file replaced, by its id; such a later record counts as
    updated. `unreadable_dates` counts records that are kept without their date. `replaced_characters` counts characters
    that PostgreSQL cannot store, or that were not UTF-8, each replaced by U+FFFD.
    """

    read: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0
    rejected: int = 0
    replaced: int = 0
    unreadable_dates: int = 0
    replaced_characters: int = 0
    first_rejects: list[Reject] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A person's decision on two documents: `left` and `right` are external ids, or #numbers of deleted documents.

    `left` is the document that was stored first. `verdict` is "pinned" (always in one cluster) or "vetoed" (never).
    The `undone_` fields are None unless it was undone.
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
    collection: str
    left_title: str | None
    right_title: str | None


@dataclass(frozen=True, slots=True)
class SurvivorChoice:
    """A person's choice of a document, by its external id, to keep of its cluster; `undone_` as in `Verdict`."""

    id: str
    title: str | None
    collection: str
    by: str
    why: str
    at: datetime
    undone_by: str | None
    undone_why: str | None
    undone_at: datetime | None


def row_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name."""
    return {one.name: getattr(record, one.name) for one in fields(record)}


def arrow_table(records: Iterable[Any], kind: type) -> "pyarrow.Table":
    """Return records of one kind as a table, with times in UTC, null for those that `datetime` cannot hold.

    Raises ImportError without pyarrow.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "a table requires the package pyarrow; pip install 'nearsim-db[parquet]'"
        ) from error

    types = {
        str: pyarrow.string(),
        float: pyarrow.float64(),
        int: pyarrow.int64(),
        bool: pyarrow.bool_(),
        datetime: pyarrow.timestamp("us", "UTC"),
        tuple: pyarrow.list_(pyarrow.string()),
    }

    def type_of(hint: Any) -> Any:
        own = (
            next((one for one in get_args(hint) if one is not NoneType), hint) if _is_optional(hint) else hint
        )
        origin = get_origin(own) or own
        return types[str if origin is Literal else origin]

    hints = get_type_hints(kind)
    schema = pyarrow.schema([(one.name, type_of(hints[one.name])) for one in fields(kind)])
    rows = [[getattr(record, name) for name in schema.names] for record in records]
    columns = [[row[at] for row in rows] for at in range(len(schema))]
    for at, column_type in enumerate(schema.types):
        if pyarrow.types.is_timestamp(column_type):
            # Times such as infinity and those before the year 1 are texts.
            columns[at] = [value if isinstance(value, datetime) else None for value in columns[at]]
    arrays = [pyarrow.array(values, of) for values, of in zip(columns, schema.types, strict=True)]
    return pyarrow.table(arrays, schema=schema)


def _is_optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


# (step, amount done, total amount or None if unknown)
Progress = Callable[[str, int, int | None], None]


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""
