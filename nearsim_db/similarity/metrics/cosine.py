"""Exact cosine similarity: of the angle between two vectors, independent of their lengths."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.metrics import weighted_features
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
        compared = weighted_features.compare(features, left, right, backend)
        products = compared.sums.products
        return Scores(
            weighted_features.rounded(_ratio(products, compared.squares[left], compared.squares[right]))
        )

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Compare to 12 decimals; see `Metric.reaches`."""
        return weighted_features.reach_mask(scores.similarity, threshold)

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return the threshold itself."""
        return threshold


def cosine(left: weighted_features.Weighted, right: weighted_features.Weighted) -> float:
    """Return the cosine of the angle between two vectors or arrays of `FEATURE`, in [-1, 1]; NaN if one has length
    0.

    Scale numbers whose squares float64 cannot represent (above 1e150 or below 1e-150) first.
    """
    compared = weighted_features.compare_two(left, right)
    if not compared.squares.all():
        return float("nan")
    return float(_ratio(compared.sums.products, compared.squares[:1], compared.squares[1:])[0])


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
