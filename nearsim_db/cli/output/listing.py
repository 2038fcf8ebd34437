"""Answers written as a table, as JSON lines or as CSV, to standard output or to a file."""

import csv
import heapq
import io
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar, assert_never

from nearsim_db.cli.options import Format
from nearsim_db.cli.output import render
from nearsim_db.readers.output import json_line, open_output
from nearsim_db.records import STANDARD_OUTPUT, Cluster, Document, Match, Pair
from nearsim_db.store.work.work_items import WorkItem

_TABLE_ROWS = 50
_MEMBERS_SHOWN = 10

Answer = TypeVar("Answer")
Measured = TypeVar("Measured", Pair, Match)
Row = Sequence[object]
Check = tuple[Document, list[Match]]


@dataclass(frozen=True, slots=True)
class Layout(Generic[Answer]):
    """How one kind of answer is written; a table shows the smallest by `order` first, or all as they come."""

    plural: str
    as_json: Callable[[Answer], object]
    csv_columns: Sequence[str]
    csv_rows: Callable[[Answer], Iterable[Row]]
    table_columns: Sequence[str]
    table_row: Callable[[Answer], Row]
    order: Callable[[Answer], Any] | None = None
    shorten: Sequence[str] = ()
    wrap: Sequence[str] = ()


def write(
    layout: Layout[Answer],
    answers: Generator[Answer, None, None],
    format: Format,
    output: Path | None,
    limit: int | None,
    *,
    quiet: bool,
) -> None:
    """Write answers as they come; a table that is not for a file is limited, to 50 unless told otherwise.

    It says how many more there are, unless `quiet`.
    """
    to_file = output is not None and output != STANDARD_OUTPUT
    # Asking for the first answer shows whether there is an index to answer, before anything is written.
    every = chain(list(islice(answers, 1)), answers)
    counted = _Counted(every if format is Format.TABLE else islice(every, limit))
    with closing(answers), open_output(output or STANDARD_OUTPUT) as stream:
        match format:
            case Format.JSONL:
                written = _write_json(layout, counted, stream)
            case Format.CSV:
                written = _write_csv(layout, counted, stream)
            case Format.TABLE:
                most = limit if limit or to_file else _TABLE_ROWS
                written = _write_table(layout, counted, stream, most, count=not quiet)
            case unknown:
                assert_never(unknown)
    if to_file and not quiet:
        render.note(f"wrote {layout.plural} to {output}: {written:,}")


class _Counted(Iterator[Answer]):
    """Answers as they come, and how many came."""

    def __init__(self, answers: Iterator[Answer]) -> None:
        self._answers = answers
        self.count = 0

    def __next__(self) -> Answer:
        answer = next(self._answers)
        self.count += 1
        return answer


def _write_json(layout: Layout[Answer], answers: _Counted[Answer], stream: BinaryIO) -> int:
    for answer in answers:
        stream.write(json_line(layout.as_json(answer)))
    return answers.count


def _write_csv(layout: Layout[Answer], answers: _Counted[Answer], stream: BinaryIO) -> int:
    with _as_text(stream) as text:
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(layout.csv_columns)
        for answer in answers:
            rows.writerows(layout.csv_rows(answer))
    return answers.count


def _write_table(
    layout: Layout[Answer], answers: _Counted[Answer], stream: BinaryIO, limit: int | None, *, count: bool
) -> int:
    shown = _first(layout, answers, limit)
    for _ in answers:
        pass
    with _as_text(stream) as text:
        if shown:
            rows = map(layout.table_row, shown)
            render.table(layout.table_columns, rows, shorten=layout.shorten, wrap=layout.wrap, stream=text)
        if count:
            text.write(_count(layout.plural, len(shown), answers.count))
    return len(shown)


def _first(layout: Layout[Answer], answers: _Counted[Answer], limit: int | None) -> list[Answer]:
    if layout.order is None:
        return list(islice(answers, limit))
    return (
        sorted(answers, key=layout.order) if limit is None else heapq.nsmallest(limit, answers, layout.order)
    )


