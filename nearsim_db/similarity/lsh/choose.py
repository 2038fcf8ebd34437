"""The choice of bands and rows for a threshold."""

import math
from bisect import bisect_left

from nearsim_db.errors import RecipeError, count_of
from nearsim_db.similarity.lsh import binomial
from nearsim_db.similarity.lsh.amplification import MAX_COUNT, Amplification, Sensitivity, banding
from nearsim_db.similarity.lsh.curve import match_probability

_MOST_BANDS = 256


def choose_bands(
    k: int,
    base: float,
    recall: float,
    min_shared_bands: int = 1,
    *,
    threshold: float | None = None,
) -> Amplification:
    """Return the most rows per band, and for these the fewest bands, whose recall at the threshold reaches `recall`.

    `base` is the probability that two documents at the threshold agree in one position: for Jaccard, the
    threshold itself. `threshold` is the value that error messages show if it differs from `base`. More rows
    mean fewer candidates; each band costs a row of a document's index. There are at most k // rows and
    256 bands. Raises RecipeError if one row per band does not reach the recall.
    """
    _check(base, recall)
    for rows in range(k, 0, -1):
        most = min(k // rows, _MOST_BANDS)
        if match_probability(base, most, rows, min_shared_bands) >= recall:
            return _fewest_bands(base, rows, recall, min_shared_bands, most)
    best = match_probability(base, min(k, _MOST_BANDS), 1, min_shared_bands)
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
    *,
    threshold: float | None = None,
) -> Amplification:
    """Return the fewest bands of one row whose expected recall of pairs at the threshold reaches `recall`.

    `base` and `threshold` are as in `choose_bands`. For sketches without positions, whose bands are single ids:
    there, fewer bands mean fewer candidates. Raises RecipeError if all k values do not reach the recall.
    """
    _check(base, recall)
    most = min(k, _MOST_BANDS)
    best = match_probability(base, most, 1, min_shared_bands)
    if best >= recall:
        return _fewest_bands(base, 1, recall, min_shared_bands, most)
    raise RecipeError(
        f"no number of bands of one id of a sketch of k = {k} reaches a recall of {recall} at the threshold "
        f"{_shown_threshold(base, threshold)} with {count_of(min_shared_bands, 'shared band')}: {most} give "
        f"{_shown_recall(best, recall)}; raise sketch.k or match.threshold, or lower bands.recall or "
        "match.min_shared_bands"
    )


def _fewest_bands(base: float, rows: int, recall: float, min_shared_bands: int, most: int) -> Amplification:
    """Return the fewest bands of so many rows that reach the recall, as `most` of them do."""

    def expected(bands: int) -> float:
        return match_probability(base, bands, rows, min_shared_bands)

    counts = range(min_shared_bands, most)
    bands = min_shared_bands + bisect_left(counts, recall, key=expected)
    return banding(bands, rows, min_shared_bands)


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


def design_bands(wanted: Sensitivity) -> Amplification:
    """Return the fewest bands, and of these the fewest rows, that make a family at least as sensitive from MinHash.

    Distances are Jaccard. Raises RecipeError if the request is out of range or takes more than 65,536 bands or rows.
    """
    _check_sensitivity(wanted)
    near, far = 1 - wanted.near_distance, 1 - wanted.far_distance
    bands = rows = 1
    # More rows need more bands, so that each step of either rules out all smaller counts.
    while max(bands, rows) <= MAX_COUNT:
        if binomial.at_least(1, bands, near**rows) < wanted.near_probability:
            bands += 1
        elif binomial.at_least(1, bands, far**rows) > wanted.far_probability:
            rows += 1
        else:
            return banding(bands, rows)
    raise RecipeError(
        f"no banding of at most {MAX_COUNT:,} bands and rows has a probability of at least {wanted.near_probability:g} "
        f"at the distance {wanted.near_distance:g} and at most {wanted.far_probability:g} at {wanted.far_distance:g}; "
        "choose distances further apart, or probabilities closer together"
    )


def _check_sensitivity(wanted: Sensitivity) -> None:
    if not 0 <= wanted.near_distance < wanted.far_distance <= 1:
        raise RecipeError(
            f"distances of {wanted.near_distance:g} and {wanted.far_distance:g} are out of range; choose Jaccard "
            "distances in 0..1, the near one smaller than the far one"
        )
    if not 0 <= wanted.far_probability < wanted.near_probability <= 1:
        raise RecipeError(
            f"probabilities of {wanted.near_probability:g} near and {wanted.far_probability:g} far are out of range; "
            "choose them in 0..1, the near one larger than the far one"
        )
    if wanted.near_probability == 1 and wanted.near_distance > 0:
        raise RecipeError("no banding finds pairs at a distance above 0 with certainty; choose less than 1")
    if wanted.far_probability == 0 and wanted.far_distance < 1:
        raise RecipeError(
            "no banding excludes pairs at a distance below 1 with certainty; choose more than 0"
        )


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
