"""Labelled pairs: how they are read, and which threshold of similarity separates duplicate from distinct pairs best."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from nearsim_db.errors import InputError
from nearsim_db.readers.output import open_output
from nearsim_db.similarity.arrays import Floats, Mask

_COLUMNS = ("id_a", "id_b", "label")
_MEANINGS = {
    **dict.fromkeys(("1", "yes", "y", "true", "t", "duplicate", "near-duplicate"), True),
    **dict.fromkeys(("0", "no", "n", "false", "f", "distinct"), False),
}
_MAX_REASONS = 5
_SHOWN_POINTS = 12


@dataclass(slots=True)
class PairLabels:
    """Labelled pairs of documents, which are named by external id."""

    # Two ids, and whether the label says that they are duplicates.
    pairs: list[tuple[str, str, bool]] = field(default_factory=list)
    bad: int = 0  # invalid lines
    unknown: int = 0  # pairs that name a document that does not exist
    reasons: list[str] = field(default_factory=list)  # why the first unusable lines and pairs are left out

    @property
    def ids(self) -> set[str]:
        """External ids of all labelled documents."""
        return {external_id for left, right, _ in self.pairs for external_id in (left, right)}

    def keep_known(self, documents: Mapping[str, object]) -> None:
        """Remove and count the pairs that name a document whose external id is not in `documents`."""
        usable = [pair for pair in self.pairs if pair[0] in documents and pair[1] in documents]
        self.unknown += len(self.pairs) - len(usable)

        for left, right, _ in self.pairs:
            for external_id in (left, right):
                if external_id not in documents and len(self.reasons) < _MAX_REASONS:
                    self.reasons.append(f"there is no document {external_id!r}")
        self.pairs = usable


def read_labels(path: Path) -> PairLabels:
    """Read a CSV file with the columns id_a, id_b and label. A label is 1/0, yes/no, true/false or duplicate/distinct.

    Each line is parsed by itself, so an unbalanced quote spoils only one line. Raises InputError if the file cannot be
    read or lacks a column.
    """
    try:
        # Files that spreadsheets write begin with a byte order mark.
        with path.open(encoding="utf-8-sig", newline="") as stream:
            columns = _cells(next(stream, ""))
            missing = [name for name in _COLUMNS if name not in columns]
            if missing:
                raise InputError(
                    f"{path} has no column {', '.join(missing)}; the first line must name id_a, id_b and label"
                )
            return _read(stream, [columns.index(name) for name in _COLUMNS])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the labels {path} cannot be read: {error}") from error


def write_labels(path: Path, pairs: Iterable[tuple[str, str, bool]]) -> None:
    """Write labelled pairs to a file that `read_labels` can read. If this fails, the file stays as it was."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows((left, right, int(is_same)) for left, right, is_same in pairs)
    with open_output(path) as stream:
        stream.write(table.getvalue().encode())


def label_of(text: str) -> bool | None:
    """Return whether a label says that two documents are duplicates, or None if the text is not a label."""
    return _MEANINGS.get(text.strip().casefold())


def _cells(line: str) -> list[str]:
    cells = next(csv.reader([line], strict=True), [])
    return [cell.strip() for cell in cells]


def _read(lines: Iterable[str], places: Sequence[int]) -> PairLabels:
    """Read the lines after the header. `places` are the column indexes of id_a, id_b and label."""
    labels = PairLabels()
    for number, line in enumerate(lines, 2):
        pair = _pair(line, places)
        if not isinstance(pair, str):
            labels.pairs.append(pair)
            continue
        labels.bad += 1
        if len(labels.reasons) < _MAX_REASONS:
            labels.reasons.append(f"line {number:,}: {pair}")
    return labels


def _pair(line: str, places: Sequence[int]) -> tuple[str, str, bool] | str:
    """Return the pair of a line, or the reason why the line is invalid."""
    try:
        cells = _cells(line)
    except csv.Error as error:
        return f"invalid CSV: {error}"
    if not any(cells):
        return "empty line"

    left, right, label = (cells[at] if at < len(cells) else "" for at in places)
    if not left or not right:
        return "an id is missing"
    if left == right:
        return "both ids are the same"

    meaning = label_of(label)
    if meaning is None:
        return f"the label {label!r} is neither 1/0, yes/no, true/false nor duplicate/distinct"
    return left, right, meaning


@dataclass(frozen=True, slots=True)
class Point:
    """Precision, recall and F1 if all pairs at or above a threshold are called duplicates."""

    threshold: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Band:
    """The labelled pairs in a range of similarities."""

    low: float  # the range includes `low`
    high: float  # and ends before `high`
    pairs: int
    precision: float  # fraction of the pairs that are duplicates


_MIN_YOUDEN_INDEX = 0.1
# In 95 % of the cases, the area under the curve is within this number of standard errors.
_STANDARD_ERRORS = 1.96


