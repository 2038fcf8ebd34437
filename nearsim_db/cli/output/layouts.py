"""Layouts of the answers: their columns in a table and in CSV, their keys in JSON lines."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Any, Generic, Protocol, TypeVar

from nearsim_db.errors import suggested_command
from nearsim_db.records import Cluster, ClusterMember, Document, Match, Matches, Pair
from nearsim_db.store.work.work_items import WorkItem

_MEMBERS_SHOWN = 10
_NUMBERS = re.compile(r"([0-9]+)")

Answer = TypeVar("Answer")
Measured = TypeVar("Measured", Pair, Match)
Row = Sequence[object]
Check = tuple[Document, Matches]


@dataclass(frozen=True, slots=True)
class Layout(Generic[Answer]):
    """How one kind of answer is written; a table is sorted by `order`, or unsorted without one.

    A JSON document is the array of the answers or, with a `key`, an object that has it there. `limits_rows` says
    whether the option --limit limits the rows of this layout; `if_empty` is a table's text without any. A table leaves
    out columns of `optional`, the first ones first, that its terminal is too narrow for, and `verified` unless a row is
    an estimate.
    """

    plural: str
    as_json: Callable[[Answer], object]
    csv_columns: Sequence[str]
    csv_rows: Callable[[Answer], Iterable[Row]]
    table_columns: Sequence[str]
    table_row: Callable[[Answer], Row]
    order: Callable[[Answer], Any] | None = None
    shorten: Sequence[str] = ()
    wrap: Sequence[str] = ()
    limits_rows: bool = True
    key: str = ""
    if_empty: str = ""
    optional: Sequence[str] = ()


def _natural(id: str) -> tuple[str | int, ...]:
    """Return a key that orders the numbers in ids as numbers: a2 before a10."""
    return tuple(int(part) if at % 2 else part for at, part in enumerate(_NUMBERS.split(id)))


def _pair_order(pair: Pair) -> tuple[object, ...]:
    return -pair.similarity, _natural(pair.left), _natural(pair.right)


def _match_order(match: Match) -> tuple[object, ...]:
    return -match.similarity, _natural(match.external_id)


def _cluster_order(cluster: Cluster) -> tuple[object, ...]:
    return -len(cluster.members), _natural(cluster.survivor)


def _cluster_rows(cluster: Cluster) -> Iterator[Row]:
    for member in cluster.members:
        yield cluster.cluster, cluster.survivor, member


def _cluster_row(cluster: Cluster) -> Row:
    more = len(cluster.members) - _MEMBERS_SHOWN
    shown = ", ".join(cluster.members[:_MEMBERS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    return cluster.survivor, cluster.title, len(cluster.members), shown


def _measured_object(columns: Sequence[str], row: Callable[[Measured], Row]) -> Callable[[Measured], object]:
    """Return how an answer is written as an object, which has a distance only if its metric measures one."""

    def as_object(answer: Measured) -> dict[str, object]:
        values = dict(zip(columns, row(answer), strict=True))
        return values if answer.distance is None else values | {"distance": answer.distance}

    return as_object


def _check_order(check: Check) -> tuple[object, ...]:
    document, matches = check
    return -max((match.similarity for match in matches), default=0.0), _natural(document.external_id)


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
    return row | {"duplicate": bool(check[1]), "matches": list(map(_match_object, check[1]))}


def _limited_check_object(check: Check) -> dict[str, object]:
    return _check_object(check) | {"has_more": check[1].has_more}


def _work_row(item: WorkItem) -> Row:
    *values, error = (getattr(item, name) for name in _WORK_SHOWN)
    return *values, error and " ".join(error.split())


def _one_row(row: Callable[[Answer], Row]) -> Callable[[Answer], Iterable[Row]]:
    return lambda answer: (row(answer),)


_CHECK_COLUMNS = ("id", "duplicate", "duplicate_of", "similarity", "matches", "verified")
_EVIDENCE = ("similarity", "intersection", "union", "estimate", "shared_bands")
_MATCH_COLUMNS = ("id", "title", *_EVIDENCE, "verified")
_PAIR_COLUMNS = ("left", "right", *_EVIDENCE, "left_title", "right_title", "verified")
_MEMBER_FIGURES = ("is_survivor", "similarity", "numbers_differ", "source", "published_at", "verified")
_pair_row: Callable[[Pair], Row] = attrgetter(*_PAIR_COLUMNS)
_member_row = attrgetter("cluster", "external_id", "title", *_MEMBER_FIGURES)
_match_row: Callable[[Match], Row] = attrgetter("external_id", "title", *_EVIDENCE, "verified")
_match_object = _measured_object(_MATCH_COLUMNS, _match_row)


def of_facts(
    plural: str, columns: Sequence[str], *, if_empty: str = "", wrap: Sequence[str] = ()
) -> Layout[Mapping[str, object]]:
    """Return a layout of rows that are mappings with these keys."""
    row = itemgetter(*columns)
    return Layout(
        plural=plural,
        as_json=lambda values: values,
        csv_columns=columns,
        csv_rows=_one_row(row),
        table_columns=columns,
        table_row=row,
        wrap=wrap,
        if_empty=if_empty,
    )


def with_distance(layout: Layout[Measured]) -> Layout[Measured]:
    """Return a layout of pairs or matches with a column for the distance."""

    def row(answer: Measured) -> Row:
        return *layout.table_row(answer), answer.distance

    return replace(
        layout,
        csv_columns=(*layout.csv_columns, "distance"),
        csv_rows=_one_row(row),
        table_columns=(*layout.table_columns, "distance"),
        table_row=row,
    )


PAIRS: Layout[Pair] = Layout(
    plural="pairs",
    as_json=_measured_object(_PAIR_COLUMNS, _pair_row),
    csv_columns=_PAIR_COLUMNS,
    csv_rows=_one_row(_pair_row),
    table_columns=_PAIR_COLUMNS,
    table_row=_pair_row,
    order=_pair_order,
    shorten=("left_title", "right_title"),
    wrap=("shared_bands",),
    optional=("intersection", "union", "estimate", "shared_bands"),
)
CLUSTERS: Layout[Cluster] = Layout(
    plural="clusters",
    as_json=lambda cluster: cluster,
    csv_columns=("cluster", "survivor", "member"),
    csv_rows=_cluster_rows,
    table_columns=("survivor", "title", "documents", "members"),
    table_row=_cluster_row,
    shorten=("title",),
    order=_cluster_order,
    wrap=("members",),
)
_MEMBER_COLUMNS = ("cluster", "id", "title", *_MEMBER_FIGURES)
MEMBERS: Layout[ClusterMember] = Layout(
    plural="documents of the cluster",
    key="members",
    as_json=lambda member: dict(zip(_MEMBER_COLUMNS, _member_row(member), strict=True)),
    csv_columns=_MEMBER_COLUMNS,
    csv_rows=_one_row(_member_row),
    table_columns=_MEMBER_COLUMNS[1:],
    table_row=lambda member: _member_row(member)[1:],
    shorten=("title", "source"),
    wrap=("is_survivor", "numbers_differ"),
    optional=("published_at", "source"),
)
MATCHES: Layout[Match] = Layout(
    plural="similar documents",
    as_json=_match_object,
    csv_columns=_MATCH_COLUMNS,
    csv_rows=_one_row(_match_row),
    table_columns=_MATCH_COLUMNS,
    table_row=_match_row,
    order=_match_order,
    shorten=("title",),
    wrap=("shared_bands",),
)
CHECKS: Layout[Check] = Layout(
    plural="documents checked",
    as_json=_check_object,
    csv_columns=_CHECK_COLUMNS,
    csv_rows=_one_row(_check_row),
    table_columns=_CHECK_COLUMNS,
    table_row=_check_row,
    order=_check_order,
    limits_rows=False,
)
LIMITED_CHECKS = replace(CHECKS, as_json=_limited_check_object)
_WORK_COLUMNS = (
    *("id", "collection", "profile", "generation", "stage", "state", "attempts", "due_at", "queued_at"),
    *("worker", "error"),
)
_WORK_SHOWN = ("id", "collection", "profile", "stage", "state", "attempts", "due_at", "worker", "error")
WORK: Layout[WorkItem] = Layout(
    plural="documents in the work queue",
    key="work",
    as_json=lambda item: item,
    csv_columns=_WORK_COLUMNS,
    csv_rows=_one_row(attrgetter(*_WORK_COLUMNS)),
    table_columns=_WORK_SHOWN,
    table_row=_work_row,
    shorten=("id",),
    wrap=("error",),
)


class Answering(Protocol):
    """An index that is asked."""

    def least_similarity(self) -> tuple[str, float, float]:
        """Return the profile, its threshold, and the least similarity that it stores."""
        ...


def of_unstored(answers: Answering, collection: str, wanted: float) -> list[str]:
    """Return a warning if similarities are asked for that the index does not store, with what finds them."""
    if not wanted:
        return []
    profile, threshold, least = answers.least_similarity()
    if wanted >= least:
        return []
    lower = wanted if least == threshold else 1 / wanted - 1
    command = suggested_command("reindex start", collection, profile, "--threshold", f"{lower:.4g}")
    return [
        f"profile {profile} has no pair below similarity {least:.4g}, its threshold; to find pairs from {wanted:g}: "
        f"{command}"
    ]
