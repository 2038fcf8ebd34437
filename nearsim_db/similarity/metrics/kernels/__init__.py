"""Sums over the features of two documents, in plain NumPy and compiled by numba, bit-identical."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.backend import Backend, load_kernels
from nearsim_db.similarity.sketch.kernels import Counts, Ids, Offsets, Weights


class Sums(NamedTuple):
    """Sums over the features of two documents, a missing weight being 0; float64 of m.

    `products` sums the products of both weights, `least` the smaller weights, `most` the larger ones, `squares`
    the squared differences.
    """

    products: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    squares: NDArray[np.float64]


class MetricKernels(Protocol):
    """The kernels that a back end implements."""

    def sums(self, ids: Ids, weights: Weights, offsets: Offsets, left: Counts, right: Counts) -> Sums:
        """Compute the sums of m pairs, given as rows: document i has ids[offsets[i]:offsets[i + 1]], sorted and
        distinct.

        Each sum starts at 0 and adds one feature after the other by ascending id, rounding to float64 at every
        step. So a pair has the same sums in any batch, and in either order.
        """


def metric_kernels(backend: Backend) -> MetricKernels:
    """Return the kernels of a back end."""
    kernels: MetricKernels = load_kernels(__name__, backend)
    return kernels
