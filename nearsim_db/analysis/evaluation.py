"""Evaluation by labelled pairs: how well an index agrees with the labels, and which threshold would agree best.

`evaluate` compares the pairs and clusters of a live index with labels. `estimate` takes the decisions of a review, and
estimates the precision at today's threshold and a threshold with a better F1.
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

    cluster: int | None  # of the left document; if it is in no cluster, of the right document
    left: str
    right: str
    duplicate: bool  # whether the label says that the two are duplicates
    is_pair: bool  # whether the index has the pair
    same_cluster: bool  # whether the index has both documents in one cluster
    similarity: float | None  # None if no pair is stored


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Precision, recall and F1 of the pairs and of the clusters of a profile, measured by labelled pairs."""

    profile: str
    threshold: float  # the profile's, as a similarity
    duplicates: int  # pairs that are labelled duplicate
    distinct: int  # pairs that are labelled distinct
    pairs: Point  # if the index's pairs are called duplicates
    clusters: Point  # if all documents of a cluster are called duplicates of each other
    accept_all: Point  # if every labelled pair is called a duplicate
    # Of the labelled pairs whose similarity is stored: from `match.review` or the threshold on
    bands: list[Band]
    unknown: int  # labelled pairs that name a document that the index lacks
    bad_lines: int  # unusable lines of the labels
    first_reasons: list[str]  # why the first unusable lines and unknown pairs are left out
    disagreements: list[Disagreement]  # ordered by cluster


def find_disagreements(
    stored_pairs: Sequence[StoredPair], labelled: PairLabels
) -> list[tuple[Disagreement, StoredPair]]:
    """Return the labelled pairs whose label differs from the index, ordered by cluster.

    `stored_pairs` has what the index stores for each labelled pair, in the order of the labels. Pairs with a document
    that is not indexed are left out.
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
    """Score the live index of a profile by labels. Raises InputError if the index has no labelled pair of documents."""
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

    No threshold is suggested if there are fewer than `MIN_DECISIONS` decisions, or if all decisions are the same. A
    threshold below today's is suggested only if pairs below today's threshold were judged. F1 is measured on the pairs
    that can be drawn for review.
    """

    judged: int  # decisions at or above today's threshold
    below: int  # decisions below today's threshold
    precision: float | None  # None without a decision at or above today's threshold
    low: float  # lower end of the interval
    high: float  # upper end of the interval
    missing: int  # about how many decisions are still needed: `MIN_DECISIONS` in all, and an interval of +-5 points
    f1: float | None  # at today's threshold
    suggested: float | None  # the threshold with the best expected F1
    suggested_f1: float | None  # at the suggested threshold


def estimate(decisions: Sequence[tuple[float, bool, float]], threshold: float) -> ThresholdEstimate:
    """Estimate the precision at a threshold, and a better threshold, from the decisions of a review.

    Each decision has the similarity of a pair, whether its two documents are the same, and the probability with which
    the pair was drawn. A pair is weighted by the inverse of this probability (Hajek's estimator). The interval is
    Wilson's (1927), with Kish's effective sample size (sum of weights)^2 / sum of squared weights.
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
    """Return Wilson's 95 % interval of a fraction that was observed in a sample of `size` items."""
    z = _NORMAL_QUANTILE
    centre = share + z**2 / (2 * size)
    spread = z * math.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    scale = 1 + z**2 / size
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _best_threshold(similarity: np.ndarray, same: np.ndarray, weight: np.ndarray) -> float:
    """Return the threshold with the best expected F1, among the similarities rounded down to two decimals.

    The expected F1 comes from a logistic curve, fitted to the probability that a pair of some similarity is the same.
    A few decisions determine such a curve more reliably than they determine the best cut between them.
    """
    chance = _logistic(similarity, same, weight)
    # In floating point, 0.29 * 100 is slightly less than 29: without the addition, 0.29 would be rounded down to 0.28.
    candidates = np.unique(np.floor(similarity * 100 + 1e-9) / 100)
    expected = [
        2
        * (weight * chance)[similarity >= threshold].sum()
        / (weight[similarity >= threshold].sum() + (weight * chance).sum())
        for threshold in candidates
    ]
    return float(candidates[int(np.argmax(expected))])


def _logistic(similarity: np.ndarray, same: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the probability that each pair is the same.

    The model is a logistic regression with a ridge penalty (le Cessie and van Houwelingen 1992).
    """
    centre = np.average(similarity, weights=weight)
    spread = max(float(np.sqrt(np.average((similarity - centre) ** 2, weights=weight))), 1e-9)
    # Similarities are standardised, because the penalty would otherwise depend on their spread.
    rows = np.stack([np.ones_like(similarity), (similarity - centre) / spread], axis=1)
    # The intercept is not penalised.
    weight, ridge, coefficients = weight / weight.mean(), np.diag([0.0, 1.0]), np.zeros(2)

    # Newton's method converges well before this number of iterations.
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
