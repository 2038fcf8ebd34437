"""Random vectors, one for each position of a sketch, and exact sums along them.

Component j of an id is drawn by hashing (seed, j, id), so that ids may be any uint64: hashes of terms, or dimensions.
- sign: +1 or -1, a bit of the hash each.
- gaussian: 12 bits of the hash choose one of 4,096 equally probable values, the quantiles of the normal distribution
  at (i + 1/2) / 4096 by Wichura's algorithm AS 241 (1988), scaled to variance 1 and rounded to multiples of 2^-13:
  the inversion method (Devroye: Non-Uniform Random Variate Generation, 1986, II.2). They end at 3.67 deviations.
The weights are whole numbers, so sums are exact: equal in any order, on either back end, on every machine.
"""

import math
import statistics
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.sketch.kernels import Counts, Directions, Ids, Offsets, sketch_kernels
from nearsim_db.similarity.sketch.kernels.plain_directions import components
from nearsim_db.similarity.sketch.mixing import random_words

FRACTION_BITS = 13  # of a gaussian component

_SUMS_AT_ONCE, _DOCUMENTS_AT_ONCE = 1 << 17, 1024
_HELD_COMPONENTS, _HELD_DIMENSIONS = 1 << 23, 4096  # at most 64 MB of float64
_DIMENSIONS_AT_ONCE = 64
_EXACT = 2.0**53  # below it every whole number is a float64


class Projector:
    """Sums of whole weights along k random vectors.

    With `dense`, ids are taken for dimensions: the components of the first ones are held, and batches go through one
    matrix product. Its partial sums are whole numbers below 2^53, so that BLAS computes them exactly; what could
    exceed that, or dimensions beyond those held, take the same path as terms.
    """

    def __init__(self, k: int, seed: int, purpose: str, vectors: str, dense: bool, backend: Backend) -> None:
        self.k = k
        self._directions = draw_directions(seed, purpose, vectors)
        self._dense, self._backend = dense, backend
        self._held = np.zeros((0, k))

    def sums(self, ids: Ids, offsets: Offsets, whole: Counts) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Some documents of a batch at a time, and their sums (n, k), modulo 2^64; `whole` is as long as ids."""
        kernels = sketch_kernels(self._backend)
        at_once = min(max(1, _SUMS_AT_ONCE // self.k), _DOCUMENTS_AT_ONCE)
        for begin in range(0, len(offsets) - 1, at_once):
            documents = slice(begin, min(begin + at_once, len(offsets) - 1))
            own = offsets[begin : documents.stop + 1]
            product = self._product(ids, own, whole) if self._dense else None
            if product is None:
                product = kernels.projections(ids, own, whole, self._directions, self.k)
            yield documents, product

    def _product(self, ids: Ids, offsets: Offsets, whole: Counts) -> NDArray[np.int64] | None:
        """The sums as a matrix product; None where it might not be exact, or would hold too much."""
        own = slice(int(offsets[0]), int(offsets[-1]))
        dimensions = int(ids[own].max(initial=0)) + 1
        if dimensions > _HELD_DIMENSIONS or dimensions * self.k > _HELD_COMPONENTS:
            return None
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        weights = np.zeros((len(offsets) - 1, dimensions))
        weights[rows, ids[own].astype(np.intp)] = whole[own]
        largest = int(self._directions.table.max(initial=1))
        if np.abs(weights).sum(axis=1).max(initial=0) * largest >= _EXACT:
            return None
        return (weights @ self._components(dimensions)).astype(np.int64)

    def _components(self, dimensions: int) -> NDArray[np.float64]:
        """Those of the first dimensions. Threads may draw them twice, never see half of them."""
        held = self._held
        if len(held) < dimensions:
            drawn = -(-dimensions // _DIMENSIONS_AT_ONCE) * _DIMENSIONS_AT_ONCE
            ids = np.arange(drawn, dtype=np.uint64)
            held = self._held = components(ids, self._directions, self.k).astype(np.float64)
        return held[:dimensions]


def draw_directions(seed: int, purpose: str, vectors: str) -> Directions:
    """The random vectors of a seed; `vectors` is gaussian or sign."""
    table = normal_quantiles() if vectors == "gaussian" else np.zeros(0, np.int16)
    return Directions(random_words(seed, f"{purpose} mask", 1)[0], table)


@cache
def normal_quantiles() -> NDArray[np.int16]:
    """4,096 equally probable values of the standard normal distribution, as multiples of 2^-13, ascending."""
    normal = statistics.NormalDist()
    upper = [normal.inv_cdf((4096 - place - 0.5) / 4096) for place in range(2048)]
    deviation = math.sqrt(math.fsum(one * one for one in upper) / 2048)
    whole = np.rint(np.array(upper) / deviation * 2**FRACTION_BITS).astype(np.int16)
    table = np.concatenate((-whole, whole[::-1]))
    table.flags.writeable = False
    return table
