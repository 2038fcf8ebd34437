"""Numbers that characterise a curve."""

from dataclasses import dataclass

from nearsim_db.analysis.curves.curve import Curve
from nearsim_db.similarity import lsh
from nearsim_db.similarity.lsh import Bin, ErrorAreas

_HALVINGS = 60  # of the axis: beyond the precision of a double


@dataclass(frozen=True, slots=True)
class Measures:
    """The steepest point of a curve, and its errors at a threshold.

    `approximate_steepest` is (1/b)^(1/r) for b bands of r rows, otherwise None. `fixed_point` is the point of the axis
    where the construction leaves the probability of agreement unchanged, None if there is none. `found` is the
    probability at the threshold, `areas` those of false negatives and false positives, both None without a threshold.
    """

    steepest: float
    approximate_steepest: float | None
    fixed_point: float | None
    found: float | None
    areas: ErrorAreas | None


def measure(curve: Curve, threshold: float | None) -> Measures:
    """Measure a curve; points and areas are in the unit of its axis."""
    construction = curve.amplification
    is_banding = construction.min_shared_bands == 1
    is_plain = curve.threshold is None and is_banding
    bands, rows = construction.bands, construction.rows
    return Measures(
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
    """Return the point where the curve is as high as the construction's fixed probability of agreement."""
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
    """Return the error areas; on a distance axis, pairs to find lie left of the threshold."""
    whole = [Bin(curve.low, curve.high, curve.high - curve.low)]
    areas = lsh.error_areas(lambda at: _rising(curve, at), threshold, whole)
    return ErrorAreas(areas.false_positives, areas.false_negatives) if curve.is_falling else areas
