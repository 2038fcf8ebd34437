"""Layouts of answers such as pairs and clusters: their columns in tables and CSV, and their keys in JSON."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nearsim_db.messages import suggested_command
from nearsim_db.records import Cluster, ClusterMember, Document, Match, Matches, Nearest, Pair, Verdict

if TYPE_CHECKING:
    from nearsim_db.analysis.pair_scores import ScoredRow
    from nearsim_db.search.answers import Answers
    from nearsim_db.search.queries import Queries
    from nearsim_db.store.clusters.events import Event
    from nearsim_db.store.work.backlog import WorkItem

_MEMBERS_SHOWN = 10
_NUMBERS = re.compile(r"([0-9]+)")

Answer = TypeVar("Answer")
Measured = TypeVar("Measured", Pair, Match)
Row = Sequence[object]
Check = tuple[Document, Matches]


@dataclass(frozen=True, slots=True)
class Layout(Generic[Answer]):
    """How one kind of answer is written. The column `verified` of a table is left out unless a row is an estimate."""

    plural: str  # the noun for these answers
    columns: Sequence[str]  # of CSV; of tables, unless there is `shown`
    row: Callable[[Answer], Row]  # the values of `columns`
    rows: Callable[[Answer], Iterable[Row]] | None = None  # of CSV, if an answer has several rows
    as_json: Callable[[Answer], object] | None = None  # by default the columns, and a distance or shares
    shown: Sequence[str] = ()  # columns of tables
    shown_row: Callable[[Answer], Row] | None = None  # the values of `shown`
    order: Callable[[Answer], Any] | None = None  # sort key of tables; None leaves the order of the answers
    shorten: Sequence[str] = ()  # columns that a narrow terminal truncates
    wrap: Sequence[str] = ()  # columns that a narrow terminal breaks between words
    limits_rows: bool = True  # whether --limit limits these rows
    key: str = ""  # key of the array of answers in a JSON document; empty if the document is the array
    if_empty: str = ""  # text of a table without rows
    optional: Sequence[str] = ()  # columns that a narrow terminal leaves out, in this order

    def json_value(self, answer: Answer) -> object:
        """Return the value that represents an answer in JSON."""
        return self.json_object(answer) if self.as_json is None else self.as_json(answer)

    def json_object(self, answer: Answer) -> dict[str, object]:
        """Return the columns of an answer by name, with its distance and shares if it has them."""
        values = dict(zip(self.columns, self.row(answer), strict=True))
        figures = {name: getattr(answer, name, None) for name in ("distance", *SHARES)}
        return values | {name: value for name, value in figures.items() if value is not None}

    def csv_rows(self, answer: Answer) -> Iterable[Row]:
        """Return the CSV rows of an answer."""
        return (self.row(answer),) if self.rows is None else self.rows(answer)

    def table(self, answers: Iterable[Answer]) -> tuple[Sequence[str], list[Row]]:
        """Return the columns and rows of a table."""
        return self.shown or self.columns, list(map(self.shown_row or self.row, answers))


def _natural(id: str) -> tuple[str | int, ...]:
    """Return a sort key that orders numbers within ids as numbers: a2 before a10."""
    # The pattern has a group, so split returns texts and numbers in turn.
    return tuple(int(part) if at % 2 else part for at, part in enumerate(_NUMBERS.split(id)))


def _cluster_row(cluster: Cluster) -> Row:
    omitted = len(cluster.members) - _MEMBERS_SHOWN
    shown = ", ".join(cluster.members[:_MEMBERS_SHOWN]) + (f" and {omitted:,} more" if omitted > 0 else "")
    return cluster.survivor, cluster.title, len(cluster.members), shown


def _check_row(check: Check) -> Row:
    document, matches = check
    first = matches[0] if matches else None
    return (
        document.external_id or None,
        "yes" if first else "no",
        first and first.external_id,
        first and first.similarity,
        len(matches),
        first and first.verified,
    )


def _check_object(check: Check) -> dict[str, object]:
    row = dict(zip(_CHECK_COLUMNS, _check_row(check), strict=True))
    return row | {"duplicate": bool(check[1]), "matches": list(map(MATCHES.json_value, check[1]))}


def _work_row(item: "WorkItem") -> Row:
    *values, error = (getattr(item, name) for name in _WORK_SHOWN)
    return *values, error and " ".join(error.split())


_CHECK_COLUMNS = ("id", "duplicate", "duplicate_of", "similarity", "matches", "verified")
_EVIDENCE = ("similarity", "intersection", "union", "estimate", "shared_bands")
_MATCH_COLUMNS = ("id", "title", *_EVIDENCE, "verified")
_PAIR_COLUMNS = ("left", "right", *_EVIDENCE, "left_title", "right_title", "verified")
_MEMBER_FIGURES = ("is_survivor", "similarity", "numbers_differ", "source", "published_at", "verified")
_member_row = attrgetter("cluster", "external_id", "title", *_MEMBER_FIGURES)


def _itself(record: object) -> object:
    return record


SHARES = ("left_in_right", "right_in_left")
_OF_METRICS: Mapping[str, Sequence[str]] = {"euclidean": ("distance",), "containment": SHARES}


def of_metric(layout: Layout[Measured], metric: str) -> Layout[Measured]:
    """Return a layout of pairs or matches with the additional columns of a metric."""
    added: Sequence[str] = _OF_METRICS.get(metric, ())

    def row(answer: Measured) -> Row:
        return *layout.row(answer), *(getattr(answer, name) for name in added)

    return replace(layout, columns=(*layout.columns, *added), row=row)


SIGNATURE_PARTS = ("signature_similarity", "signature_intersection", "signature_union")


def with_signatures(layout: Layout[Pair], positions: int) -> Layout[Pair]:
    """Return a layout of pairs with the equal and the distinct values of both signatures, and their ratio.

    `positions` is the number of positions of a signature; the estimate of a pair is the fraction of equal positions.
    """

    def row(pair: Pair) -> Row:
        equal = round(pair.estimate * positions)
        distinct = 2 * positions - equal
        return *layout.row(pair), round(equal / distinct, 6), equal, distinct

    return replace(
        layout, columns=(*layout.columns, *SIGNATURE_PARTS), row=row, wrap=(*layout.wrap, *SIGNATURE_PARTS)
    )


PAIRS: Layout[Pair] = Layout(
    "pairs",
    _PAIR_COLUMNS,
    attrgetter(*_PAIR_COLUMNS),
    order=lambda pair: (-pair.similarity, _natural(pair.left), _natural(pair.right)),
    shorten=("left_title", "right_title"),
    wrap=("shared_bands",),
    optional=("intersection", "union", "estimate", "shared_bands"),
)
CLUSTERS: Layout[Cluster] = Layout(
    "clusters",
    ("cluster", "survivor", "member"),
    _cluster_row,
    rows=lambda cluster: [(cluster.cluster, cluster.survivor, member) for member in cluster.members],
    as_json=_itself,
    shown=("survivor", "title", "documents", "members"),
    shorten=("title",),
    order=lambda cluster: (-len(cluster.members), _natural(cluster.survivor or cluster.members[0])),
    wrap=("members",),
)
_MEMBER_COLUMNS = ("cluster", "id", "title", *_MEMBER_FIGURES)
MEMBERS: Layout[ClusterMember] = Layout(
    "documents of the cluster",
    _MEMBER_COLUMNS,
    _member_row,
    key="members",
    shown=_MEMBER_COLUMNS[1:],
    shown_row=lambda member: _member_row(member)[1:],
    shorten=("title", "source"),
    wrap=("is_survivor", "numbers_differ"),
    optional=("published_at", "source"),
)
MATCHES: Layout[Match] = Layout(
    "similar documents",
    _MATCH_COLUMNS,
    attrgetter("external_id", *_MATCH_COLUMNS[1:]),
    order=lambda match: (-match.similarity, _natural(match.external_id)),
    shorten=("title",),
    wrap=("shared_bands",),
)
_NEAREST_COLUMNS = ("id", "rank", "nearest", "similarity", "title", "nearest_title")
_SCORE_COLUMNS = (
    *("similarity", "estimate", "left_in_right", "right_in_left", "intersection", "union", "shared_bands"),
    *("candidate", "pair"),
)
SCORES: Layout["ScoredRow"] = Layout(
    "pairs",
    ("row", "left", "right", "label", *_SCORE_COLUMNS),
    lambda pair: (pair.row, pair.left, pair.right, pair.label, *attrgetter(*_SCORE_COLUMNS)(pair.score)),
    shorten=("left", "right"),
    key="pairs",
    optional=("candidate", "label", "union", "intersection"),
)
NEAREST: Layout[Nearest] = Layout(
    "nearest documents", _NEAREST_COLUMNS, attrgetter(*_NEAREST_COLUMNS), shorten=("title", "nearest_title")
)
CHECKS: Layout[Check] = Layout(
    "documents checked",
    _CHECK_COLUMNS,
    _check_row,
    as_json=_check_object,
    order=lambda check: (
        -max((match.similarity for match in check[1]), default=0.0),
        _natural(check[0].external_id),
    ),
    limits_rows=False,
)
LIMITED_CHECKS = replace(CHECKS, as_json=lambda check: _check_object(check) | {"has_more": check[1].has_more})


def with_passages(layout: Layout[Check], find: Callable[[Document, str], Sequence[Any]]) -> Layout[Check]:
    """Extend a layout of checks by the share of each document that its first match has, and by passages of each match.

    `find` returns the passages that a document shares with a match, as dataclasses.
    """

    def row(check: Check) -> Row:
        return *layout.row(check), check[1][0].left_in_right if check[1] else None

    def as_object(check: Check) -> dict[str, object]:
        document, matches = check
        listed = [
            MATCHES.json_object(match)
            | {"passages": [asdict(passage) for passage in find(document, match.external_id)]}
            for match in matches
        ]
        more = {"has_more": matches.has_more} if layout is LIMITED_CHECKS else {}
        return (
            dict(zip(columns, row(check), strict=True))
            | {"duplicate": bool(matches), "matches": listed}
            | more
        )

    columns = (*layout.columns, "left_in_right")
    return replace(layout, columns=columns, row=row, as_json=as_object)


_WORK_COLUMNS = (
    *("id", "collection", "profile", "generation", "stage", "state", "attempts", "due_at", "queued_at"),
    *("worker", "error"),
)
_WORK_SHOWN = ("id", "collection", "profile", "stage", "state", "attempts", "due_at", "worker", "error")
WORK: "Layout[WorkItem]" = Layout(
    "documents in the work queue",
    _WORK_COLUMNS,
    attrgetter(*_WORK_COLUMNS),
    key="work",
    shown=_WORK_SHOWN,
    shown_row=_work_row,
    shorten=("id",),
    wrap=("error",),
)
_VERDICT_SHOWN = ("left", "right", "verdict", "by", "at", "why")
_UNDONE_VERDICT_SHOWN = (*_VERDICT_SHOWN, "undone_by", "undone_at", "undone_why")
_VERDICT_COLUMNS = (*_UNDONE_VERDICT_SHOWN, "collection", "left_title", "right_title")
UNDONE_VERDICTS: Layout[Verdict] = Layout(
    "verdicts",
    _VERDICT_COLUMNS,
    attrgetter(*_VERDICT_COLUMNS),
    as_json=_itself,
    shown=_UNDONE_VERDICT_SHOWN,
    shown_row=attrgetter(*_UNDONE_VERDICT_SHOWN),
    key="verdicts",
    wrap=("why", "undone_why"),
    optional=("at", "undone_at", "by", "undone_by"),
)
VERDICTS = replace(UNDONE_VERDICTS, shown=_VERDICT_SHOWN, shown_row=attrgetter(*_VERDICT_SHOWN))
_EVENT_COLUMNS = (
    *("event_id", "kind", "at", "collection", "profile", "left", "right", "similarity", "survivor"),
    *("left_id", "right_id", "cluster_id", "survivor_id", "other_ids", "other_survivor_ids", "generation_id"),
    "verified",
)
_EVENT_SHOWN = (
    "event_id",
    "at",
    "kind",
    "collection",
    "profile",
    "left",
    "right",
    "similarity",
    "cluster_id",
)


def _event_shown(event: "Event") -> Row:
    other_ids = ", ".join(map(str, event.other_ids or ()))
    return *attrgetter(*_EVENT_SHOWN)(event), event.survivor, other_ids or None, event.verified


EVENTS: "Layout[Event]" = Layout(
    "events",
    _EVENT_COLUMNS,
    attrgetter(*_EVENT_COLUMNS),
    as_json=_itself,
    shown=(*_EVENT_SHOWN, "survivor", "other_ids", "verified"),
    shown_row=_event_shown,
    wrap=("other_ids",),
    optional=("profile", "collection", "other_ids", "at", "cluster_id", "survivor", "similarity"),
)


def of_unstored(answers: "Answers | Queries", collection: str, wanted: float) -> list[str]:
    """Return a warning, with a remedy, if the wanted similarity is lower than any that the index stores."""
    if not wanted:
        return []
    profile, threshold, min_stored = answers.least_similarity()
    if wanted >= min_stored:
        return []
    # The threshold of a euclidean profile is a distance.
    lower = wanted if min_stored == threshold else 1 / wanted - 1
    command = suggested_command("reindex start", collection, profile, "--threshold", f"{lower:.4g}")
    return [
        f"profile {profile} has no pair below similarity {min_stored:.4g}, its threshold; to find pairs from "
        f"{wanted:g}: {command}"
    ]


def of_unreviewed(answers: "Answers | Queries", collection: str, wanted: float) -> list[str]:
    """Return a warning, with a remedy, if the index stores no pairs to be reviewed of the wanted similarity."""
    from nearsim_db.search.answers import least_reviewed

    profile, min_stored = least_reviewed(answers)
    if (min_stored and wanted >= min_stored) or wanted == 0 < min_stored:
        return []
    command = suggested_command(
        "reindex start", collection, profile, "--set", f"match.review={wanted or 0.5:g}"
    )
    stored = f"from similarity {min_stored:g}" if min_stored else "none, as match.review is 0"
    return [
        f"profile {profile} stores pairs to be reviewed {stored}; to store those from {wanted or 0.5:g}: {command}"
    ]
