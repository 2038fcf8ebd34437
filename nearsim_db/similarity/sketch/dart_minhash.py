"""DartMinHash (Christiani, DartMinHash: Fast Sketching for Weighted Sets, arXiv 2005.11547, 2020).

Every id has a plane with the axes weight and rank, and a random field of darts in this plane: a Poisson process with
one dart per unit of area. A document has the darts below the weights of its ids. Each dart belongs to one of k
positions, and the dart of the lowest rank wins the position. Two documents agree in position j if the dart that wins j
below the larger weights is also below the smaller weights. The probability is sum(min) / sum(max), the weighted Jaccard
similarity of the documents, independently for each position.

The field is partitioned as in the paper. Block (a, b) has the weights from 2^a - 1 to 2^(a + 1) - 1 and the ranks from
2^b - 1 to 2^(b + 1) - 1. It is cut into 2^b slices of weight and 2^a layers of rank, so each cell has the area 1. The
number and the places of the darts in a cell are hashed from the id and the cell, so cells can be visited in any order
and to any height. Below a rank of (ln k + 2) k / (sum of weights), all positions have a dart in about seven of eight
documents. For the remaining documents the rank is doubled, which affects the time but not the result.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch.family import INPUTS, WEIGHTS, Family, window
from nearsim_db.similarity.sketch.kernels import Darts


class DartMinHash(Family):
    """Sketches of k uint32 for weighted Jaccard similarity: 32 random bits of the dart that wins each position.

    Weights are positive. They may have any scale that 32-bit floats have.
    """

    name = "dart_minhash"
    metric = "weighted_jaccard"
    options: ClassVar = {"input": INPUTS, "weights": WEIGHTS}
    feature_options = ("input", "weights")
    dtype = np.dtype(np.uint32)

    def __init__(self, k: int = 128, seed: int = 1, id_bits: int = 64, backend: str | None = None) -> None:
        super().__init__(k, seed, id_bits, backend)
        self._darts = Darts(random_words(seed, "dart_minhash mask", 1)[0], _count_thresholds())

    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> NDArray[np.uint32]:
        """Return the sketches of a batch; see `Family.sketch`."""
        ids, offsets, weights = window(ids, offsets, weights)
        limits = self._rank_limits(offsets, weights)
        return self._kernels.dart_minhash(ids, weights, offsets, limits, self._darts, self.k)

    def _rank_limits(self, offsets: Ints, weights: Floats) -> Floats:
        """Return the rank below which to search first for darts: float64 of n, 0 for documents without ids."""
        sizes = np.diff(offsets)
        totals = np.bincount(np.repeat(np.arange(len(sizes)), sizes), weights, len(sizes))
        limits = np.zeros(len(sizes))
        np.divide(self.k * (math.log(self.k) + 2), totals, out=limits, where=sizes > 0)
        return limits


@cache
def _count_thresholds() -> Hashes:
    """Return 2^64 times the probability of at most 0, 1, 2 ... darts in a cell.

    The number of darts has the Poisson distribution of mean 1. The values are exact, and end with the last count that
    64 bits distinguish.
    """
    none = sum((Fraction((-1) ** n, math.factorial(n)) for n in range(40)), Fraction(0))
    cumulated = accumulate(none / math.factorial(count) for count in range(20))
    return np.array([int(2**64 * probability) for probability in cumulated], np.uint64)
