"""Pairs that a person has labelled, and which threshold tells them apart best."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.distinct import Floats
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
    """Labelled pairs by external id; `unknown` name documents that are not there, `bad` lines cannot be used."""

    pairs: list[tuple[str, str, bool]] = field(default_factory=list)
    bad: int = 0
    unknown: int = 0
    reasons: list[str] = field(default_factory=list)

    @property
    def ids(self) -> set[str]:
        """Of all documents that a label names."""
        return {one for left, right, _ in self.pairs for one in (left, right)}

    def keep_known(self, known: Mapping[str, object]) -> None:
        """Leave out the pairs of which a document is not known, and count them."""
        kept = [pair for pair in self.pairs if pair[0] in known and pair[1] in known]
        self.unknown += len(self.pairs) - len(kept)
        for left, right, _ in self.pairs:
            for one in (left, right):
                if one not in known and len(self.reasons) < _KEPT_REASONS:
                    self.reasons.append(f"there is no document {one!r}")
        self.pairs = kept


def read_labels(path: Path) -> Labels:
    """Read a CSV with the columns id_a, id_b and label: 1/0, yes/no, true/false, duplicate/distinct.

    Each line is taken for itself, so that a quote left open spoils no other. Raises InputError where the file cannot be
    read or lacks a column.
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
    """The labelled pairs of the lines after the header; `places` are those of the columns."""
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
    """The pair of a line, or why it cannot be used."""
    try:
        cells = _cells(line)
    except csv.Error as error:
        return f"it is no line of CSV: {error}"
    if not any(cells):
        return "it is empty"
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
    """Precision, recall and F1 of calling pairs duplicates from a similarity on."""

    threshold: float
    precision: float
    recall: float
    f1: float


@dataclass(slots=True)
class Told:
    """What labelled pairs say: points of precision and recall, the best, and how many pairs could be used."""

    duplicates: int
    distinct: int
    points: list[Point]
    best: Point


def precision_recall(similarity: Floats, duplicate: NDArray[np.bool_]) -> list[Point]:
    """A point for each similarity above 0 among the labelled pairs, the highest first; float64 and bool of m."""
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
    """The point of the highest F1, of several the one of the highest threshold; None without points."""
    return max(points, key=lambda one: (one.f1, one.threshold), default=None)


def separating(points: list[Point], chosen: Point) -> float:
    """The shortest decimal at or below the chosen similarity that is above the next lower one: it calls the same."""
    lower = max((one.threshold for one in points if one.threshold < chosen.threshold), default=0.0)
    for digits in range(1, 6):
        scale = 10.0**digits
        rounded = math.floor(chosen.threshold * scale + 1e-9) / scale
        if lower < rounded <= chosen.threshold:
            return rounded
    return chosen.threshold


def some(points: list[Point], wanted: Point | None) -> list[Point]:
    """A dozen points along the curve, the best among them, the lowest threshold first."""
    if len(points) <= _SHOWN:
        return points[::-1]
    places = {round(at) for at in np.linspace(0, len(points) - 1, _SHOWN)}
    return [one for place, one in enumerate(points) if place in places or one == wanted][::-1]