@dataclass(slots=True)
class LabelScores:
    """How well similarities separate labelled pairs, by threshold."""

    duplicates: int  # pairs labelled duplicate
    distinct: int  # pairs labelled distinct
    points: list[Point]  # highest threshold first
    best: Point  # the point with the highest F1; if a precision is required, the highest recall with that precision
    auc: float  # probability that a duplicate pair is more similar than a distinct pair; a tie counts half
    bands: list[Band]
    at: Point | None = None  # at the proposed threshold

    @property
    def accept_all(self) -> Point:
        """Precision, recall and F1 if every labelled pair is called a duplicate."""
        share = self.duplicates / (self.duplicates + self.distinct)
        return Point(0.0, share, 1.0, 2 * share / (1 + share))

    def point_at(self, threshold: float) -> Point:
        """Return precision, recall and F1 if the labelled pairs at or above a threshold are called duplicates."""
        called = [point for point in self.points if point.threshold >= threshold - 1e-12]
        return replace(called[-1], threshold=threshold) if called else Point(threshold, 0.0, 0.0, 0.0)

    @property
    def separate(self) -> bool:
        """Whether similarities separate duplicate from distinct labels.

        The area under the curve must exceed 1/2 by 1.96 of its standard errors (Hanley and McNeil 1982), and the best
        point must have a Youden index of 0.1 or more.
        """
        auc, duplicates, distinct = self.auc, self.duplicates, self.distinct
        above, below = auc / (2 - auc), 2 * auc * auc / (1 + auc)
        variance = auc * (1 - auc) + (duplicates - 1) * (above - auc**2) + (distinct - 1) * (below - auc**2)
        error = math.sqrt(max(variance, 0) / (duplicates * distinct))
        is_above_chance = auc - _STANDARD_ERRORS * error > 0.5

        hits = self.best.recall * duplicates
        false_positives = hits / self.best.precision - hits if self.best.precision else 0.0
        return is_above_chance and self.best.recall - false_positives / distinct >= _MIN_YOUDEN_INDEX


def score(
    similarity: Floats, duplicate: Mask, precision: float | None = None, threshold: float | None = None
) -> LabelScores:
    """Score m labelled pairs, both duplicate and distinct ones: `similarity` is float64 of m, `duplicate` bool of m."""
    points = precision_recall(similarity, duplicate)
    chosen = best(points) if precision is None else reaching(points, precision)
    duplicates = int(duplicate.sum())
    scores = LabelScores(
        duplicates,
        len(duplicate) - duplicates,
        points,
        chosen or Point(1.0, 0.0, 0.0, 0.0),
        area_under_curve(similarity, duplicate),
        by_band(similarity, duplicate),
    )
    if threshold is not None:
        scores.at = scores.point_at(threshold)
    return scores


def f1_of(precision: float, recall: float) -> float:
    """Return the harmonic mean of precision and recall, 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def scored(hits: int, called: int, duplicates: int, threshold: float) -> Point:
    """Return the point at which `called` pairs are called duplicates, and `hits` of them are duplicates.

    Precision is 0 if no pair is called a duplicate, recall is 0 if there are no duplicates.
    """
    return Point(
        threshold,
        hits / called if called else 0.0,
        hits / duplicates if duplicates else 0.0,
        2 * hits / (called + duplicates) if called + duplicates else 0.0,
    )


def area_under_curve(similarity: Floats, duplicate: Mask) -> float:
    """Return the probability that a duplicate pair is more similar than a distinct pair; a tie counts half."""
    duplicates, distinct = np.sort(similarity[duplicate]), np.sort(similarity[~duplicate])
    if not len(duplicates) or not len(distinct):
        return 0.5
    # A tie counts on the right side only, so the mean of both sides counts it half.
    below = np.searchsorted(distinct, duplicates, "left") + np.searchsorted(distinct, duplicates, "right")
    return float(below.sum() / 2 / (len(duplicates) * len(distinct)))


def by_band(similarity: Floats, duplicate: Mask) -> list[Band]:
    """Count the labelled pairs in each tenth of the similarities, without empty tenths."""
    tenths = np.minimum(np.floor(similarity * 10 + 1e-9), 9).astype(np.int64)
    return [
        Band(tenth / 10, (tenth + 1) / 10, int(inside.sum()), float(duplicate[inside].mean()))
        for tenth in range(10)
        if (inside := tenths == tenth).any()
    ]


def reaching(points: list[Point], precision: float) -> Point | None:
    """Return the point with at least `precision` and the highest recall, None if no point has this precision."""
    precise = [point for point in points if point.precision >= precision]
    return min(precise, key=lambda point: point.threshold, default=None)


def precision_recall(similarity: Floats, duplicate: Mask) -> list[Point]:
    """Return a point for each distinct similarity above 0, highest first.

    `similarity` is float64 of m, `duplicate` bool of m.
    """
    order = np.argsort(-similarity, kind="stable")
    descending, hits = similarity[order], np.cumsum(duplicate[order])
    # Pairs with the same similarity are accepted together, so the sums after the last of them count.
    is_last = np.append(descending[1:] != descending[:-1], True) if len(descending) else np.zeros(0, bool)
    duplicates = int(duplicate.sum())
    return [
        scored(int(hits[place]), place + 1, duplicates, float(descending[place]))
        for place in np.flatnonzero(is_last & (descending > 0)).tolist()
    ]


def best(points: list[Point]) -> Point | None:
    """Return the point with the highest F1, None without points. If several are equal, take the highest threshold."""
    return max(points, key=lambda point: (point.f1, point.threshold), default=None)


def separating(points: Sequence[Point], chosen: Point) -> float:
    """Round the chosen threshold down to two decimals, or to more decimals if pairs would be classified otherwise."""
    lower = max((point.threshold for point in points if point.threshold < chosen.threshold), default=0.0)
    for digits in range(2, 6):
        scale = 10.0**digits
        rounded = math.floor(chosen.threshold * scale + 1e-9) / scale
        if lower < rounded <= chosen.threshold:
            return rounded
    return chosen.threshold


def thin_out(points: list[Point], chosen: Point | None) -> list[Point]:
    """Return about a dozen points along the curve and the chosen point, lowest threshold first."""
    if len(points) <= _SHOWN_POINTS:
        return points[::-1]
    places = {round(place) for place in np.linspace(0, len(points) - 1, _SHOWN_POINTS)}
    return [point for place, point in enumerate(points) if place in places or point == chosen][::-1]
