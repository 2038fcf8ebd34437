"""Choosing bands and rows for a threshold."""

import math
from dataclasses import dataclass

from nearsim_db.errors import RecipeError, count_of
from nearsim_db.similarity.lsh.curve import match_probability


@dataclass(frozen=True, slots=True)
class BandChoice:
    """How a sketch is cut, what is left over, and the recall expected of pairs at the threshold."""

    bands: int
    rows: int
    unused_rows: int
    expected_recall: float


def choose_bands(
    k: int,
    base: float,
    recall: float,
    min_shared_bands: int = 1,
    max_bands: int = 256,
    *,
    threshold: float | None = None,
) -> BandChoice:
    """The most rows per band whose expected recall of pairs at the threshold reaches `recall`.

    `base` is the probability that two documents at the threshold agree in one position, for Jaccard the threshold
    itself; where it is not, `threshold` is what a refusal names.
    More rows mean fewer candidates. With r rows there are min(k // r, max_bands) bands.
    Raises RecipeError if even one row per band does not reach the recall.
    """
    _check(base, recall)
    for rows in range(k, 0, -1):
        bands = min(k // rows, max_bands)
        expected = match_probability(base, bands, rows, min_shared_bands)
        if expected >= recall:
            return BandChoice(bands, rows, k - bands * rows, expected)
    best = match_probability(base, min(k, max_bands), 1, min_shared_bands)
    raise RecipeError(
        f"no bands of a sketch of k = {k} reach a recall of {recall} at the threshold {_named(base, threshold)} with "
        f"{count_of(min_shared_bands, 'shared band')}: one row per band gives {_shown(best, recall)}; "
        "take a larger k, a higher threshold, a lower recall or fewer shared bands"
    )


def choose_keys(
    k: int,
    base: float,
    recall: float,
    min_shared_bands: int = 1,
    max_bands: int = 256,
    *,
    threshold: float | None = None,
) -> BandChoice:
    """The fewest bands of one row whose expected recall of pairs at the threshold reaches `recall`.

    `base` and `threshold` are as for `choose_bands`.
    For sketches without positions, whose bands are single ids: there fewer bands mean fewer candidates.
    Raises RecipeError if all k values do not reach the recall.
    """
    _check(base, recall)
    most = min(k, max_bands)
    for bands in range(min_shared_bands, most + 1):
        expected = match_probability(base, bands, 1, min_shared_bands)
        if expected >= recall:
            return BandChoice(bands, 1, k - bands, expected)
    best = match_probability(base, most, 1, min_shared_bands)
    raise RecipeError(
        f"no number of single ids of a sketch of k = {k} reaches a recall of {recall} at the threshold "
        f"{_named(base, threshold)} with {count_of(min_shared_bands, 'shared band')}: {most} give "
        f"{_shown(best, recall)}; take a larger k, a higher threshold, a lower recall or fewer shared bands"
    )


def _shown(best: float, recall: float) -> str:
    """With so many digits that it can be seen to be less."""
    return next(
        text for digits in range(4, 17) if float(text := f"{best:.{digits}f}") < recall or digits == 16
    )


def _named(base: float, threshold: float | None) -> float:
    return base if threshold is None else threshold


def _check(base: float, recall: float) -> None:
    if not 0 < base <= 1:
        raise RecipeError(f"a threshold of {base} is impossible; choose one above 0 and at most 1")
    if not 0 < recall < 1:
        raise RecipeError(f"a recall of {recall} is impossible; choose one above 0 and below 1")


def pick_bands(threshold: float, k: int) -> int:
    """The bands that RiskIQ's rule gives: the least b with b ln b >= -k ln threshold.

    Each band then has k // b rows. Raises RecipeError if that would leave a band without rows.
    """
    if not 0 < threshold <= 1:
        raise RecipeError(f"a threshold of {threshold} is impossible; choose one above 0 and at most 1")
    target = -k * math.log(threshold)
    for bands in range(1, k + 1):
        if bands * math.log(bands) >= target:
            return bands
    raise RecipeError(f"the threshold {threshold} needs more than {k} bands of a sketch of {k} positions")
