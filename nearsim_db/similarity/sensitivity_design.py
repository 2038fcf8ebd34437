"""Design of bands and rows for a wanted sensitivity (d1, d2, p1, p2), with as few functions as possible.

If the two distances are far apart, a single banding is enough. If they are close, bandings are nested: a pair that
shares a band of the inner banding agrees in one function of the outer banding.
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

# More nested bandings separate closer distances. Each adds an "or" and an "and" to the construction.
_MAX_NESTED_BANDINGS = 3
# If a construction needs more functions than this, another banding is nested, which then needs far fewer functions.
_MAX_FUNCTIONS_OF_TWO_BANDINGS = 1_000_000
# The counts that are tried for an inner banding: all small counts, and larger counts in steps of about 1 %.
_INNER_BANDS = np.unique(np.concatenate((np.arange(1, 129), np.geomspace(129, 4096, 300).round())))
_INNER_ROWS = np.arange(1, 65)
_MAX_OUTER_ROWS = 256
# Fewer counts are tried for a middle banding, because each is combined with all of the best inner bandings.
_MIDDLE_BANDS = np.unique(np.geomspace(1, 512, 40).round())
_MIDDLE_ROWS = np.unique(np.geomspace(1, 32, 16).round())
# An inner banding is useless if almost no near pair agrees, or almost every far pair agrees.
_MIN_PROBABILITY = 1e-6
# An inner banding with more functions must improve the separation by at least this factor.
_MIN_GAIN = 1.002


def design(
    wanted: Sensitivity, agreement: Callable[[float], float] = lambda distance: 1 - distance
) -> Amplification:
    """Return a construction whose sensitivity is at least `wanted`.

    If a single banding is enough, the result is the banding with the fewest bands, and then the fewest rows. Otherwise
    it is a construction of two or three nested bandings, with the fewest functions among the counts that are tried.

    `agreement` maps a distance to the probability that one function agrees. The default, 1 - distance, is that of
    MinHash at a Jaccard distance. Raises RecipeError if `wanted` is out of range, or if three nested bandings of at
    most 65,536 bands and rows do not reach it.
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
        if nested is not None and (
            depth == _MAX_NESTED_BANDINGS or nested.functions <= _MAX_FUNCTIONS_OF_TWO_BANDINGS
        ):
            return nested

    raise RecipeError(
        f"no {_MAX_NESTED_BANDINGS} nested bandings of at most {MAX_COUNT:,} bands and rows have a probability of at "
        f"least {wanted.near_probability:g} at the distance {wanted.near_distance:g} and at most "
        f"{wanted.far_probability:g} at {wanted.far_distance:g}; choose distances further apart, or probabilities "
        "closer together"
    )


def _check(wanted: Sensitivity, near: float, far: float) -> None:
    """Raise RecipeError if `wanted` is out of range, or if no construction can reach it.

    `near` and `far` are the probabilities that one function agrees at the near and at the far distance.
    """
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
    """Return the banding with the fewest bands, and then the fewest rows, or None if none reaches `wanted`."""
    bands = rows = 1
    # More rows always need more bands. So when a step raises the bands or the rows, all smaller counts are ruled out.
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
    """Alternatives for the inner part of a nested construction. All arrays have the same length."""

    near: Floats  # the probability that near pairs agree
    far: Floats  # the probability that far pairs agree
    functions: Floats  # the number of base functions
    bands: NDArray[np.int64]  # the bands of the outermost banding
    rows: NDArray[np.int64]  # the rows of the outermost banding
    # The alternatives for a row of the outermost banding, or None if it is a base function.
    inner: "_Constructions | None"
    inner_index: NDArray[np.int64]  # which of `inner` a row is

    def amplification(self, index: int) -> Amplification | None:
        """Return the construction at an index, or None for a base function."""
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
    """Return all combinations of an inner construction, a number of bands and a number of rows."""
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
    """Return the probability that a pair shares a band: 1 - (1 - p^r)^b."""
    with np.errstate(divide="ignore"):  # log(0) is minus infinity where the functions always agree
        shared: Floats = -np.expm1(bands * np.log1p(-(agreement**rows)))
    return shared


def _outer_banding(wanted: Sensitivity, inner: _Constructions) -> Amplification | None:
    """Return the construction with the fewest functions that reaches `wanted`, or None if there is none.

    It is a banding whose rows are one of the `inner` constructions.
    """
    fewest, best = math.inf, None
    for rows in range(1, _MAX_OUTER_ROWS + 1):
        near = inner.near**rows

        # The fewest bands that find near pairs; if no number of bands finds them, division by 0 gives infinity.
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
    """Return the best constructions: any other has more functions, or separates near from far pairs less well.

    The separation is the difference of the log-odds of the two probabilities. Only constructions with similar
    probabilities are compared, because the next banding needs probabilities in a certain range.
    """
    near, far = constructions.near, constructions.far
    is_usable = (
        (near > _MIN_PROBABILITY) & (far < 1 - _MIN_PROBABILITY) & (far > 0) & (near < 1) & (near > far)
    )
    usable = np.flatnonzero(is_usable)
    near_odds = np.log(near[usable]) - np.log1p(-near[usable])
    far_odds = np.log(far[usable]) - np.log1p(-far[usable])
    separation = near_odds - far_odds
    # Constructions are in the same class if the mean of their two log-odds is the same to a quarter.
    classes = np.round((near_odds + far_odds) * 2).astype(np.int64)

    # Go through each class by the number of functions, and keep constructions that separate better than those before.
    order = np.lexsort((-separation, constructions.functions[usable], classes))
    widest: dict[int, float] = {}
    kept = []
    for index in order.tolist():
        if separation[index] > widest.get(int(classes[index]), 0.0) * _MIN_GAIN:
            widest[int(classes[index])] = float(separation[index])
            kept.append(usable[index])
    return constructions.select(np.array(kept, np.intp))