@contextmanager
def _as_text(stream: BinaryIO) -> Iterator[io.TextIOWrapper]:
    """Write text to a stream that stays open."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        text.detach()


def _count(plural: str, shown: int, seen: int) -> str:
    if not seen:
        return f"no {plural}\n"
    more = seen - shown
    if not more:
        return f"\n{plural}: {seen:,}\n"
    return (
        f"\n{plural}: {seen:,}, of which {more:,} are not shown; --limit {seen} or --format jsonl shows all\n"
    )


def _pair_order(pair: Pair) -> tuple[float, str, str]:
    return -pair.similarity, pair.left, pair.right


def _cluster_rows(cluster: Cluster) -> Iterator[Row]:
    for member in cluster.members:
        yield cluster.cluster, cluster.survivor, member


def _cluster_row(cluster: Cluster) -> Row:
    more = len(cluster.members) - _MEMBERS_SHOWN
    shown = ", ".join(cluster.members[:_MEMBERS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    return cluster.survivor, len(cluster.members), shown


def _match_object(match: Match) -> dict[str, object]:
    told = dict(zip(_MATCH_COLUMNS, _match_row(match), strict=True))
    return told if match.distance is None else told | {"distance": match.distance}


def _check_order(check: Check) -> tuple[float, str]:
    document, matches = check
    return -max((match.similarity for match in matches), default=0.0), document.external_id


def _check_row(check: Check) -> Row:
    document, matches = check
    first = matches[0] if matches else None
    return (
        document.external_id or None,
        "yes" if first else "no",
        first and first.external_id,
        first and first.similarity,
        len(matches),
    )


def _check_object(check: Check) -> dict[str, object]:
    row = dict(zip(_CHECK_COLUMNS, _check_row(check), strict=True))
    return row | {"duplicate": bool(check[1]), "matches": [_match_object(match) for match in check[1]]}


def _work_row(item: WorkItem) -> Row:
    *others, error = (getattr(item, name) for name in _WORK_SHOWN)
    return *others, error and " ".join(error.split())


def _just(row: Callable[[Answer], Row]) -> Callable[[Answer], Iterable[Row]]:
    return lambda answer: (row(answer),)


_CHECK_COLUMNS = ("id", "duplicate", "duplicate_of", "similarity", "matches")
_EVIDENCE = ("similarity", "intersection", "union", "estimate", "shared_bands")
# Room for ids and titles on a terminal of 80 columns.
_EVIDENCE_SHORTER = ("similarity", "common", "union", "estimate", "bands")
_MATCH_COLUMNS = ("id", "title", *_EVIDENCE)
_pair_row = attrgetter("left", "right", *_EVIDENCE)
_match_row = attrgetter("external_id", "title", *_EVIDENCE)


def measured(layout: Layout[Measured]) -> Layout[Measured]:
    """The layout of pairs or matches with a column for their distance."""

    def row(answer: Measured) -> Row:
        return *layout.table_row(answer), answer.distance

    return replace(
        layout,
        csv_columns=(*layout.csv_columns, "distance"),
        csv_rows=_just(row),
        table_columns=(*layout.table_columns, "distance"),
        table_row=row,
    )


PAIRS: Layout[Pair] = Layout(
    plural="pairs",
    as_json=lambda pair: pair,
    csv_columns=("left", "right", *_EVIDENCE),
    csv_rows=_just(_pair_row),
    table_columns=("left", "right", *_EVIDENCE_SHORTER),
    table_row=_pair_row,
    order=_pair_order,
)
CLUSTERS: Layout[Cluster] = Layout(
    plural="clusters",
    as_json=lambda cluster: cluster,
    csv_columns=("cluster", "survivor", "member"),
    csv_rows=_cluster_rows,
    table_columns=("survivor", "documents", "members"),
    table_row=_cluster_row,
    wrap=("members",),
)
MATCHES: Layout[Match] = Layout(
    plural="similar documents",
    as_json=_match_object,
    csv_columns=_MATCH_COLUMNS,
    csv_rows=_just(_match_row),
    table_columns=("id", "title", *_EVIDENCE_SHORTER),
    table_row=_match_row,
    shorten=("title",),
)
CHECKS: Layout[Check] = Layout(
    plural="documents checked",
    as_json=_check_object,
    csv_columns=_CHECK_COLUMNS,
    csv_rows=_just(_check_row),
    table_columns=_CHECK_COLUMNS,
    table_row=_check_row,
    order=_check_order,
)
_WORK_COLUMNS = (
    *("id", "collection", "profile", "generation", "stage", "state", "attempts", "due_at", "queued_at"),
    *("worker", "error"),
)
_WORK_SHOWN = ("id", "collection", "profile", "stage", "state", "attempts", "due_at", "worker", "error")
WORK: Layout[WorkItem] = Layout(
    plural="documents to be worked on",
    as_json=lambda item: item,
    csv_columns=_WORK_COLUMNS,
    csv_rows=_just(attrgetter(*_WORK_COLUMNS)),
    table_columns=_WORK_SHOWN,
    table_row=_work_row,
    shorten=("id",),
    wrap=("error",),
)
