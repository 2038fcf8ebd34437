"""Answers written as a table, as JSON lines or as CSV, to standard output or to a file."""

import csv
import heapq
import io
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar, assert_never

from nearsim_db.cli import render
from nearsim_db.cli.options import Format
from nearsim_db.output import json_line, replacing
from nearsim_db.records import Cluster, Match, Pair

_TABLE_ROWS = 50
_MEMBERS_SHOWN = 10

Answer = TypeVar("Answer")
Row = Sequence[object]


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


def write(
    layout: Layout[Answer],
    answers: Generator[Answer, None, None],
    format: Format | None,
    output: Path | None,
    limit: int | None,
    *,
    quiet: bool,
) -> None:
    """Write answers as they come; a table is limited, to 50 unless told otherwise, and says how many more there are."""
    chosen = format or _format_of(output)
    # Asking for the first answer shows whether there is an index to answer, before anything is written.
    every = chain(list(islice(answers, 1)), answers)
    counted = _Counted(every if chosen is Format.TABLE else islice(every, limit))
    with closing(answers), _destination(output) as stream:
        match chosen:
            case Format.JSONL:
                _write_json(layout, counted, stream)
            case Format.CSV:
                _write_csv(layout, counted, stream)
            case Format.TABLE:
                _write_table(layout, counted, stream, limit or _TABLE_ROWS)
            case unknown:
                assert_never(unknown)
    if output is not None and not quiet:
        render.note(f"wrote {layout.plural} to {output}: {counted.count:,}")


def _format_of(output: Path | None) -> Format:
    match output.suffix.lower() if output is not None else "":
        case ".jsonl" | ".ndjson":
            return Format.JSONL
        case ".csv":
            return Format.CSV
        case _:
            return Format.TABLE


@contextmanager
def _destination(output: Path | None) -> Iterator[BinaryIO]:
    if output is not None:
        with replacing(output) as stream:
            yield stream
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


class _Counted(Iterator[Answer]):
    """Answers as they come, and how many came."""

    def __init__(self, answers: Iterator[Answer]) -> None:
        self._answers = answers
        self.count = 0

    def __next__(self) -> Answer:
        answer = next(self._answers)
        self.count += 1
        return answer


def _write_json(layout: Layout[Answer], answers: _Counted[Answer], stream: BinaryIO) -> None:
    for answer in answers:
        stream.write(json_line(layout.as_json(answer)))


def _write_csv(layout: Layout[Answer], answers: _Counted[Answer], stream: BinaryIO) -> None:
    with _as_text(stream) as text:
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(layout.csv_columns)
        for answer in answers:
            rows.writerows(layout.csv_rows(answer))


def _write_table(layout: Layout[Answer], answers: _Counted[Answer], stream: BinaryIO, limit: int) -> None:
    shown = (
        list(islice(answers, limit))
        if layout.order is None
        else heapq.nsmallest(limit, answers, key=layout.order)
    )
    for _ in answers:
        pass
    with _as_text(stream) as text:
        if shown:
            rows = map(layout.table_row, shown)
            render.table(layout.table_columns, rows, shorten=layout.shorten, stream=text)
        text.write(_count(layout.plural, len(shown), answers.count))


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
    return dict(zip(_MATCH_COLUMNS, _match_row(match), strict=True))


def _just(row: Callable[[Answer], Row]) -> Callable[[Answer], Iterable[Row]]:
    return lambda answer: (row(answer),)


_EVIDENCE = ("similarity", "intersection", "union", "estimate", "shared_bands")
_MATCH_COLUMNS = ("id", "title", *_EVIDENCE)
_pair_row = attrgetter("left", "right", *_EVIDENCE)
_match_row = attrgetter("external_id", "title", *_EVIDENCE)

PAIRS: Layout[Pair] = Layout(
    plural="pairs",
    as_json=lambda pair: pair,
    csv_columns=("left", "right", *_EVIDENCE),
    csv_rows=_just(_pair_row),
    table_columns=("left", "right", *_EVIDENCE),
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
)
MATCHES: Layout[Match] = Layout(
    plural="similar documents",
    as_json=_match_object,
    csv_columns=_MATCH_COLUMNS,
    csv_rows=_just(_match_row),
    table_columns=_MATCH_COLUMNS,
    table_row=_match_row,
    shorten=("title",),
)
