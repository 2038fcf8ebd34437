"""What is to be said of a curve in numbers."""

from dataclasses import dataclass

from nearsim_db.analysis.curves.curve import Curve
from nearsim_db.similarity import lsh
from nearsim_db.similarity.lsh import Bin, ErrorAreas

_HALVINGS = 60  # of the axis: more than a double can tell apart


@dataclass(frozen=True, slots=True)
class Figures:
    """Where a curve is steepest, and what it gets wrong at a threshold.

    `approximate_steepest` is (1/b)^(1/r), for any of b bands of r rows, else None. `fixed_point` is where on the axis
    the construction leaves the probability of agreement as it is, None where that is nowhere. `found` and `areas` are
    None without a threshold: the probability right at it, and the areas of false negatives and false positives.
    """

    steepest: float
    approximate_steepest: float | None
    fixed_point: float | None
    found: float | None
    areas: ErrorAreas | None


def measure(curve: Curve, threshold: float | None) -> Figures:
    """The figures of a curve, places and areas in the unit of its axis."""
    construction = curve.amplification
    is_banding = construction.min_shared_bands == 1
    is_plain = curve.threshold is None and is_banding
    bands, rows = construction.bands, construction.rows
    return Figures(
        lsh.steepest_point(bands, rows) if is_plain else _steepest(curve),
        lsh.approximate_steepest_point(bands, rows) if is_banding and curve.metric == "jaccard" else None,
        _fixed_point(curve),
        None if threshold is None else curve.probability(threshold),
        None if threshold is None else _areas(curve, threshold),
    )


def _rising(curve: Curve, at: float) -> float:
    probability = curve.probability(at)
    return 1 - probability if curve.is_falling else probability


def _steepest(curve: Curve) -> float:
    return lsh.steepest(lambda at: _rising(curve, at), curve.low, curve.high)


def _fixed_point(curve: Curve) -> float | None:
    """There the construction makes the same of a probability of agreement, which so is the height of the curve."""
    found = lsh.fixed_point(curve.amplification)
    if found is None or curve.metric in ("jaccard", "weighted_jaccard"):
        return found
    height = 1 - found if curve.is_falling else found
    low, high = curve.low, curve.high
    if not _rising(curve, low) <= height <= _rising(curve, high):
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _rising(curve, middle) < height else (low, middle)
    return (low + high) / 2


def _areas(curve: Curve, threshold: float) -> ErrorAreas:
    """By distance what should be found lies left of the threshold, and not right of it."""
    whole = [Bin(curve.low, curve.high, curve.high - curve.low)]
    areas = lsh.error_areas(lambda at: _rising(curve, at), threshold, whole)
    return ErrorAreas(areas.false_positives, areas.false_negatives) if curve.is_falling else areas
