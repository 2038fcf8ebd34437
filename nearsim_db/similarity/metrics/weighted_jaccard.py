"""Exact weighted Jaccard similarity: the sum of the smaller weights over the sum of the larger ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.similarity.metrics import weighted_features
from nearsim_db.similarity.metrics.contract import Scores
from nearsim_db.similarity.sketch.kernels import Counts


class WeightedJaccard:
    """The sum of min(x, y) over the sum of max(x, y), for positive weights (Ruzicka 1958; Ioffe 2010).

    In [0, 1]; equal to the Jaccard similarity if all weights are 1. A document with a negative weight has no
    features under this metric. With integer weights both sums are exact: 7 of 10 reaches 0.7.
    """

    name = "weighted_jaccard"
    weighted = True
    signed = False

    def compare(
        self, features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None
    ) -> Scores:
        """Compute the ratios to 12 decimals; see `Metric.compare`."""
        sums = weighted_features.compare(features, left, right, backend).sums
        return Scores(weighted_features.rounded(sums.least / sums.most))

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Compare to 12 decimals; see `Metric.reaches`."""
        return weighted_features.reach_mask(scores.similarity, threshold)

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return the threshold itself."""
        return threshold


def weighted_jaccard(left: weighted_features.Weighted, right: weighted_features.Weighted) -> float:
    """Return the weighted Jaccard similarity of two vectors or arrays of `FEATURE`, in [0, 1]; NaN if both are
    empty.

    Raises InputError for a negative weight, for which the ratio is meaningless.
    """
    one, other = weighted_features.as_features(left), weighted_features.as_features(right)
    if (one["weight"] < 0).any() or (other["weight"] < 0).any():
        raise InputError(
            "weighted Jaccard requires weights of 0 or more; use cosine for vectors with negative numbers"
        )
    sums = weighted_features.compare_two(one, other).sums
    return float(sums.least[0] / sums.most[0]) if sums.most[0] else float("nan")
