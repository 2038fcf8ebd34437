"""Pairs that a person has labelled, and which threshold tells them apart best."""

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.tune.distinct import Floats

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

    Raises InputError where it cannot be read or lacks a column.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(
                    f"{path} has no column {' and '.join(missing)}; the first line must name id_a, id_b and label"
                )
            return _read((reader.line_num, row) for row in reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the labels {path} cannot be read: {error}") from error


def _read(rows: Iterable[tuple[int, Mapping[str, str | None]]]) -> Labels:
    labels = Labels()
    for number, row in rows:
        left, right, label = ((row[name] or "").strip() for name in _COLUMNS)
        meaning = _MEANINGS.get(label.casefold())
        reason = None
        if not left or not right:
            reason = "an id is missing"
        elif left == right:
            reason = "both ids are the same"
        elif meaning is None:
            reason = f"the label {label!r} is neither 1/0, yes/no, true/false nor duplicate/distinct"
        if reason is None and meaning is not None:
            labels.pairs.append((left, right, meaning))
            continue
        labels.bad += 1
        if len(labels.reasons) < _KEPT_REASONS:
            labels.reasons.append(f"line {number:,}: {reason}")
    return labels


@dataclass(frozen=True, slots=True)
class Point:
    """Precision, recall and F1 of calling pairs duplicates from a similarity on."""

    threshold: float
    precision: float
    recall: float
    f1: float


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
