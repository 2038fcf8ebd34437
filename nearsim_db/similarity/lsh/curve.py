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
    """The probability that a pair of this similarity shares at least `min_shared_bands` bands.

    A band of r rows is shared with probability p = s^r, and the count is binomial: the sum over i of
    C(b, i) p^i (1 - p)^(b - i). With a minimum of 1 that is 1 - (1 - s^r)^b (Leskovec, Rajaraman, Ullman:
    Mining of Massive Datasets, section 3.4).
    """
    _check(bands, rows)
    if not 0 <= similarity <= 1:
        raise RecipeError(f"a similarity of {similarity} is outside 0..1")
    if min_shared_bands < 1:
        raise RecipeError(f"a minimum of {min_shared_bands} shared bands is impossible; choose 1 or more")
    # Not binomial.at_least: where a recall is met exactly, rounding decides, and bands of old indexes must stay.
    shared = similarity**rows
    tail = math.fsum(
        math.comb(bands, count) * shared**count * (1 - shared) ** (bands - count)
        for count in range(min_shared_bands, bands + 1)
    )
    return min(tail, 1.0)


def steepest_point(bands: int, rows: int) -> float:
    """The similarity where 1 - (1 - s^r)^b rises fastest: ((r - 1) / (b r - 1))^(1 / r).

    One band rises fastest at 1, several bands of one row at 0. One band of one row is a straight line: 1.0.
    """
    _check(bands, rows)
    if bands == 1:
        return 1.0
    return float(((rows - 1) / (bands * rows - 1)) ** (1 / rows))


def approximate_steepest_point(bands: int, rows: int) -> float:
    """The usual rule of thumb for the steepest point: (1 / b)^(1 / r), good for large b and r."""
    _check(bands, rows)
    return float((1 / bands) ** (1 / rows))


def steepest(curve: Callable[[float], float], low: float = 0.0, high: float = 1.0) -> float:
    """Where a curve between two similarities rises fastest, to about three digits; the first place of several."""
    for _ in range(2):
        points = np.linspace(low, high, _STEPS + 1)
        rises = np.diff([curve(point) for point in points.tolist()])
        at = int(np.argmax(rises))
        low, high = float(points[max(at - 1, 0)]), float(points[min(at + 2, _STEPS)])
    return float(points[at] + points[at + 1]) / 2


def fixed_point(amplification: Amplification) -> float | None:
    """The one probability between 0 and 1 that a construction leaves as it is: smaller ones fall, larger ones rise.

    There is one where no single function can decide for or against a pair, and never a second (Moore and Shannon:
    Reliable circuits using less reliable relays, 1956); None where there is none, or where nothing changes.
    """
    deciding_for = deciding_against = 1
    for step in amplification.levels:
        deciding_for *= step.least
        deciding_against *= step.count - step.least + 1
    if deciding_for == 1 or deciding_against == 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if amplification.probability(middle) < middle else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class Bin:
    """How many pairs, or which share of them, have a similarity from `low` to `high`, spread evenly."""

    low: float
    high: float
    weight: float


UNIFORM = (Bin(0.0, 1.0, 1.0),)


@dataclass(frozen=True, slots=True)
class ErrorAreas:
    """What a curve gets wrong at a threshold, in the weights of the bins.

    `false_negatives` lie above the curve from the threshold on, `false_positives` below it before the threshold.
    """

    false_negatives: float
    false_positives: float


def error_areas(
    curve: Callable[[float], float], threshold: float, histogram: Sequence[Bin] = UNIFORM
) -> ErrorAreas:
    """The areas between an S-curve and the step that it stands for, by numerical integration.

    Without a histogram every similarity in 0..1 counts alike, so that areas are at most 1; with one, a bin counts with
    its weight: pairs at or above the threshold that do not become candidates, and pairs below it that do.
    """
    missed = met_in_vain = 0.0
    for one in histogram:
        middle = min(max(threshold, one.low), one.high)
        density = one.weight / (one.high - one.low)
        met_in_vain += density * _integral(curve, one.low, middle)
        missed += density * _integral(lambda similarity: 1 - curve(similarity), middle, one.high)
    return ErrorAreas(missed, met_in_vain)


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    """By Gauss and Legendre, panel by panel."""
    edges = np.linspace(low, high, max(1, round(_PANELS * min(high - low, 1))) + 1)
    middles, halves = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    points = middles[:, None] + halves[:, None] * _NODES
    values = np.array([function(point) for point in points.ravel().tolist()]).reshape(points.shape)
    return float((values @ _WEIGHTS) @ halves)


def similarities_around(similarity: float) -> list[float]:
    """Similarities in steps of 0.05 from 0.25 below one to 0.25 above it, in 0..1."""
    steps = (round(similarity + step * 0.05, 10) for step in range(-5, 6))
    return [one for one in steps if 0 <= one <= 1]


def curve(bands: int, rows: int, min_shared_bands: int = 1, around: float = 0.5) -> list[tuple[float, float]]:
    """Points (similarity, probability) around a similarity."""
    return [
        (one, match_probability(one, bands, rows, min_shared_bands)) for one in similarities_around(around)
    ]


def _check(bands: int, rows: int) -> None:
    if bands < 1 or rows < 1:
        raise RecipeError(f"{bands} bands of {rows} rows are impossible; both must be 1 or more")
