"""Plain data classes that the packages exchange, such as documents, matches, pairs and clusters."""

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
# The name of the default collection, and of the default profile.
DEFAULT = "default"

DocId = NewType("DocId", int)
CollectionId = NewType("CollectionId", int)
ProfileId = NewType("ProfileId", int)
GenerationId = NewType("GenerationId", int)

Id = TypeVar("Id", int, str)
Row = TypeVar("Row")

# What to do with a new document that has near-duplicates: add it and list them, leave it out, or raise DuplicateError.
OnDuplicate = Literal["flag", "skip", "raise"]
# Which documents to export.
Keep = Literal["survivors", "duplicates", "all"]
# Whether band rows are stored on the nodes of a Citus cluster.
CitusUse = Literal["auto", "yes", "no"]
# Whether the queried document contains its matches or is contained in them.
Direction = Literal["contains", "contained_in"]
# The stages of the work queue, see indexing/README.md.
WorkStage = Literal["compare", "sign", "search", "anchor", "link"]


# Readers create a Document, ReadDocument or Reject for each record. Frozen classes would take four times as long.
@dataclass(slots=True)
class Document:
    """A document, with the id and the fields that the application has for it."""

    external_id: str
    """The application's id, at most 1,024 bytes."""
    title: str | None = None
    body: str | None = None
    source: str | None = None
    url: str | None = None
    published_at: datetime | None = None
    """In UTC if it has no time zone. A date, a time of NumPy or pandas, or an ISO 8601 string is converted; NaT and NaN
    count as None.
    """
    attributes: Mapping[str, object] = field(default_factory=dict)
    vector: "Sequence[float] | NDArray[np.floating[Any]] | None" = None
    """Numbers that the application computed, for profiles that compare vectors; stored as 32-bit floats.

    If a new version of a stored document has no vector, the document keeps its old vector.
    """


@dataclass(slots=True)
class ReadDocument:
    """A document, and the place where it was read."""

    document: Document
    file: str
    line: int  # from 1; 0 if the document is a whole file
    replaced: int = 0  # characters replaced by U+FFFD: not UTF-8, or not storable in PostgreSQL
    unreadable_date: str | None = None  # why the record's date cannot be read
    is_numbered: bool = False  # the record has no id, so the document's id is its file and line
    absent: tuple[str, ...] = ()  # keys that are joined to the text, and that this record lacks


@dataclass(slots=True)
class Reject:
    """A record that cannot be used, and why."""

    file: str
    line: int
    """From 1; 0 if the record is a whole file."""
    reason: str
    external_id: str | None = None


def mark_names(prefix: str) -> tuple[str, ...]:
    """Return the names of the columns that mark near-duplicates, in the order of their values."""
    return tuple(f"{prefix}{name}" for name in ("duplicate_of", "cluster", "cluster_size", "similarity"))


@dataclass(frozen=True, slots=True)
class Evidence:
    """How similar two documents are.

    With some values of `match.verify`, a recipe decides by the sketches alone. Then `verified` is False, `similarity`
    and `distance` are estimates, and `intersection` and `union` count positions of the sketches.
    """

    similarity: float
    """At most 1. Jaccard: intersection / union. A distance d: 1 / (1 + d)."""
    intersection: int | None
    """Number of distinct features in both documents; None if the metric does not count features."""
    union: int | None
    """Number of distinct features in at least one of the documents; None if the metric does not count features."""
    estimate: float
    """The similarity estimated from the sketches."""
    shared_bands: int
    """Number of bands in which both sketches have the same key."""
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
    """External id of the first document."""
    right: str
    """External id of the second document."""
    left_title: str | None = None
    right_title: str | None = None
    left_in_right: float | None = None
    """Fraction of the left document's features that the right document has; None as in `Match`."""
    right_in_left: float | None = None
    """Fraction of the right document's features that the left document has; None as in `Match`."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """A document, and one of the documents that are most similar to it."""

    id: str  # external id of the document
    rank: int  # 1 for the most similar document
    nearest: str  # external id of the similar document
    similarity: float
    title: str | None
    nearest_title: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Documents connected by pairs."""

    cluster: int
    """Number of the cluster."""
    survivor: str | None
    """External id of the document to keep. None if the recipe keeps no document of a cluster (`cluster.keep`)."""
    members: tuple[str, ...]
    """External ids of all documents, including the survivor."""
    title: str | None = None
    """Title of the survivor, if it has one."""


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A document of a cluster, and how it compares with the survivor."""

    cluster: int
    """Number of the cluster."""
    external_id: str
    title: str | None
    is_survivor: bool
    similarity: float | None
    """Similarity to the survivor, 1 for its twins. None for the survivor itself, and for documents that are not paired
    with the survivor.
    """
    numbers_differ: bool | None
    """Whether the numbers in its text differ from the survivor's."""
    source: str | None
    published_at: datetime | None
    verified: bool | None
    """False if the similarity is an estimate."""


