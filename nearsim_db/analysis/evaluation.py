"""Evaluation by labelled pairs: how well an index agrees with them, and which threshold would agree best.

`evaluate` compares the pairs and clusters of a live index with labels; `estimate` computes the precision at a threshold
and a better threshold from decisions made in a review.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.labels import Band, PairLabels, Point, by_band, scored
from nearsim_db.errors import InputError
from nearsim_db.search.answers import Answers
from nearsim_db.store.query_rows import StoredPair

MIN_DECISIONS = 20
_MAX_HALF_WIDTH = 0.05
_NEWTON_ITERATIONS = 25
# Quantile of the normal distribution for two-sided intervals of 95 %.
_NORMAL_QUANTILE = 1.959964


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A labelled pair whose label differs from the pairs or the clusters of an index."""

    cluster: int | None  # of the left document, or of the right one if the left one has none
    left: str
    right: str
    duplicate: bool  # the label
    is_pair: bool
    same_cluster: bool
    similarity: float | None  # None if no pair is stored


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Precision, recall and F1 of the pairs and of the clusters of a profile, with its threshold."""

    profile: str
    threshold: float
    duplicates: int
    distinct: int
    pairs: Point
    clusters: Point
    accept_all: Point  # if every labelled pair were called a duplicate
    bands: list[Band]  # labelled pairs whose similarity is stored, from the threshold or `match.review` on
    unknown: int  # pairs of documents that the index lacks
    bad_lines: int  # unusable lines of the labels
    first_reasons: list[str]  # the first unusable lines and unknown pairs
    disagreements: list[Disagreement]  # by cluster


def find_disagreements(
    stored_pairs: Sequence[StoredPair], labelled: PairLabels
) -> list[tuple[Disagreement, StoredPair]]:
    """Return the labelled pairs of indexed documents whose label differs from the index, by cluster.

    `stored_pairs` are in the order of the labels.
    """
    differing = [
        (
            Disagreement(pair.cluster, left, right, label, pair.is_pair, pair.same_cluster, pair.similarity),
            pair,
        )
        for pair, (left, right, label) in zip(stored_pairs, labelled.pairs, strict=True)
        if pair.is_indexed and not (label == pair.is_pair == pair.same_cluster)
    ]

    def place(entry: tuple[Disagreement, StoredPair]) -> tuple[bool, int | None, str, str]:
        # None cannot be compared with a number: pairs without a cluster come last.
        disagreement, _ = entry
        return disagreement.cluster is None, disagreement.cluster, disagreement.left, disagreement.right

    return sorted(differing, key=place)


def evaluate(answers: Answers, labelled: PairLabels) -> Evaluation:
    """Score the live index of a profile. Raises InputError if no labelled pair is in it."""
    stored_pairs = answers.look_up_pairs([(left, right) for left, right, _ in labelled.pairs])
    indexed = [
        (pair, label)
        for pair, (_, _, label) in zip(stored_pairs, labelled.pairs, strict=True)
        if pair.is_indexed
    ]
    reasons = [
        f"{left} and {right} are not both in the index"
        for pair, (left, right, _) in zip(stored_pairs, labelled.pairs, strict=True)
        if not pair.is_indexed
    ]
    if not indexed:
        raise InputError(
            f"none of {len(labelled.pairs):,} labelled pairs is in the index (unusable lines: {labelled.bad:,}); "
            "check the ids of the labels"
            + "".join(f"; {reason}" for reason in [*labelled.reasons, *reasons][:1])
        )

    duplicate = np.array([label for _, label in indexed], bool)
    similarity = np.array([np.nan if pair.similarity is None else pair.similarity for pair, _ in indexed])
    is_stored = ~np.isnan(similarity)
    duplicates = int(duplicate.sum())
    profile, threshold, _ = answers.least_similarity()

    def point(called_duplicates: list[bool]) -> Point:
        called = np.array(called_duplicates, bool)
        return scored(int((called & duplicate).sum()), int(called.sum()), duplicates, threshold)

    return Evaluation(
        profile,
        threshold,
        duplicates,
        len(indexed) - duplicates,
        point([pair.is_pair for pair, _ in indexed]),
        point([pair.same_cluster for pair, _ in indexed]),
        point([True] * len(indexed)),
        by_band(similarity[is_stored], duplicate[is_stored]),
        len(reasons),
        labelled.bad,
        [*labelled.reasons, *reasons][:5],
        [disagreement for disagreement, _ in find_disagreements(stored_pairs, labelled)],
    )


@dataclass(frozen=True, slots=True)
class ThresholdEstimate:
    """Precision at or above today's threshold, with its 95 % interval, and the threshold with the best expected F1.

    No threshold is suggested with fewer than `MIN_DECISIONS` decisions, or if all are alike; the suggested one is below
    today's only if pairs there were judged. F1 is of the pairs that can be drawn for review.
    """

    judged: int  # decisions at or above the threshold
    below: int  # decisions below it
    precision: float | None  # None without a decision at or above the threshold
    low: float
    high: float
    missing: int  # about how many more decisions an interval of 5 points to either side needs, at least `MIN_DECISIONS`
    f1: float | None  # at today's threshold
    suggested: float | None
    suggested_f1: float | None


def estimate(decisions: Sequence[tuple[float, bool, float]], threshold: float) -> ThresholdEstimate:
    """Estimate from decided pairs: the similarity, whether both are the same, and the inclusion probability of each.

    Each pair counts for the inverse of its probability (Hajek's estimator). The interval is Wilson's (1927) with Kish's
    effective sample size (sum of weights)^2 / sum of squared weights.
    """
    similarity = np.array([similarity for similarity, _, _ in decisions])
    same = np.array([is_same for _, is_same, _ in decisions], bool)
    weight = np.array([1 / probability for _, _, probability in decisions])
    above = similarity >= threshold
    judged, below = int(above.sum()), int((~above).sum())

    precision, low, high, missing = None, 0.0, 1.0, MIN_DECISIONS - judged
    if judged:
        weight_above = weight[above]
        precision = float(weight_above[same[above]].sum() / weight_above.sum())
        effective = float(weight_above.sum() ** 2 / (weight_above**2).sum())
        low, high = wilson(precision, effective)
        needed = _NORMAL_QUANTILE**2 * max(precision * (1 - precision), 0.01) / _MAX_HALF_WIDTH**2
        missing = max(missing, math.ceil((needed - effective) * judged / effective))

    enough = judged + below >= MIN_DECISIONS and same.any() and not same.all()
    best = _best_threshold(similarity, same, weight) if enough else None
    return ThresholdEstimate(
        judged,
        below,
        precision,
        low,
        high,
        max(missing, 0),
        _f1(similarity, same, weight, threshold) if enough else None,
        best,
        None if best is None else _f1(similarity, same, weight, best),
    )


def wilson(share: float, size: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share that was observed in a sample of some size."""
    z = _NORMAL_QUANTILE
    centre = share + z**2 / (2 * size)
    spread = z * math.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    scale = 1 + z**2 / size
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _best_threshold(similarity: np.ndarray, same: np.ndarray, weight: np.ndarray) -> float:
    """Return the threshold with the best expected F1, among the similarities rounded down to two decimals.

    F1 is expected under a logistic curve of the share of same pairs: a few decisions determine a curve better than a
    step.
    """
    chance = _logistic(similarity, same, weight)
    # The margin keeps 0.29, which is slightly less in binary, from becoming 0.28.
    candidates = np.unique(np.floor(similarity * 100 + 1e-9) / 100)
    expected = [
        2
        * (weight * chance)[similarity >= threshold].sum()
        / (weight[similarity >= threshold].sum() + (weight * chance).sum())
        for threshold in candidates
    ]
    return float(candidates[int(np.argmax(expected))])


def _logistic(similarity: np.ndarray, same: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the probability that each pair is the same, by ridge regression (le Cessie and van Houwelingen 1992)."""
    centre = np.average(similarity, weights=weight)
    spread = max(float(np.sqrt(np.average((similarity - centre) ** 2, weights=weight))), 1e-9)
    # Standardised, so that the penalty does not depend on the spread of the similarities.
    rows = np.stack([np.ones_like(similarity), (similarity - centre) / spread], axis=1)
    # The intercept is not penalised.
    weight, ridge, coefficients = weight / weight.mean(), np.diag([0.0, 1.0]), np.zeros(2)

    # Newton's method converges in fewer iterations.
    for _ in range(_NEWTON_ITERATIONS):
        chance = 1 / (1 + np.exp(-rows @ coefficients))
        gradient = rows.T @ (weight * (same - chance)) - ridge @ coefficients
        curvature = (rows * (weight * chance * (1 - chance))[:, None]).T @ rows + ridge
        coefficients = coefficients + np.linalg.solve(curvature, gradient)
    return 1 / (1 + np.exp(-rows @ coefficients))


def _f1(similarity: np.ndarray, same: np.ndarray, weight: np.ndarray, threshold: float) -> float:
    called = weight[similarity >= threshold].sum()
    hits = weight[(similarity >= threshold) & same].sum()
    return float(2 * hits / (called + weight[same].sum()))
