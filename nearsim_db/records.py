"""Plain values that packages exchange: documents in, pairs and clusters out."""

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

# What to do with a new document that has near-duplicates.
OnDuplicate = Literal["flag", "skip", "raise"]
# Which documents to export.
Keep = Literal["survivors", "duplicates", "all"]
# Whether band rows are on the nodes of a Citus cluster.
CitusUse = Literal["auto", "yes", "no"]
# Whether a document contains a match, or is contained in it.
Direction = Literal["contains", "contained_in"]
WorkStage = Literal["compare", "sign", "search", "anchor", "link"]


# Readers make a Document, ReadDocument or Reject for each record; frozen ones would take four times as long to make.
@dataclass(slots=True)
class Document:
    """A document as supplied by its owner."""

    external_id: str
    """The owner's id, at most 1,024 bytes."""
    title: str | None = None
    body: str | None = None
    source: str | None = None
    url: str | None = None
    published_at: datetime | None = None
    """Without a zone in UTC. Dates, times of NumPy and pandas, and ISO 8601 strings serve too; NaT and NaN are None."""
    attributes: Mapping[str, object] = field(default_factory=dict)
    vector: "Sequence[float] | NDArray[np.floating[Any]] | None" = None
    """Numbers computed by the owner, for profiles that compare vectors; stored as 32-bit floats.

    A stored document keeps its vector if the new version has none.
    """


@dataclass(slots=True)
class ReadDocument:
    """A document and where it was read."""

    document: Document
    file: str
    line: int  # from 1; 0 for a whole file
    replaced: int = 0  # characters replaced by U+FFFD: not UTF-8, or none that PostgreSQL can store
    unreadable_date: str | None = None  # why the document has no date though its record has one
    is_numbered: bool = False  # its id is its place, since the record has none
    absent: tuple[str, ...] = ()  # of several keys that the text joins, those that the record lacks


@dataclass(slots=True)
class Reject:
    """A record that was set aside."""

    file: str
    line: int
    """From 1; 0 for a whole file."""
    reason: str
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """How similar two documents are.

    A recipe may decide by sketches alone (`match.verify`). Then `verified` is False, `similarity` and `distance` are
    estimates, and `intersection` and `union` count values of the sketches.
    """

    similarity: float
    """At most 1: for Jaccard intersection / union, for a distance d 1 / (1 + d)."""
    intersection: int | None
    """Number of distinct features that both have; None if the metric does not count features."""
    union: int | None
    """Number of distinct features of both together; None if the metric does not count features."""
    estimate: float
    """The similarity estimated from the sketches."""
    shared_bands: int
    """Number of bands with equal keys."""
    distance: float | None
    """None if the metric is not a distance."""
    verified: bool
    """Whether the similarity was computed from the features."""

    def figures(self) -> dict[str, Any]:
        """Return the fields of the evidence by name, without the fields of a subclass."""
        return {figure.name: getattr(self, figure.name) for figure in fields(Evidence)}


@dataclass(frozen=True, slots=True)
class Pair(Evidence):
    """Two documents that are a pair."""

    left: str
    """External id."""
    right: str
    """External id."""
    left_title: str | None = None
    right_title: str | None = None
    left_in_right: float | None = None
    """As in `Match`."""
    right_in_left: float | None = None
    """As in `Match`."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """A document, and one of the documents that are most similar to it."""

    id: str  # external id
    rank: int  # 1 for the most similar
    nearest: str  # external id
    similarity: float
    title: str | None
    nearest_title: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Documents connected by pairs."""

    cluster: int
    """Number of the cluster."""
    survivor: str
    """External id of the document to keep."""
    members: tuple[str, ...]
    """External ids, the survivor's included."""
    title: str | None = None
    """Title of the survivor."""


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A document of a cluster, compared with the survivor."""

    cluster: int
    """Number of the cluster."""
    external_id: str
    title: str | None
    is_survivor: bool
    similarity: float | None
    """To the survivor, 1 for its twins; None for the survivor itself, and if only other documents connect the two."""
    numbers_differ: bool | None
    """Whether the numbers in its text differ from the survivor's."""
    source: str | None
    published_at: datetime | None
    verified: bool | None
    """False if the similarity is an estimate."""


