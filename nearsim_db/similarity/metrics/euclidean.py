"""Exact Euclidean distance, and the similarity that is made of it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.metrics import weighing
from nearsim_db.similarity.metrics.contract import Scores
from nearsim_db.similarity.sketch.kernels import Counts


class Euclidean:
    """The root of the summed squared differences, 0 or more; similarity is 1 / (1 + distance).

    A recipe's threshold is the largest distance.
    """

    name = "euclidean"
    weighted = True
    signed = True

    def compare(
        self, features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None
    ) -> Scores:
        """The distance, to 12 decimals, and the similarity, in (0, 1]; see `Metric.compare`."""
        squares = weighing.compare(features, left, right, backend).sums.squares
        distance = weighing.rounded(np.sqrt(squares))
        return Scores(1 / (1 + distance), distance=distance)

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """KnownPairs on 12 decimals of the distance; of the similarity where only that is known, as of an estimate."""
        if scores.distance is None:
            return weighing.reach_mask(scores.similarity, self.similarity_at_threshold(threshold))
        reached: NDArray[np.bool_] = scores.distance <= round(threshold, weighing.DECIMALS)
        return reached

    def similarity_at_threshold(self, threshold: float) -> float:
        """1 / (1 + threshold)."""
        return 1 / (1 + threshold)


def euclidean(left: weighing.Weighted, right: weighing.Weighted) -> float:
    """The Euclidean distance of two vectors or arrays of `FEATURE`, 0 or more.

    A shorter vector is as good as filled up with zeros. Numbers whose squares float64 cannot hold, above 1e150 or below
    1e-150, must be scaled first.
    """
    return math.sqrt(weighing.compare_two(left, right).sums.squares[0])
