"""Sums over the features of two documents, twice: plain NumPy and compiled by numba, equal to the last bit."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.sketch.kernels import Counts, Ids, Offsets, Weights


class Sums(NamedTuple):
    """Sums over the features that one or both of two documents have, a weight that is not there being 0; float64 of m.

    `products` is the sum of the products of both weights, `least` of the smaller weights, `most` of the larger ones,
    `squares` of the squared differences.
    """

    products: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    squares: NDArray[np.float64]


class MetricKernels(Protocol):
    """What a back end offers."""

    def sums(self, ids: Ids, weights: Weights, offsets: Offsets, left: Counts, right: Counts) -> Sums:
        """The sums of m pairs, given as rows: document i has ids[offsets[i]:offsets[i + 1]], sorted and distinct.

        Each begins with 0 and adds one feature after the other, by ascending id, every step rounded to float64: so a
        pair has the same sums in any company, and whichever document comes first.
        """


def metric_kernels(backend: Backend) -> MetricKernels:
    """The kernels of a back end; numba is imported here and not before."""
    if backend == "numba":
        from nearsim_db.similarity.metrics.kernels import compiled

        return compiled
    from nearsim_db.similarity.metrics.kernels import plain

    return plain
