"""A named S-curve, the metric of its axis, and the numbers that characterise it."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from nearsim_db.errors import RecipeError, count_of
from nearsim_db.similarity import lsh
from nearsim_db.similarity.lsh import Amplification, Bin, ErrorAreas
from nearsim_db.similarity.metrics import METRICS
from nearsim_db.similarity.profile import Profile, make_family

_BANDS = re.compile(r"\s*([0-9]{1,5})\s*[xX×]\s*([0-9]{1,5})\s*(?:@\s*([0-9]{1,5})\s*)?")
_THRESHOLDS_SHOWN = 5  # distances are unbounded: the axis ends at this multiple of the threshold


@dataclass(frozen=True, slots=True)
class Curve:
    """The probability that a pair becomes a candidate, by its similarity or distance from `low` to `high`.

    `metric` is jaccard, weighted_jaccard, cosine or euclidean; `threshold` is that of a profile, None for bare
    bands or an amplification, whose axis is the probability that one function agrees: Jaccard similarity for minhash.
    """

    name: str
    amplification: Amplification
    probability: Callable[[float], float]
    metric: str = "jaccard"
    low: float = 0.0
    high: float = 1.0
    threshold: float | None = None

    @property
    def is_falling(self) -> bool:
        """Whether the axis is a distance."""
        return self.metric == "euclidean"

    def sensitivity(self, near: float, far: float) -> lsh.Sensitivity:
        """Return the sensitivity at two distances: 1 - Jaccard similarity, degrees for cosines, or Euclidean.

        Raises RecipeError unless they are distances of the metric and `near` is smaller.
        """
        most = {"cosine": 180.0, "euclidean": math.inf}.get(self.metric, 1.0)
        if not (0 <= near < far <= most and math.isfinite(far)):
            raise RecipeError(
                f"distances of {near:g} and {far:g} are out of range; choose them in 0..{most:g}, the near one smaller "
                "than the far one"
            )
        return lsh.Sensitivity.of(near, far, lambda distance: self.probability(self._place(distance)))

    def _place(self, distance: float) -> float:
        match self.metric:
            case "euclidean":
                return distance
            case "cosine":
                return math.cos(math.radians(distance))
            case _:
                return 1 - distance


def of_text(text: str, min_shared_bands: int = 1) -> Curve:
    """Parse bands x rows such as 25x2, 25x2@3 for 3 required bands, or an amplification.

    `min_shared_bands` applies to bands x rows without @. Raises RecipeError for any other text.
    """
    found = _BANDS.fullmatch(text)
    if found is not None:
        bands, rows, minimum = int(found[1]), int(found[2]), int(found[3] or min_shared_bands)
        if not (1 <= minimum <= bands and rows >= 1):
            raise RecipeError(
                f"{text}: at least {minimum} of {count_of(bands, 'band')} of {count_of(rows, 'row')} is out of range; "
                "give at least 1 row, and require at most as many bands as there are"
            )
        construction = lsh.banding(bands, rows, minimum)
    elif text.lstrip()[:1].isdigit():
        raise RecipeError(
            f"{text!r} is not a curve; give bands x rows such as 25x2, 25x2@3 to require 3 shared bands, or an "
            'amplification such as "or(4, and(4))"'
        )
    else:
        construction = lsh.parse(text)
    return Curve(" ".join(text.split()), construction, construction.probability)


def of_profile(name: str, profile: Profile) -> Curve:
    """Return the curve of a profile over the similarity or distance of its metric."""
    metric, threshold = METRICS[make_family(profile.recipe, "numpy").metric], profile.recipe.match.threshold
    curve = Curve(name, profile.amplification, profile.match_probability, metric.name, threshold=threshold)
    if metric.name == "euclidean":
        by_distance = _by_distance(profile)
        high = _THRESHOLDS_SHOWN * threshold
        return Curve(name, curve.amplification, by_distance, metric.name, 0.0, high, threshold)
    if metric.name == "cosine" and profile.recipe.sketch.input == "vector":
        return Curve(name, curve.amplification, curve.probability, metric.name, -1.0, 1.0, threshold)
    return curve


def _by_distance(profile: Profile) -> Callable[[float], float]:
    return lambda distance: profile.match_probability(1 / (1 + distance))


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
