"""The choice of bands and rows for a threshold."""

import math
from bisect import bisect_left
from dataclasses import dataclass

from nearsim_db.errors import RecipeError, count_of
from nearsim_db.similarity.lsh.curve import match_probability


@dataclass(frozen=True, slots=True)
class BandChoice:
    """A banding of a sketch, the rows it leaves unused, and its expected recall of pairs at the threshold."""

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
    """Return the most rows per band, and for these the fewest bands, whose recall at the threshold reaches `recall`.

    `base` is the probability that two documents at the threshold agree in one position: for Jaccard, the
    threshold itself. `threshold` is the value that error messages show if it differs from `base`. More rows
    mean fewer candidates; each band costs a row of a document's index. There are at most k // rows and
    `max_bands` bands. Raises RecipeError if one row per band does not reach the recall.
    """
    _check(base, recall)
    for rows in range(k, 0, -1):
        most = min(k // rows, max_bands)
        if match_probability(base, most, rows, min_shared_bands) >= recall:
            return _fewest_bands(k, base, rows, recall, min_shared_bands, most)
    best = match_probability(base, min(k, max_bands), 1, min_shared_bands)
    raise RecipeError(
        f"no banding of a sketch of k = {k} reaches a recall of {recall} at the threshold "
        f"{_shown_threshold(base, threshold)} with {count_of(min_shared_bands, 'shared band')}: one row per band gives "
        f"{_shown_recall(best, recall)}; raise sketch.k or match.threshold, or lower bands.recall or "
        "match.min_shared_bands"
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
    """Return the fewest bands of one row whose expected recall of pairs at the threshold reaches `recall`.

    `base` and `threshold` are as in `choose_bands`. For sketches without positions, whose bands are single ids:
    there, fewer bands mean fewer candidates. Raises RecipeError if all k values do not reach the recall.
    """
    _check(base, recall)
    most = min(k, max_bands)
    best = match_probability(base, most, 1, min_shared_bands)
    if best >= recall:
        return _fewest_bands(k, base, 1, recall, min_shared_bands, most)
    raise RecipeError(
        f"no number of bands of one id of a sketch of k = {k} reaches a recall of {recall} at the threshold "
        f"{_shown_threshold(base, threshold)} with {count_of(min_shared_bands, 'shared band')}: {most} give "
        f"{_shown_recall(best, recall)}; raise sketch.k or match.threshold, or lower bands.recall or "
        "match.min_shared_bands"
    )


def _fewest_bands(
    k: int, base: float, rows: int, recall: float, min_shared_bands: int, most: int
) -> BandChoice:
    """Return the fewest bands of so many rows that reach the recall, as `most` of them do."""

    def expected(bands: int) -> float:
        return match_probability(base, bands, rows, min_shared_bands)

    counts = range(min_shared_bands, most)
    bands = min_shared_bands + bisect_left(counts, recall, key=expected)
    return BandChoice(bands, rows, k - bands * rows, expected(bands))


def _shown_recall(best: float, recall: float) -> str:
    """Format the best recall with enough digits to show that it is lower than the requested one."""
    return next(
        text for digits in range(4, 17) if float(text := f"{best:.{digits}f}") < recall or digits == 16
    )


def _shown_threshold(base: float, threshold: float | None) -> float:
    return base if threshold is None else threshold


def _check(base: float, recall: float) -> None:
    if not 0 < base <= 1:
        raise RecipeError(f"a threshold of {base} is out of range; choose one above 0 and at most 1")
    if not 0 < recall < 1:
        raise RecipeError(f"a recall of {recall} is out of range; choose one above 0 and below 1")


def pick_bands(threshold: float, k: int) -> int:
    """Return the number of bands by RiskIQ's rule: the smallest b with b ln b >= -k ln threshold.

    Each band then has k // b rows. Raises RecipeError if that would leave a band without rows.
    """
    if not 0 < threshold <= 1:
        raise RecipeError(f"a threshold of {threshold} is out of range; choose one above 0 and at most 1")
    target = -k * math.log(threshold)
    for bands in range(1, k + 1):
        if bands * math.log(bands) >= target:
            return bands
    raise RecipeError(
        f"a threshold of {threshold} needs more than {k} bands, but the sketch has {k} positions; "
        "raise sketch.k or the threshold"
    )