@dataclass(frozen=True, slots=True)
class Match(Evidence):
    """A document that is similar to a query.

    The containment is the larger of `left_in_right` and `right_in_left`. Both are None if the similarity is an
    estimate, and if the metric is not containment, unless a query with a direction asks a Jaccard index.
    """

    external_id: str
    title: str | None
    left_in_right: float | None = None
    """Fraction of the query's features that the document has."""
    right_in_left: float | None = None
    """Fraction of the document's features that the query has."""

    def decisive(self, direction: Direction | None) -> float:
        """Return the number that is compared with the minimum and that matches are ranked by.

        It is the similarity or, with a direction, the fraction of the contained document's features that the containing
        document has; this is 0 if it is unknown.
        """
        if direction is None:
            return self.similarity
        return (self.right_in_left if direction == "contains" else self.left_in_right) or 0.0


class Results(Generator[Row, None, None], Generic[Row]):
    """A stream of records of one class, which are read as they are used.

    Call `close` if you stop before the last record. `to_arrow` and `rows` read all remaining records.
    """

    def __init__(self, records: Generator[Row, None, None], kind: type[Row]) -> None:
        self._records, self._kind = records, kind

    def send(self, value: None, /) -> Row:
        """Return the next record."""
        return self._records.send(value)

    def throw(self, *error: Any) -> Row:
        """Raise an exception inside the generator that reads the records."""
        return self._records.throw(*error)

    def to_arrow(self) -> "pyarrow.Table":
        """Return the remaining records as a table with a column for each field, even if there is no record.

        Requires pyarrow. Times that Python cannot represent, such as infinity, are null.
        """
        return arrow_table(self, self._kind)

    def rows(self) -> list[dict[str, Any]]:
        """Return the remaining records as dictionaries."""
        return [row_of(record) for record in self]


class Matches(list[Match]):
    """Matches, the most similar first."""

    metric: str  # of their similarity: jaccard, containment, weighted_jaccard, cosine or euclidean
    has_more: bool  # whether a limit left out further matches
    doc_ids: Sequence[int]  # the doc_id of each match after a lookup, otherwise empty

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
    """The decision on a document of a result set: keep it, or drop it as a duplicate of an earlier document."""

    id: Id
    """The doc_id or external id by which the caller named the document."""
    duplicate_of: Id | None
    """The earlier document that is kept instead; None if this document is kept."""
    indexed: bool
    """False if the document has no sketch to compare."""

    @property
    def keep(self) -> bool:
        """Whether the document is not a duplicate."""
        return self.duplicate_of is None


@dataclass(slots=True)
class IngestSummary:
    """Counts of the records of an ingest: read = inserted + updated + unchanged + skipped + rejected."""

    read: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0
    """Records that were left out because they have near-duplicates."""
    rejected: int = 0
    replaced: int = 0
    """Records that a record of a later file with the same id replaced; the later record counts as updated."""
    unreadable_dates: int = 0
    """Records whose date cannot be read; they are stored without a date."""
    replaced_characters: int = 0
    """Characters that are not UTF-8 or that PostgreSQL cannot store; U+FFFD replaces each of them."""
    first_rejects: list[Reject] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    """With `on_duplicate`, the documents that have near-duplicates."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A person's decision on two documents."""

    left: str  # external id of the document that was stored first; # and the doc_id for a deleted document
    right: str  # external id of the other document; # and the doc_id for a deleted document
    verdict: Literal["pinned", "vetoed"]  # always in one cluster, or never
    by: str  # the person who decided
    why: str  # the reason
    at: datetime
    undone_by: str | None  # this field and the next two are None unless the verdict was undone
    undone_why: str | None
    undone_at: datetime | None
    collection: str
    left_title: str | None
    right_title: str | None


@dataclass(frozen=True, slots=True)
class SurvivorChoice:
    """A person's choice of a document as the survivor of its cluster."""

    id: str  # external id
    title: str | None
    collection: str
    by: str  # the person who chose
    why: str  # the reason
    at: datetime
    undone_by: str | None  # this field and the next two are None unless the choice was undone
    undone_why: str | None
    undone_at: datetime | None


def row_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name."""
    return {column.name: getattr(record, column.name) for column in fields(record)}


def arrow_table(records: Iterable[Any], kind: type) -> "pyarrow.Table":
    """Return records of one class as a table, with times in UTC; a time that `datetime` cannot represent is null.

    Raises ImportError if pyarrow is not installed.
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
        # Of an optional field, take the type that is not None.
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
            # PostgreSQL's infinity, and times before the year 1, are strings here.
            columns[number] = [value if isinstance(value, datetime) else None for value in columns[number]]

    arrays = [
        pyarrow.array(values, column_type) for values, column_type in zip(columns, schema.types, strict=True)
    ]
    return pyarrow.table(arrays, schema=schema)


# Called with the name of a step, the amount that is done, and the total amount, which is None if it is unknown.
Progress = Callable[[str, int, int | None], None]


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""
