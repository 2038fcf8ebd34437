"""Random vectors, one for each position of a sketch, and exact projections onto these vectors.

The component of vector j for an id is drawn by hashing (seed, j, id), so ids may be any uint64: hashes of terms, or
dimensions. There are two kinds of components:
- sign: one bit of the hash chooses +1 or -1.
- gaussian: 12 bits of the hash choose one of 4,096 equally probable values (the inversion method; Devroye: Non-Uniform
  Random Variate Generation, 1986, II.2). The values are the quantiles of the normal distribution at (i + 1/2) / 4096
  by Wichura's algorithm AS 241 (1988), scaled to variance 1, and rounded to multiples of 2^-13. The largest is 3.67.
Weights are integers, so sums are exact: they are the same in any order, on both back ends and on every machine.
"""

import math
import statistics
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints
from nearsim_db.similarity.backend import Backend, sketch_kernels
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch.kernels import Directions
from nearsim_db.similarity.sketch.kernels.plain import components

# A gaussian component is a multiple of 2^-13.
FRACTION_BITS = 13

_SUMS_AT_ONCE, _DOCUMENTS_AT_ONCE = 1 << 17, 1024
# Limits the cached components to 64 MB of float64.
_MAX_CACHED_COMPONENTS, _MAX_CACHED_DIMENSIONS = 1 << 23, 4096
_DIMENSIONS_AT_ONCE = 64
# float64 represents every integer below this number exactly.
_EXACT_BELOW = 2.0**53


class Projector:
    """Computes the products of documents with k random vectors: sums of integer weights times components.

    With `dense`, ids are dimensions. The components of the first dimensions are then cached, and a batch is computed as
    a matrix product. BLAS computes it exactly, because all partial sums are integers below 2^53. A batch that could
    exceed this limit, or that has dimensions beyond the cached ones, is computed as batches of terms are.
    """

    def __init__(self, k: int, seed: int, purpose: str, vectors: str, dense: bool, backend: Backend) -> None:
        self.k = k
        self._directions = draw_directions(seed, purpose, vectors)
        self._dense, self._backend = dense, backend
        self._cached = np.zeros((0, k))

    def sums(self, ids: Hashes, offsets: Ints, whole: Ints) -> Iterator[tuple[slice, Ints]]:
        """Yield slices of the documents with their sums (n, k) modulo 2^64. `whole` has the weight of each id."""
        kernels = sketch_kernels(self._backend)
        at_once = min(max(1, _SUMS_AT_ONCE // self.k), _DOCUMENTS_AT_ONCE)
        for begin in range(0, len(offsets) - 1, at_once):
            documents = slice(begin, min(begin + at_once, len(offsets) - 1))
            bounds = offsets[begin : documents.stop + 1]
            product = self._product(ids, bounds, whole) if self._dense else None
            if product is None:
                product = kernels.projections(ids, bounds, whole, self._directions, self.k)
            yield documents, product

    def _product(self, ids: Hashes, offsets: Ints, whole: Ints) -> Ints | None:
        """Compute the sums as a matrix product. Return None if it could be inexact or need too much memory."""
        batch = slice(int(offsets[0]), int(offsets[-1]))
        dimensions = int(ids[batch].max(initial=0)) + 1
        if dimensions > _MAX_CACHED_DIMENSIONS or dimensions * self.k > _MAX_CACHED_COMPONENTS:
            return None

        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        weights = np.zeros((len(offsets) - 1, dimensions))
        weights[rows, ids[batch].astype(np.intp)] = whole[batch]
        largest = int(self._directions.table.max(initial=1))
        if np.abs(weights).sum(axis=1).max(initial=0) * largest >= _EXACT_BELOW:
            return None
        return (weights @ self._components(dimensions)).astype(np.int64)

    def _components(self, dimensions: int) -> Floats:
        """Return the components of the first dimensions, (dimensions, k).

        Concurrent threads may compute the components twice, but never see a partial result.
        """
        cached = self._cached
        if len(cached) < dimensions:
            rounded_up = -(-dimensions // _DIMENSIONS_AT_ONCE) * _DIMENSIONS_AT_ONCE
            ids = np.arange(rounded_up, dtype=np.uint64)
            cached = self._cached = components(ids, self._directions, self.k).astype(np.float64)
        return cached[:dimensions]


def draw_directions(seed: int, purpose: str, vectors: str) -> Directions:
    """Return the random vectors for a seed. `vectors` is "gaussian" or "sign"."""
    table = normal_quantiles() if vectors == "gaussian" else np.zeros(0, np.int16)
    return Directions(random_words(seed, f"{purpose} mask", 1)[0], table)


@cache
def normal_quantiles() -> NDArray[np.int16]:
    """Return 4,096 equally probable values of the standard normal distribution, as multiples of 2^-13, ascending."""
    normal = statistics.NormalDist()
    upper = [normal.inv_cdf((4096 - place - 0.5) / 4096) for place in range(2048)]
    deviation = math.sqrt(math.fsum(quantile * quantile for quantile in upper) / 2048)
    whole = np.rint(np.array(upper) / deviation * 2**FRACTION_BITS).astype(np.int16)
    table = np.concatenate((-whole, whole[::-1]))
    table.flags.writeable = False
    return table
