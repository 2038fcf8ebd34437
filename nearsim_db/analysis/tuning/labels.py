"""Labelled pairs, how well similarities separate them, and the threshold that does it best."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
_KEPT_REASONS = 5
_SHOWN = 12


@dataclass(slots=True)
class Labels:
    """Labelled pairs by external id; `unknown` counts pairs of unknown documents, `bad` invalid lines."""

    pairs: list[tuple[str, str, bool]] = field(default_factory=list)
    bad: int = 0
    unknown: int = 0
    reasons: list[str] = field(default_factory=list)

    @property
    def ids(self) -> set[str]:
        """External ids of all labelled documents."""
        return {one for left, right, _ in self.pairs for one in (left, right)}

    def keep_known(self, known: Mapping[str, object]) -> None:
        """Remove and count the pairs that name an unknown document."""
        kept = [pair for pair in self.pairs if pair[0] in known and pair[1] in known]
        self.unknown += len(self.pairs) - len(kept)
        for left, right, _ in self.pairs:
            for one in (left, right):
                if one not in known and len(self.reasons) < _KEPT_REASONS:
                    self.reasons.append(f"there is no document {one!r}")
        self.pairs = kept


def read_labels(path: Path) -> Labels:
    """Read a CSV with the columns id_a, id_b and label: 1/0, yes/no, true/false, duplicate/distinct.

    Lines are parsed one by one, so that an unbalanced quote affects only its own. Raises InputError if the file cannot
    be read or lacks a column.
    """
    try:
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
    """Write labelled pairs as `read_labels` reads them; the file is complete or as it was."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows((left, right, int(is_same)) for left, right, is_same in pairs)
    with open_output(path) as stream:
        stream.write(written.getvalue().encode())


def _cells(line: str) -> list[str]:
    cells = next(csv.reader([line], strict=True), [])
    return [cell.strip() for cell in cells]


def _read(lines: Iterable[str], places: Sequence[int]) -> Labels:
    """Read the lines after the header; `places` are the column indexes."""
    labels = Labels()
    for number, line in enumerate(lines, 2):
        found = _pair(line, places)
        if not isinstance(found, str):
            labels.pairs.append(found)
            continue
        labels.bad += 1
        if len(labels.reasons) < _KEPT_REASONS:
            labels.reasons.append(f"line {number:,}: {found}")
    return labels


def _pair(line: str, places: Sequence[int]) -> tuple[str, str, bool] | str:
    """Parse a line into a pair, or return the reason why it is invalid."""
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
    meaning = _MEANINGS.get(label.casefold())
    if meaning is None:
        return f"the label {label!r} is neither 1/0, yes/no, true/false nor duplicate/distinct"
    return left, right, meaning


@dataclass(frozen=True, slots=True)
class Point:
    """Precision, recall and F1 of classifying pairs as duplicates at or above a threshold."""

    threshold: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Band:
    """Labelled pairs with a similarity from `low` to below `high`: their number, and the share of duplicates."""

    low: float
    high: float
    pairs: int
    precision: float


_LEAST_YOUDEN = 0.1
_DEVIATIONS = 1.96  # of the area under the curve, 95 % of the cases


@dataclass(slots=True)
class LabelScores:
    """Scores of labelled pairs: precision and recall by threshold, the best point, and the numbers of pairs.

    `best` has the highest F1 or, if a precision is asked for, the highest recall with it. `auc` is the probability that
    a duplicate pair is more similar than a distinct one, ties counting half; `accept_all` what calling every pair a
    duplicate would give; `at` what a given threshold gives, None without one.
    """

    duplicates: int
    distinct: int
    points: list[Point]
    best: Point
    auc: float
    bands: list[Band]
    at: Point | None = None

    @property
    def accept_all(self) -> Point:
        """Precision, recall and F1 of calling every labelled pair a duplicate."""
        share = self.duplicates / (self.duplicates + self.distinct)
        return Point(0.0, share, 1.0, 2 * share / (1 + share))

    @property
    def separate(self) -> bool:
        """Whether similarities tell the labels apart: the area under the curve is above 1/2 beyond its standard error
        (Hanley and McNeil 1982), and the best point has a Youden index of 0.1 or more.
        """
        auc, duplicates, distinct = self.auc, self.duplicates, self.distinct
        above, below = auc / (2 - auc), 2 * auc * auc / (1 + auc)
        variance = auc * (1 - auc) + (duplicates - 1) * (above - auc**2) + (distinct - 1) * (below - auc**2)
        error = math.sqrt(max(variance, 0) / (duplicates * distinct))
        hits = self.best.recall * duplicates
        false = hits / self.best.precision - hits if self.best.precision else 0.0
        return auc - _DEVIATIONS * error > 0.5 and self.best.recall - false / distinct >= _LEAST_YOUDEN


