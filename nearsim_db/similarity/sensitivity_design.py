"""The design of a family of functions: the fewest bands and rows that have a wanted sensitivity.

One banding is enough where the two distances are far apart. Where they are close, bandings are nested: the pairs that
share a band of the inner banding agree in one function of the outer one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.amplification import (
    MAX_COUNT,
    Amplification,
    Sensitivity,
    and_,
    banding,
    or_,
    upper_tail,
)
from nearsim_db.similarity.arrays import Floats

# More nested bandings separate closer distances; each adds an "or" and an "and" to the construction.
_MAX_NESTED_BANDINGS = 3
# Above this many functions another banding is nested, which then needs far fewer.
_MANY_FUNCTIONS = 1_000_000
# The counts that are tried for an inner banding: all small ones, and larger ones in steps of about 1 %.
_INNER_BANDS = np.unique(np.concatenate((np.arange(1, 129), np.geomspace(129, 4096, 300).round())))
_INNER_ROWS = np.arange(1, 65)
_MAX_OUTER_ROWS = 256
# Of a middle banding fewer counts are tried, since they are combined with each of the best inner bandings.
_MIDDLE_BANDS = np.unique(np.geomspace(1, 512, 40).round())
_MIDDLE_ROWS = np.unique(np.geomspace(1, 32, 16).round())
# Inner bandings with which nearly no near pair or nearly every far pair agrees are of no use to the outer banding,
# nor are those that cost more functions for a separation that is hardly wider.
_MIN_PROBABILITY = 1e-6
_MIN_GAIN = 1.002


def design(
    wanted: Sensitivity, agreement: Callable[[float], float] = lambda distance: 1 - distance
) -> Amplification:
    """Return a construction at least as sensitive as `wanted`.

    It is the banding of the fewest bands, and for these the fewest rows, where one banding has the sensitivity; else
    two or three nested bandings, with the fewest functions among the counts that are tried.

    `agreement` maps a distance to the probability that one function agrees; by default it is 1 - distance, as for
    MinHash and the Jaccard distance. Raises RecipeError if the request is out of range, or if three nested bandings of
    at most 65,536 bands and rows do not reach it.
    """
    near, far = agreement(wanted.near_distance), agreement(wanted.far_distance)
    _check(wanted, near, far)

    single = _single_banding(wanted, near, far)
    if single is not None:
        return single

    inner = _base_function(near, far)
    for depth in range(2, _MAX_NESTED_BANDINGS + 1):
        tried = (_INNER_BANDS, _INNER_ROWS) if depth == 2 else (_MIDDLE_BANDS, _MIDDLE_ROWS)
        inner = _most_separating(_nest(inner, *tried))
        nested = _outer_banding(wanted, inner)
        if nested is not None and (depth == _MAX_NESTED_BANDINGS or nested.functions <= _MANY_FUNCTIONS):
            return nested

    raise RecipeError(
        f"no {_MAX_NESTED_BANDINGS} nested bandings of at most {MAX_COUNT:,} bands and rows have a probability of at "
        f"least {wanted.near_probability:g} at the distance {wanted.near_distance:g} and at most "
        f"{wanted.far_probability:g} at {wanted.far_distance:g}; choose distances further apart, or probabilities "
        "closer together"
    )


def _check(wanted: Sensitivity, near: float, far: float) -> None:
    """Raise RecipeError if no construction reaches `wanted` whose functions agree with probability `near` and `far`."""
    if not (0 <= wanted.near_distance < wanted.far_distance and 0 <= far <= near <= 1):
        raise RecipeError(
            f"distances of {wanted.near_distance:g} and {wanted.far_distance:g} are out of range; choose distances of "
            "the metric, for Jaccard in 0..1, the near one smaller than the far one"
        )
    if not 0 <= wanted.far_probability < wanted.near_probability <= 1:
        raise RecipeError(
            f"probabilities of {wanted.near_probability:g} near and {wanted.far_probability:g} far are out of range; "
            "choose them in 0..1, the near one larger than the far one"
        )
    if wanted.near_probability == 1 and near < 1:
        raise RecipeError("no banding finds pairs at a distance above 0 with certainty; choose less than 1")
    if wanted.far_probability == 0 and far > 0:
        raise RecipeError("no banding excludes pairs on which functions may agree; choose more than 0")


def _single_banding(wanted: Sensitivity, near: float, far: float) -> Amplification | None:
    """Return the banding of the fewest bands, and then of the fewest rows, or None if there is none."""
    bands = rows = 1
    # More rows need more bands, so that each step of either rules out all smaller counts.
    while max(bands, rows) <= MAX_COUNT:
        if upper_tail(1, bands, near**rows) < wanted.near_probability:
            bands += 1
        elif upper_tail(1, bands, far**rows) > wanted.far_probability:
            rows += 1
        else:
            return banding(bands, rows)
    return None


@dataclass(frozen=True, slots=True)
class _Constructions:
    """Alternatives for the inner part of a nested construction, each array of the same length."""

    near: Floats  # the probability that near pairs agree
    far: Floats  # the probability that far pairs agree
    functions: Floats  # the number of base functions
    bands: NDArray[np.int64]  # of the outermost banding
    rows: NDArray[np.int64]  # of the outermost banding
    inner: (
        "_Constructions | None"  # what the rows of the outermost banding consist of, None for base functions
    )
    inner_index: NDArray[np.int64]  # which of `inner`

    def amplification(self, index: int) -> Amplification | None:
        """Return the construction at an index, None for a base function."""
        if self.inner is None:
            return None
        rows = self.inner.amplification(int(self.inner_index[index]))
        return or_(int(self.bands[index]), and_(int(self.rows[index]), rows))

    def select(self, indexes: NDArray[np.intp]) -> "_Constructions":
        """Return the constructions at these indexes."""
        return _Constructions(
            self.near[indexes],
            self.far[indexes],
            self.functions[indexes],
            self.bands[indexes],
            self.rows[indexes],
            self.inner,
            self.inner_index[indexes],
        )


def _base_function(near: float, far: float) -> _Constructions:
    nothing = np.zeros(1, np.int64)
    return _Constructions(np.array([near]), np.array([far]), np.ones(1), nothing, nothing, None, nothing)


def _nest(inner: _Constructions, band_counts: Floats, row_counts: Floats) -> _Constructions:
    """Return each of the inner constructions in a banding of each of these counts."""
    grid = np.meshgrid(np.arange(len(inner.near)), band_counts, row_counts, indexing="ij")
    indexes, bands, rows = (axis.ravel().astype(np.int64) for axis in grid)
    return _Constructions(
        _banded(inner.near[indexes], bands, rows),
        _banded(inner.far[indexes], bands, rows),
        inner.functions[indexes] * bands * rows,
        bands,
        rows,
        inner,
        indexes,
    )


def _banded(agreement: Floats, bands: NDArray[np.int64], rows: NDArray[np.int64]) -> Floats:
    """Return the probability of a shared band: 1 - (1 - p^r)^b."""
    with np.errstate(divide="ignore"):  # log(0) is minus infinity where the functions always agree
        shared: Floats = -np.expm1(bands * np.log1p(-(agreement**rows)))
    return shared


def _outer_banding(wanted: Sensitivity, inner: _Constructions) -> Amplification | None:
    """Return the construction of the fewest functions: one of `inner` in a banding that reaches `wanted`, or None."""
    fewest, best = math.inf, None
    for rows in range(1, _MAX_OUTER_ROWS + 1):
        near = inner.near**rows

        # The fewest bands that find near pairs; dividing by 0 gives infinity where none do.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bands = np.ceil(np.log1p(-wanted.near_probability) / np.log1p(-near))
            bands = np.where(near >= wanted.near_probability, 1, bands)
        is_possible = (bands >= 1) & (bands <= MAX_COUNT)
        bands = np.where(is_possible, bands, 1).astype(np.int64)

        is_possible &= _banded(inner.far, bands, np.full_like(bands, rows)) <= wanted.far_probability
        functions = np.where(is_possible, inner.functions * bands * rows, math.inf)
        index = int(np.argmin(functions))
        if functions[index] < fewest:
            fewest = functions[index]
            best = or_(int(bands[index]), and_(rows, inner.amplification(index)))
    return best


def _most_separating(constructions: _Constructions) -> _Constructions:
    """Return the constructions for which no other has fewer functions and separates near from far pairs about as well.

    The separation is the difference of the log-odds of the two probabilities. Only constructions with similar
    probabilities are compared, because the next banding needs them in a certain range.
    """
    near, far = constructions.near, constructions.far
    is_usable = (
        (near > _MIN_PROBABILITY) & (far < 1 - _MIN_PROBABILITY) & (far > 0) & (near < 1) & (near > far)
    )
    usable = np.flatnonzero(is_usable)
    near_odds = np.log(near[usable]) - np.log1p(-near[usable])
    far_odds = np.log(far[usable]) - np.log1p(-far[usable])
    separation = near_odds - far_odds
    # Quarters of the log-odds halfway between the two.
    classes = np.round((near_odds + far_odds) * 2).astype(np.int64)

    # By class, then by the number of functions; each that is kept separates better than those before it in its class.
    order = np.lexsort((-separation, constructions.functions[usable], classes))
    widest: dict[int, float] = {}
    kept = []
    for index in order.tolist():
        if separation[index] > widest.get(int(classes[index]), 0.0) * _MIN_GAIN:
            widest[int(classes[index])] = float(separation[index])
            kept.append(usable[index])
    return constructions.select(np.array(kept, np.intp))
