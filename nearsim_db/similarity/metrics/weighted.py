"""Weighted features: sums over pairs, comparison to 12 decimals, weighted Jaccard."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.metrics.contract import FEATURE, Scores
from nearsim_db.similarity.sketch.kernels import Counts, Sums, sketch_kernels
from nearsim_db.similarity.sketch.kernels.plain import add_up

DECIMALS = 12


class Compared(NamedTuple):
    """The sums of m pairs, and each document's sum of squared weights, added in order of ids."""

    sums: Sums
    squares: NDArray[np.float64]


def compare(
    features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None = None
) -> Compared:
    """Compute the sums of pairs of documents, given as int64 rows into `features`, each an array of `FEATURE`."""
    sizes = np.array([len(document) for document in features], np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    flat = np.concatenate([np.zeros(0, FEATURE), *features])
    ids, weights = np.ascontiguousarray(flat["id"]), np.ascontiguousarray(flat["weight"])
    sums = sketch_kernels(backends.resolve(backend)).sums(ids, weights, offsets, left, right)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return Compared(sums, add_up(owners, weights * weights, len(sizes)))


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to 12 decimals, so that sums of rounded numbers can reach 1, 0.9 or 0 exactly."""
    return np.round(values, DECIMALS)


def reach_mask(similarity: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return which similarities are at least the threshold, both rounded to 12 decimals."""
    reached: NDArray[np.bool_] = rounded(similarity) >= round(threshold, DECIMALS)
    return reached


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
        sums = compare(features, left, right, backend).sums
        return Scores(rounded(sums.least / sums.most))

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Compare to 12 decimals; see `Metric.reaches`."""
        return reach_mask(scores.similarity, threshold)

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return the threshold itself."""
        return threshold