def score(
    similarity: Floats, duplicate: Mask, precision: float | None = None, threshold: float | None = None
) -> LabelScores:
    """Score labelled pairs of both kinds, float64 and bool of m; see `LabelScores`."""
    points = precision_recall(similarity, duplicate)
    chosen = best(points) if precision is None else reaching(points, precision)
    at = None
    if threshold is not None:
        called = similarity >= threshold - 1e-12
        at = scored(int((called & duplicate).sum()), int(called.sum()), int(duplicate.sum()), threshold)
    positive = int(duplicate.sum())
    nothing = Point(1.0, 0.0, 0.0, 0.0)
    return LabelScores(
        *(positive, len(duplicate) - positive, points, chosen or nothing),
        *(area_under_curve(similarity, duplicate), by_band(similarity, duplicate), at),
    )


def scored(hits: int, called: int, duplicates: int, threshold: float) -> Point:
    """Return the point of `called` pairs, of which `hits` are among the duplicates; 0 where nothing is counted."""
    return Point(
        threshold,
        hits / called if called else 0.0,
        hits / duplicates if duplicates else 0.0,
        2 * hits / (called + duplicates) if called + duplicates else 0.0,
    )


def area_under_curve(similarity: Floats, duplicate: Mask) -> float:
    """Return the probability that a duplicate pair is more similar than a distinct one, ties counting half."""
    own, others = np.sort(similarity[duplicate]), np.sort(similarity[~duplicate])
    if not len(own) or not len(others):
        return 0.5
    below = np.searchsorted(others, own, "left") + np.searchsorted(others, own, "right")
    return float(below.sum() / 2 / (len(own) * len(others)))


def by_band(similarity: Floats, duplicate: Mask) -> list[Band]:
    """Return the labelled pairs by tenths of similarity, those without pairs left out."""
    tenth = np.minimum(np.floor(similarity * 10 + 1e-9), 9).astype(np.int64)
    return [
        Band(at / 10, (at + 1) / 10, int(inside.sum()), float(duplicate[inside].mean()))
        for at in range(10)
        if (inside := tenth == at).any()
    ]


def reaching(points: list[Point], precision: float) -> Point | None:
    """Return the point of the lowest threshold, so of the highest recall, that has a precision; None if none has."""
    return min(
        (one for one in points if one.precision >= precision), key=lambda one: one.threshold, default=None
    )


def precision_recall(similarity: Floats, duplicate: Mask) -> list[Point]:
    """Return a point per distinct similarity above 0, highest first; the arrays are float64 and bool of m."""
    order = np.argsort(-similarity, kind="stable")
    ordered, right = similarity[order], np.cumsum(duplicate[order])
    last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.zeros(0, bool)
    total = int(duplicate.sum())
    points = []
    for place in np.flatnonzero(last & (ordered > 0)).tolist():
        hits, called = int(right[place]), place + 1
        recall = hits / total if total else 0.0
        points.append(Point(float(ordered[place]), hits / called, recall, 2 * hits / (called + total)))
    return points


def best(points: list[Point]) -> Point | None:
    """Return the point with the highest F1, and of equal ones the highest threshold; None without points."""
    return max(points, key=lambda one: (one.f1, one.threshold), default=None)


def separating(points: list[Point], chosen: Point) -> float:
    """Round the chosen threshold down to as few decimals as possible without changing how any pair is classified."""
    lower = max((one.threshold for one in points if one.threshold < chosen.threshold), default=0.0)
    for digits in range(1, 6):
        scale = 10.0**digits
        rounded = math.floor(chosen.threshold * scale + 1e-9) / scale
        if lower < rounded <= chosen.threshold:
            return rounded
    return chosen.threshold


def thin_out(points: list[Point], wanted: Point | None) -> list[Point]:
    """Return about a dozen points along the curve, including `wanted`, lowest threshold first."""
    if len(points) <= _SHOWN:
        return points[::-1]
    places = {round(at) for at in np.linspace(0, len(points) - 1, _SHOWN)}
    return [one for place, one in enumerate(points) if place in places or one == wanted][::-1]
