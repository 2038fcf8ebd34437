"""Locality-sensitive hashing: the probability that a pair becomes a candidate, and the choice of bands and rows.

The S-curve is the probability of becoming a candidate as a function of the similarity.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.messages import count_of
from nearsim_db.similarity.amplification import Amplification, banding

# A curve from 0 to 1 is integrated in this number of panels. The rule is exact for polynomials up to degree 63.
_INTEGRATION_PANELS = 64
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_SEARCH_STEPS = 512


def match_probability(similarity: float, bands: int, rows: int, min_shared_bands: int = 1) -> float:
    """Return the probability that a pair of this similarity shares at least `min_shared_bands` bands.

    A band of r rows is shared with probability p = s^r. The number of shared bands is binomially distributed, so the
    result is the sum over i of C(b, i) p^i (1 - p)^(b - i). For a minimum of 1 the sum is 1 - (1 - s^r)^b (Leskovec,
    Rajaraman, Ullman: Mining of Massive Datasets, section 3.4).
    """
    _check_bands(bands, rows)
    if not 0 <= similarity <= 1:
        raise RecipeError(f"a similarity of {similarity} is outside 0..1")
    if min_shared_bands < 1:
        raise RecipeError(f"a minimum of {min_shared_bands} shared bands is out of range; choose 1 or more")

    # `upper_tail` must not replace this sum: it rounds differently, so a recall that is reached exactly would give
    # other bands than existing indexes have.
    shared = similarity**rows
    tail = math.fsum(
        math.comb(bands, count) * shared**count * (1 - shared) ** (bands - count)
        for count in range(min_shared_bands, bands + 1)
    )
    return min(tail, 1.0)


def steepest_point(bands: int, rows: int) -> float:
    """Return the similarity at which 1 - (1 - s^r)^b rises fastest: ((r - 1) / (b r - 1))^(1 / r).

    The curve of one band rises fastest at 1, and the curve of several bands of one row at 0. The curve of one band of
    one row is a straight line, for which the result is 1.
    """
    _check_bands(bands, rows)
    if bands == 1:
        return 1.0
    return float(((rows - 1) / (bands * rows - 1)) ** (1 / rows))


def approximate_steepest_point(bands: int, rows: int) -> float:
    """Return the usual approximation of the steepest point, (1 / b)^(1 / r), which is good for large b and r."""
    _check_bands(bands, rows)
    return float((1 / bands) ** (1 / rows))


def steepest(curve: Callable[[float], float], low: float = 0.0, high: float = 1.0) -> float:
    """Return the similarity from `low` to `high` at which a curve rises fastest, to about three digits.

    If there are several such similarities, the result is the lowest.
    """
    for _ in range(2):
        points = np.linspace(low, high, _SEARCH_STEPS + 1)
        rises = np.diff([curve(point) for point in points.tolist()])
        at = int(np.argmax(rises))
        low, high = float(points[max(at - 1, 0)]), float(points[min(at + 2, _SEARCH_STEPS)])
    return float(points[at] + points[at + 1]) / 2


def fixed_point(amplification: Amplification) -> float | None:
    """Return the probability strictly between 0 and 1 that a construction leaves unchanged, or None.

    The construction lowers smaller probabilities and raises larger ones. Exactly one such probability exists if no
    single function can accept or reject a pair (Moore and Shannon: Reliable circuits using less reliable relays, 1956).
    Otherwise the result is None, as it is for a construction that changes no probability.
    """
    needed_to_accept = needed_to_reject = 1
    for step in amplification.levels:
        needed_to_accept *= step.least
        needed_to_reject *= step.count - step.least + 1
    if needed_to_accept == 1 or needed_to_reject == 1:
        return None

    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if amplification.probability(middle) < middle else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of a histogram of similarities. The pairs of a bin are assumed to be spread evenly."""

    low: float
    high: float
    weight: float  # number or fraction of the pairs


UNIFORM = (Bin(0.0, 1.0, 1.0),)


@dataclass(frozen=True, slots=True)
class ErrorAreas:
    """The errors of a curve at a threshold, in the unit of the weights of the bins."""

    false_negatives: float  # the area above the curve from the threshold to 1
    false_positives: float  # the area below the curve from 0 to the threshold


