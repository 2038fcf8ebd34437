"""Exact weighted Jaccard similarity: the sum of the smaller weights over the sum of the larger ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.similarity.metrics import weighing
from nearsim_db.similarity.metrics.contract import Scores
from nearsim_db.similarity.sketch.kernels import Counts


class WeightedJaccard:
    """The sum of min(x, y) over the sum of max(x, y), of weights above 0 (Ruzicka 1958; Ioffe 2010).

    In [0, 1], and the Jaccard similarity where all weights are 1. A document with a weight below 0 has no features
    under this metric. Where weights are whole numbers both sums are exact: 7 of 10 reaches 0.7.
    """

    name = "weighted_jaccard"
    weighted = True
    signed = False

    def compare(
        self, features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None
    ) -> Scores:
        """The ratio, to 12 decimals; see `Metric.compare`."""
        sums = weighing.compare(features, left, right, backend).sums
        return Scores(weighing.rounded(sums.least / sums.most))

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """KnownPairs on 12 decimals; see `Metric.reaches`."""
        return weighing.reach_mask(scores.similarity, threshold)

    def similarity_at_threshold(self, threshold: float) -> float:
        """The threshold itself."""
        return threshold


def weighted_jaccard(left: weighing.Weighted, right: weighing.Weighted) -> float:
    """The weighted Jaccard similarity of two vectors or arrays of `FEATURE`, in [0, 1]; NaN if both are empty.

    Raises InputError for a weight below 0, of which the ratio says nothing.
    """
    one, other = weighing.as_features(left), weighing.as_features(right)
    if (one["weight"] < 0).any() or (other["weight"] < 0).any():
        raise InputError(
            "weighted Jaccard compares weights of 0 and more; take cosine for vectors with signs"
        )
    sums = weighing.compare_two(one, other).sums
    return float(sums.least[0] / sums.most[0]) if sums.most[0] else float("nan")
