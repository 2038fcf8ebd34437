"""Labelled pairs, and the threshold that separates them best."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.distinct_sets import Floats
from nearsim_db.errors import InputError

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


@dataclass(slots=True)
class LabelScores:
    """Scores of labelled pairs: precision and recall by threshold, the best point, and the numbers of pairs."""

    duplicates: int
    distinct: int
    points: list[Point]
    best: Point


def precision_recall(similarity: Floats, duplicate: NDArray[np.bool_]) -> list[Point]:
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
