"""The S-curve: the probability that a pair becomes a candidate, as a function of its similarity."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.lsh.amplification import Amplification

_PANELS = 64  # of a whole curve, each integrated exactly up to degree 63
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_STEPS = 512


def match_probability(similarity: float, bands: int, rows: int, min_shared_bands: int = 1) -> float:
    """Return the probability that a pair of this similarity shares at least `min_shared_bands` bands.

    A band of r rows is shared with probability p = s^r, and the count is binomial: the sum over i of C(b, i)
    p^i (1 - p)^(b - i). With a minimum of 1 that is 1 - (1 - s^r)^b (Leskovec, Rajaraman, Ullman: Mining of
    Massive Datasets, section 3.4).
    """
    _check(bands, rows)
    if not 0 <= similarity <= 1:
        raise RecipeError(f"a similarity of {similarity} is outside 0..1")
    if min_shared_bands < 1:
        raise RecipeError(f"a minimum of {min_shared_bands} shared bands is out of range; choose 1 or more")
    # Not binomial.at_least: where a recall is met exactly, rounding decides which bands an existing index has.
    shared = similarity**rows
    tail = math.fsum(
        math.comb(bands, count) * shared**count * (1 - shared) ** (bands - count)
        for count in range(min_shared_bands, bands + 1)
    )
    return min(tail, 1.0)


def steepest_point(bands: int, rows: int) -> float:
    """Return the similarity where 1 - (1 - s^r)^b rises fastest: ((r - 1) / (b r - 1))^(1 / r).

    One band rises fastest at 1, several bands of one row at 0. One band of one row is a straight line: 1.0.
    """
    _check(bands, rows)
    if bands == 1:
        return 1.0
    return float(((rows - 1) / (bands * rows - 1)) ** (1 / rows))


def approximate_steepest_point(bands: int, rows: int) -> float:
    """Return the usual approximation of the steepest point, good for large b and r: (1 / b)^(1 / r)."""
    _check(bands, rows)
    return float((1 / bands) ** (1 / rows))


def steepest(curve: Callable[[float], float], low: float = 0.0, high: float = 1.0) -> float:
    """Return where a curve rises fastest between two similarities, to about three digits; the first of several."""
    for _ in range(2):
        points = np.linspace(low, high, _STEPS + 1)
        rises = np.diff([curve(point) for point in points.tolist()])
        at = int(np.argmax(rises))
        low, high = float(points[max(at - 1, 0)]), float(points[min(at + 2, _STEPS)])
    return float(points[at] + points[at + 1]) / 2


def fixed_point(amplification: Amplification) -> float | None:
    """Return the probability strictly between 0 and 1 that a construction leaves unchanged.

    Smaller probabilities fall and larger ones rise. It exists, and is unique, where no single function can
    accept or reject a pair (Moore and Shannon: Reliable circuits using less reliable relays, 1956); else None,
    also where the construction changes no probability.
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
    """The number or share of pairs with a similarity from `low` to `high`, spread evenly."""

    low: float
    high: float
    weight: float


UNIFORM = (Bin(0.0, 1.0, 1.0),)


@dataclass(frozen=True, slots=True)
class ErrorAreas:
    """The errors of a curve at a threshold, in the weights of the bins.

    `false_negatives` is the area above the curve from the threshold on, `false_positives` the area below it
    before the threshold.
    """

    false_negatives: float
    false_positives: float


def error_areas(
    curve: Callable[[float], float], threshold: float, histogram: Sequence[Bin] = UNIFORM
) -> ErrorAreas:
    """Return the areas between an S-curve and the step function that it approximates, by numerical integration.

    Without a histogram all similarities in 0..1 weigh equally, so areas are at most 1. With one, each bin has
    its weight: pairs at or above the threshold that do not become candidates, and pairs below it that do.
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
    edges = np.linspace(low, high, max(1, round(_PANELS * min(high - low, 1))) + 1)
    middles, halves = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    points = middles[:, None] + halves[:, None] * _NODES
    values = np.array([function(point) for point in points.ravel().tolist()]).reshape(points.shape)
    return float((values @ _WEIGHTS) @ halves)


def similarities_around(similarity: float) -> list[float]:
    """Return similarities in steps of 0.05 from 0.25 below one to 0.25 above it, within 0..1."""
    steps = (round(similarity + step * 0.05, 10) for step in range(-5, 6))
    return [step for step in steps if 0 <= step <= 1]


def _check(bands: int, rows: int) -> None:
    if bands < 1 or rows < 1:
        raise RecipeError(f"{bands} bands of {rows} rows are out of range; both must be 1 or more")