def error_areas(
    curve: Callable[[float], float], threshold: float, histogram: Sequence[Bin] = UNIFORM
) -> ErrorAreas:
    """Return the areas between an S-curve and the step function that it approximates, by numerical integration.

    Without a histogram all similarities in 0..1 have the same weight, and areas are at most 1. With the histogram of a
    corpus, the areas are the numbers (or fractions) of two kinds of pairs: pairs at or above the threshold that do not
    become candidates, and pairs below the threshold that do.
    """
    false_negatives = false_positives = 0.0
    for bin in histogram:
        middle = min(max(threshold, bin.low), bin.high)
        density = bin.weight / (bin.high - bin.low)
        false_positives += density * _integral(curve, bin.low, middle)
        false_negatives += density * _integral(lambda similarity: 1 - curve(similarity), middle, bin.high)
    return ErrorAreas(false_negatives, false_positives)


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    """Integrate by Gauss-Legendre quadrature, panel by panel."""
    edges = np.linspace(low, high, max(1, round(_INTEGRATION_PANELS * min(high - low, 1))) + 1)
    middles, halves = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    points = middles[:, None] + halves[:, None] * _NODES
    values = np.array([function(point) for point in points.ravel().tolist()]).reshape(points.shape)
    return float((values @ _WEIGHTS) @ halves)


def similarities_around(similarity: float) -> list[float]:
    """Return the similarities from 0.25 below a similarity to 0.25 above it, in steps of 0.05, limited to 0..1."""
    steps = (round(similarity + step * 0.05, 10) for step in range(-5, 6))
    return [step for step in steps if 0 <= step <= 1]


def _check_bands(bands: int, rows: int) -> None:
    if bands < 1 or rows < 1:
        raise RecipeError(f"{bands} bands of {rows} rows are out of range; both must be 1 or more")


_MAX_BANDS = 256


def choose_bands(
    k: int,
    base: float,
    recall: float,
    min_shared_bands: int = 1,
    *,
    threshold: float | None = None,
    positional: bool = True,
) -> Amplification:
    """Return the bands with the most rows, and then the fewest bands, that reach a recall at the threshold.

    More rows per band make fewer candidates, and fewer bands take less space, because each band is a table row for
    every document. There are at most k // rows bands, and at most 256.

    `base` is the probability that two documents at the threshold agree in one position; for Jaccard it is the threshold
    itself. `threshold` is the value to show in error messages if it differs from `base`. If the family is not
    `positional`, bands are single ids. Raises RecipeError if bands of one row do not reach the recall.
    """
    _check_threshold(base)
    if not 0 < recall < 1:
        raise RecipeError(f"a recall of {recall} is out of range; choose one above 0 and below 1")

    for rows in range(k if positional else 1, 0, -1):
        max_bands = min(k // rows, _MAX_BANDS)
        best = match_probability(base, max_bands, rows, min_shared_bands)
        if best >= recall:
            return _fewest_bands(base, rows, recall, min_shared_bands, max_bands)

    bandings, gives = ("no banding", "one row per band gives")
    if not positional:
        bandings, gives = "no number of bands of one id", f"{max_bands} give"
    raise RecipeError(
        f"{bandings} of a sketch of k = {k} reaches a recall of {recall} at the threshold "
        f"{base if threshold is None else threshold} with {count_of(min_shared_bands, 'shared band')}: {gives} "
        f"{_shown_recall(best, recall)}; raise sketch.k or match.threshold, or lower bands.recall or "
        "match.min_shared_bands"
    )


def _fewest_bands(
    base: float, rows: int, recall: float, min_shared_bands: int, max_bands: int
) -> Amplification:
    """Return the fewest bands of `rows` rows that reach the recall. `max_bands` bands are known to reach it."""

    def expected(bands: int) -> float:
        return match_probability(base, bands, rows, min_shared_bands)

    counts = range(min_shared_bands, max_bands)
    bands = min_shared_bands + bisect_left(counts, recall, key=expected)
    return banding(bands, rows, min_shared_bands)


def _shown_recall(best: float, recall: float) -> str:
    """Format the best recall with enough digits to show that it is lower than the requested recall."""
    return next(
        text for digits in range(4, 17) if float(text := f"{best:.{digits}f}") < recall or digits == 16
    )


def _check_threshold(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise RecipeError(f"a threshold of {threshold} is out of range; choose one above 0 and at most 1")


def pick_bands(threshold: float, k: int) -> int:
    """Return the number of bands by RiskIQ's rule: the smallest b with b ln b >= -k ln(threshold).

    Each band then has k // b rows. Raises RecipeError if b would be larger than k, so that bands would have no rows.
    """
    _check_threshold(threshold)
    target = -k * math.log(threshold)
    for bands in range(1, k + 1):
        if bands * math.log(bands) >= target:
            return bands
    raise RecipeError(
        f"a threshold of {threshold} needs more than {k} bands, but the sketch has {k} positions; "
        "raise sketch.k or the threshold"
    )
