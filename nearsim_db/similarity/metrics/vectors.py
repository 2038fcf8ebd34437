"""Exact similarity of vectors: cosine, and Euclidean distance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.metrics import weighted
from nearsim_db.similarity.metrics.contract import Scores
from nearsim_db.similarity.sketch.kernels import Counts


class Cosine:
    """x.y / (|x| |y|), in [-1, 1]: 1 for vectors of one direction, 0 for those that share no feature."""

    name = "cosine"
    weighted = True
    signed = True

    def compare(
        self, features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None
    ) -> Scores:
        """Compute the cosines to 12 decimals; see `Metric.compare`."""
        compared = weighted.compare(features, left, right, backend)
        products = compared.sums.products
        return Scores(weighted.rounded(_ratio(products, compared.squares[left], compared.squares[right])))

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Compare to 12 decimals; see `Metric.reaches`."""
        return weighted.reach_mask(scores.similarity, threshold)

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return the threshold itself."""
        return threshold


def _ratio(
    products: NDArray[np.float64], left: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Divide dot products by the root of the product of squared lengths: exactly 1 for a vector and itself."""
    # Two roots where the product could leave the range of float64.
    lengths = np.sqrt(left) * np.sqrt(right)
    product = left * right
    within = (product > 1e-280) & (product < 1e280)
    lengths[within] = np.sqrt(product[within])
    ratios: NDArray[np.float64] = np.clip(products / lengths, -1, 1)
    return ratios


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
        squares = weighted.compare(features, left, right, backend).sums.squares
        distance = weighted.rounded(np.sqrt(squares))
        return Scores(1 / (1 + distance), distance=distance)

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Compare distances to 12 decimals, or similarities where only these are known, as in an estimate."""
        if scores.distance is None:
            return weighted.reach_mask(scores.similarity, self.similarity_at_threshold(threshold))
        reached: NDArray[np.bool_] = scores.distance <= round(threshold, weighted.DECIMALS)
        return reached

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return 1 / (1 + threshold)."""
        return 1 / (1 + threshold)
