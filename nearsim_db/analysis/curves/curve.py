"""A named S-curve and the metric of its axis."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from nearsim_db.errors import RecipeError, count_of
from nearsim_db.similarity import lsh
from nearsim_db.similarity.lsh import Amplification
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
