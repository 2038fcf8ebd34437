"""What people's decisions on pairs say: of an index, by its pairs and by its clusters, and of a threshold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.labels import Band, Labels, Point, by_band, scored
from nearsim_db.errors import InputError
from nearsim_db.search.answers import Answers
from nearsim_db.store.query_rows import StoredPair

FEWEST = 20
_WIDEST = 0.05
_ROUNDS = 25  # of Newton's method, which converges in fewer
_Z = 1.959964  # two-sided, 95 %


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A labelled pair that an index takes for something else, by its pairs or by its clusters."""

    cluster: int | None
    left: str
    right: str
    duplicate: bool
    is_pair: bool
    same_cluster: bool
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Precision, recall and F1 of the pairs and of the clusters of a profile, with its threshold.

    `accept_all` is what calling every labelled pair a duplicate would give. `bands` are the labelled pairs whose
    similarity is stored, from the threshold or `match.review` on; `unknown` counts pairs of documents that the index
    lacks, `bad_lines` unusable lines, and `first_reasons` has the first of both. `disagreements` are by cluster.
    """

    profile: str
    threshold: float
    duplicates: int
    distinct: int
    pairs: Point
    clusters: Point
    accept_all: Point
    bands: list[Band]
    unknown: int
    bad_lines: int
    first_reasons: list[str]
    disagreements: list[Disagreement]


def find_disagreements(
    found: Sequence[StoredPair], labelled: Labels
) -> list[tuple[Disagreement, StoredPair]]:
    """Return the labelled pairs of indexed documents that an index takes for something else, by cluster."""
    differing = [
        (Disagreement(one.cluster, left, right, label, one.is_pair, one.same_cluster, one.similarity), one)
        for one, (left, right, label) in zip(found, labelled.pairs, strict=True)
        if one.is_indexed and not (label == one.is_pair == one.same_cluster)
    ]
    return sorted(
        differing, key=lambda two: (two[0].cluster is None, two[0].cluster, two[0].left, two[0].right)
    )


def evaluate(answers: Answers, labelled: Labels) -> Evaluation:
    """Score the live index of a profile. Raises InputError if no labelled pair is in it."""
    found = answers.look_up_pairs([(left, right) for left, right, _ in labelled.pairs])
    known = [(one, label) for one, (_, _, label) in zip(found, labelled.pairs, strict=True) if one.is_indexed]
    reasons = [
        f"{left} and {right} are not both in the index"
        for one, (left, right, _) in zip(found, labelled.pairs, strict=True)
        if not one.is_indexed
    ]
    if not known:
        raise InputError(
            f"none of {len(labelled.pairs):,} labelled pairs is in the index (unusable lines: {labelled.bad:,}); "
            "check the ids of the labels"
            + "".join(f"; {reason}" for reason in [*labelled.reasons, *reasons][:1])
        )
    duplicate = np.array([label for _, label in known], bool)
    similarity = np.array([np.nan if one.similarity is None else one.similarity for one, _ in known])
    stored = ~np.isnan(similarity)
    positive = int(duplicate.sum())
    profile, threshold, _ = answers.least_similarity()

    def point(called: list[bool]) -> Point:
        chosen = np.array(called, bool)
        return scored(int((chosen & duplicate).sum()), int(chosen.sum()), positive, threshold)

    return Evaluation(
        profile,
        threshold,
        positive,
        len(known) - positive,
        point([one.is_pair for one, _ in known]),
        point([one.same_cluster for one, _ in known]),
        point([True] * len(known)),
        by_band(similarity[stored], duplicate[stored]),
        len(reasons),
        labelled.bad,
        [*labelled.reasons, *reasons][:5],
        [one for one, _ in find_disagreements(found, labelled)],
    )


@dataclass(frozen=True, slots=True)
class ThresholdEstimate:
    """Precision at or above today's threshold, with its 95 % interval, and the threshold with the best expected F1.

    `judged` counts the decisions at or above the threshold, and `below` those below it. `missing` is about how many
    more are needed for an interval of at most 5 points to either side, and for `FEWEST` in all. `suggested` is None
    with fewer, or if all decisions are alike; it lies below today's threshold only if pairs there were judged. `f1` and
    `suggested_f1` are those of today's and of the suggested threshold among the pairs that can be drawn.
    """

    judged: int
    below: int
    precision: float | None
    low: float
    high: float
    missing: int
    f1: float | None
    suggested: float | None
    suggested_f1: float | None


def estimate(sampled: Sequence[tuple[float, bool, float]], threshold: float) -> ThresholdEstimate:
    """Estimate from decided pairs: similarity, whether it is the same, and inclusion probability of each.

    Each pair counts for the inverse of its probability (Hajek's estimator). The interval is Wilson's (1927) with Kish's
    effective sample size (sum of weights)^2 / sum of squared weights.
    """
    similarity = np.array([one for one, _, _ in sampled])
    same = np.array([one for _, one, _ in sampled], bool)
    weight = np.array([1 / one for _, _, one in sampled])
    above = similarity >= threshold
    judged, below = int(above.sum()), int((~above).sum())
    precision, low, high, missing = None, 0.0, 1.0, FEWEST - judged
    if judged:
        chosen = weight[above]
        precision = float(chosen[same[above]].sum() / chosen.sum())
        effective = float(chosen.sum() ** 2 / (chosen**2).sum())
        low, high = wilson(precision, effective)
        wanted = _Z**2 * max(precision * (1 - precision), 0.01) / _WIDEST**2
        missing = max(missing, math.ceil((wanted - effective) * judged / effective))
    enough = judged + below >= FEWEST and same.any() and not same.all()
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
    centre = share + _Z**2 / (2 * size)
    spread = _Z * math.sqrt(share * (1 - share) / size + _Z**2 / (4 * size**2))
    scale = 1 + _Z**2 / size
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _best_threshold(similarity: np.ndarray, same: np.ndarray, weight: np.ndarray) -> float:
    """Return the threshold with the best F1 to be expected, of the similarities rounded down to two decimals.

    Expected under a logistic curve of the share that is the same, which few decisions determine better than a step.
    """
    chance = _logistic(similarity, same, weight)
    candidates = np.unique(np.floor(similarity * 100 + 1e-9) / 100)
    expected = [
        2
        * (weight * chance)[similarity >= one].sum()
        / (weight[similarity >= one].sum() + (weight * chance).sum())
        for one in candidates
    ]
    return float(candidates[int(np.argmax(expected))])


def _logistic(similarity: np.ndarray, same: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the probability that each pair is the same, by ridge regression (le Cessie and van Houwelingen 1992)."""
    centre = np.average(similarity, weights=weight)
    spread = max(float(np.sqrt(np.average((similarity - centre) ** 2, weights=weight))), 1e-9)
    rows = np.stack([np.ones_like(similarity), (similarity - centre) / spread], axis=1)
    weight, ridge, found = weight / weight.mean(), np.diag([0.0, 1.0]), np.zeros(2)
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-rows @ found))
        gradient = rows.T @ (weight * (same - chance)) - ridge @ found
        curvature = (rows * (weight * chance * (1 - chance))[:, None]).T @ rows + ridge
        found = found + np.linalg.solve(curvature, gradient)
    return 1 / (1 + np.exp(-rows @ found))


def _f1(similarity: np.ndarray, same: np.ndarray, weight: np.ndarray, threshold: float) -> float:
    called = weight[similarity >= threshold].sum()
    hits = weight[(similarity >= threshold) & same].sum()
    return float(2 * hits / (called + weight[same].sum()))
