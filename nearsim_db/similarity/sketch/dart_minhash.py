"""DartMinHash (Christiani, DartMinHash: Fast Sketching for Weighted Sets, arXiv 2005.11547, 2020).

Over the plane of weights and ranks of every id lies one random field of darts, a Poisson process of one dart to a unit
of area. A document has the darts below its weights. Each dart belongs to one of k positions, and the dart of least rank
wins it. Position j of two documents agrees if the dart that wins j below the larger weights is below the smaller
weights too: with probability sum(min) / sum(max), their weighted Jaccard similarity, independently for each position.

The field is cut as in the paper. The block (a, b) holds the weights from 2^a - 1 to 2^(a + 1) - 1 and the ranks from
2^b - 1 to 2^(b + 1) - 1; it is cut into 2^b slices of weight and 2^a layers of rank, so that each cell has the area 1.
How many darts a cell has, and where, is hashed from the id and the cell: it can be looked up in any order, as far up as
is needed. Below a rank of (ln k + 2) k / sum of weights all positions have darts in some seven cases of eight; in the
others twice as many ranks are looked at. That changes no answer, only the time.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.sketch.agreement import Linear, check_id_bits, check_size
from nearsim_db.similarity.sketch.kernels import Darts, Ids, Offsets, Weights, sketch_kernels
from nearsim_db.similarity.sketch.mixing import random_words
from nearsim_db.similarity.sketch.weighted import check_options, window

NAME = "dart_minhash"
OPTIONS = {"input": ("terms", "vector"), "weights": ("count", "log")}


class DartMinHash(Linear):
    """Sketches of k uint32 for weighted Jaccard similarity; a position holds 32 random bits of the dart that won it.

    Weights are above 0, of any scale that 32-bit floats have.
    """

    name = NAME
    metric = "weighted_jaccard"
    scheme_version = 1
    dtype = np.dtype(np.uint32)

    def __init__(self, k: int = 128, seed: int = 1, id_bits: int = 64, backend: str | None = None) -> None:
        check_size(k)
        check_id_bits(id_bits)
        self.k = k
        self._backend = backends.resolve(backend)
        self._darts = Darts(random_words(seed, "dart_minhash mask", 1)[0], _count_thresholds())

    def sketch(self, ids: Ids, offsets: Offsets, weights: Weights | None = None) -> NDArray[np.uint32]:
        """The sketches of a batch; see `Family.sketch`. Without weights every id weighs 1."""
        ids, offsets, weights = window(ids, offsets, weights)
        limits = self._rank_limits(offsets, weights)
        return sketch_kernels(self._backend).dart_minhash(ids, weights, offsets, limits, self._darts, self.k)

    def _rank_limits(self, offsets: Offsets, weights: Weights) -> NDArray[np.float64]:
        """Below which rank to look for darts first: float64 of n, 0 for documents without ids."""
        sizes = np.diff(offsets)
        totals = np.bincount(np.repeat(np.arange(len(sizes)), sizes), weights, len(sizes))
        limits = np.zeros(len(sizes))
        np.divide(self.k * (math.log(self.k) + 2), totals, out=limits, where=sizes > 0)
        return limits


@cache
def _count_thresholds() -> NDArray[np.uint64]:
    """2^64 times the probability that a cell has at most 0, 1, 2 ... darts: the Poisson distribution of mean 1.

    Exact, and as far as 64 bits tell one count from the next.
    """
    none = sum((Fraction((-1) ** n, math.factorial(n)) for n in range(40)), Fraction(0))
    cumulated = accumulate(none / math.factorial(count) for count in range(20))
    return np.array([int(2**64 * probability) for probability in cumulated], np.uint64)


def make(
    k: int, seed: int, id_bits: int, options: Mapping[str, str | float], backend: str | None
) -> DartMinHash:
    """The family from a recipe; `input` and `weights` say what is sketched, and change nothing here."""
    check_options(NAME, options, OPTIONS)
    return DartMinHash(k, seed, id_bits, backend)
