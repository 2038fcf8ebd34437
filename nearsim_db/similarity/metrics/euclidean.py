"""Exact Euclidean distance, and the similarity derived from it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.metrics import weighted_features
from nearsim_db.similarity.metrics.contract import Scores
from nearsim_db.similarity.sketch.kernels import Counts


class Euclidean:
    """The root of the summed squared differences, 0 or more; the similarity is 1 / (1 + distance).

    A recipe's threshold is the largest distance of a pair.
    """

    name = "euclidean"
    weighted = True
    signed = True

    def compare(
        self, features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None
    ) -> Scores:
        """Compute the distances to 12 decimals, and the similarities, in (0, 1]; see `Metric.compare`."""
        squares = weighted_features.compare(features, left, right, backend).sums.squares
        distance = weighted_features.rounded(np.sqrt(squares))
        return Scores(1 / (1 + distance), distance=distance)

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Compare distances to 12 decimals, or similarities where only these are known, as in an estimate."""
        if scores.distance is None:
            return weighted_features.reach_mask(scores.similarity, self.similarity_at_threshold(threshold))
        reached: NDArray[np.bool_] = scores.distance <= round(threshold, weighted_features.DECIMALS)
        return reached

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return 1 / (1 + threshold)."""
        return 1 / (1 + threshold)


def euclidean(left: weighted_features.Weighted, right: weighted_features.Weighted) -> float:
    """Return the Euclidean distance of two vectors or arrays of `FEATURE`, 0 or more.

    A shorter vector is padded with zeros. Scale numbers whose squares float64 cannot represent (above 1e150 or
    below 1e-150) first.
    """
    return math.sqrt(weighted_features.compare_two(left, right).sums.squares[0])