@dataclass(frozen=True, slots=True)
class Match(Evidence):
    """A document similar to a query.

    The larger one of `left_in_right` and `right_in_left` is the containment. Both are None for other metrics, and for
    estimates.
    """

    external_id: str
    title: str | None
    left_in_right: float | None = None
    """Share of the query's features that the document has."""
    right_in_left: float | None = None
    """Share of the document's features that the query has."""

    def decisive(self, direction: Direction | None) -> float:
        """Return the share of the contained one in a direction, 0 if it is unknown; without one, the similarity."""
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
        """Return the records as a table with a column for each field, also if there are none. Requires pyarrow.

        Times that Python cannot hold, such as infinity, are null.
        """
        return arrow_table(self, self._kind)

    def rows(self) -> list[dict[str, Any]]:
        """Return the records as dictionaries."""
        return [row_of(record) for record in self]


class Matches(list[Match]):
    """Matches, the most similar first.

    `metric` names the measure of their similarity: jaccard, containment, weighted_jaccard, cosine or euclidean.
    `has_more` says whether a limit left out others. `doc_ids` has the doc_id of each match, if this is the result of a
    lookup.
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
        return [row_of(match) for match in self]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A new document that has near-duplicates."""

    external_id: str
    matches: tuple[Match, ...]
    """The near-duplicates, the most similar first."""


class Judgement(NamedTuple, Generic[Id]):
    """The decision on a document of a result set: keep it, or drop it as a duplicate of an earlier document.

    Documents have the ids by which the caller named them: doc_ids or external ids.
    """

    id: Id
    duplicate_of: Id | None
    """An earlier document that is kept."""
    indexed: bool
    """False if there is no sketch to compare."""

    @property
    def keep(self) -> bool:
        """Whether the document is not a duplicate."""
        return self.duplicate_of is None


@dataclass(slots=True)
class IngestSummary:
    """Counts of the records read: read = inserted + updated + unchanged + skipped + rejected."""

    read: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0
    """Records that were left out because they have near-duplicates."""
    rejected: int = 0
    replaced: int = 0
    """Records whose id a later record of another file has; the later record counts as updated."""
    unreadable_dates: int = 0
    """Records that are kept without their date."""
    replaced_characters: int = 0
    """Characters that were not UTF-8, or that PostgreSQL cannot store, each replaced by U+FFFD."""
    first_rejects: list[Reject] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    """All documents that have near-duplicates, if they were looked up."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A person's decision on two documents."""

    left: str  # external id of the document that was stored first; a deleted document has # and its doc_id
    right: str  # external id of the other, or # and its doc_id
    verdict: Literal["pinned", "vetoed"]  # always, or never, in one cluster
    by: str
    why: str
    at: datetime
    undone_by: str | None  # this and the next two are None unless the verdict was undone
    undone_why: str | None
    undone_at: datetime | None
    collection: str
    left_title: str | None
    right_title: str | None


@dataclass(frozen=True, slots=True)
class SurvivorChoice:
    """A person's choice of the document to keep of its cluster."""

    id: str  # external id
    title: str | None
    collection: str
    by: str
    why: str
    at: datetime
    undone_by: str | None  # this and the next two are None unless the choice was undone
    undone_why: str | None
    undone_at: datetime | None


def row_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name."""
    return {column.name: getattr(record, column.name) for column in fields(record)}


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
        # The type beside None of an optional field.
        arguments = get_args(hint)
        if NoneType in arguments:
            hint = next((argument for argument in arguments if argument is not NoneType), hint)
        origin = get_origin(hint) or hint
        return types[str if origin is Literal else origin]

    hints = get_type_hints(kind)
    schema = pyarrow.schema([(column.name, type_of(hints[column.name])) for column in fields(kind)])

    rows = [[getattr(record, name) for name in schema.names] for record in records]
    columns = [[row[number] for row in rows] for number in range(len(schema))]
    for number, column_type in enumerate(schema.types):
        if pyarrow.types.is_timestamp(column_type):
            # PostgreSQL's infinity, and times before the year 1, are texts.
            columns[number] = [value if isinstance(value, datetime) else None for value in columns[number]]

    arrays = [
        pyarrow.array(values, column_type) for values, column_type in zip(columns, schema.types, strict=True)
    ]
    return pyarrow.table(arrays, schema=schema)


# Called with a step, the amount done, and the total amount, None if unknown.
Progress = Callable[[str, int, int | None], None]


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""
