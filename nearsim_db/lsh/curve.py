"""The S-curve: the probability that a pair shares enough bands, as a function of its similarity."""

import math

from nearsim_db.errors import RecipeError


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
