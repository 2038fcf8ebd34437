"""Random hyperplanes (Charikar 2002): position j says on which side of the j-th hyperplane a document is.

The document is its vector of weights; position j is 1 where its product with the j-th random vector is above 0, else
0, one byte each. Two vectors at an angle of theta agree in a position with probability 1 - theta / pi. Random vectors
of normally distributed components (gaussian) keep to that; those of +1 and -1 (sign) are faster and keep to it for
vectors of many components of similar size: of a few terms they know too few directions.

Weights are rounded to 24 bits below the largest, so counts are exact. The product of a few equal weights with signs is
often 0; then other signs decide, of the same weights made unequal at random. So opposite vectors have opposite
sketches, and documents without a common term agree in half of the positions, however short they are.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.sketch.agreement import Curved, binomial_standard_error, check_id_bits, check_size
from nearsim_db.similarity.sketch.directions import Projector
from nearsim_db.similarity.sketch.kernels import Counts, Ids, Offsets, Weights
from nearsim_db.similarity.sketch.mixing import fmix64, random_words
from nearsim_db.similarity.sketch.weighted import check_options, window

NAME = "hyperplane"
OPTIONS = {"input": ("terms", "vector"), "weights": ("count", "log"), "vectors": ("gaussian", "sign")}
WEIGHT_BITS = 24

_EVEN = 1 << 16  # what a weight is multiplied by to break ties, and by up to twice as much


class Hyperplane(Curved):
    """Sketches of k uint8, each 0 or 1, for cosine similarity.

    `input` says what ids are: "terms" takes hashes, "vector" dimensions from 0 on, for which it is faster; sketches
    are the same. `vectors` is "gaussian" or "sign".
    """

    name = NAME
    metric = "cosine"
    scheme_version = 1
    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        k: int = 128,
        seed: int = 1,
        id_bits: int = 64,
        input: str = "terms",
        vectors: str = "gaussian",
        backend: str | None = None,
    ) -> None:
        check_size(k)
        check_id_bits(id_bits)
        check_options(NAME, {"input": input, "vectors": vectors}, OPTIONS)
        self.k = k
        self._backend = backends.resolve(backend)
        self._projector = Projector(k, seed, NAME, vectors, input == "vector", self._backend)
        self._tie_breaker = Projector(k, seed, f"{NAME} ties", "sign", False, self._backend)
        self._tie_mask = random_words(seed, f"{NAME} uneven", 1)[0]

    def sketch(self, ids: Ids, offsets: Offsets, weights: Weights | None = None) -> NDArray[np.uint8]:
        """The sketches of a batch, of weights 1 if none are given; see `Family.sketch`.

        A vector and its multiple by a positive power of 2 have the same sketch, one and its negative opposite ones.
        """
        ids, offsets, weights = window(ids, offsets, weights)
        whole = whole_weights(offsets, weights)
        sketches = np.zeros((len(offsets) - 1, self.k), np.uint8)
        ties = np.zeros(sketches.shape, bool)
        for documents, sums in self._projector.sums(ids, offsets, whole):
            sketches[documents], ties[documents] = sums > 0, sums == 0
        self._break_ties(sketches, ties, ids, offsets, whole)
        return sketches

    def _break_ties(
        self, sketches: NDArray[np.uint8], ties: NDArray[np.bool_], ids: Ids, offsets: Offsets, whole: Counts
    ) -> None:
        lengths = np.diff(offsets)
        tied = ties.any(axis=1) & (lengths > 0)
        rows, own = np.flatnonzero(tied), np.repeat(tied, lengths)
        uneven = whole[own] * (_EVEN + (fmix64(ids[own] ^ self._tie_mask) >> np.uint64(48)).astype(np.int64))
        begins = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[rows])))
        for documents, sums in self._tie_breaker.sums(ids[own], begins, uneven):
            chosen = rows[documents]
            sketches[chosen] |= (sums > 0) & ties[chosen]

    def similarity_of(self, agreeing: int) -> float:
        """The cosine of pi times the share of positions that differ, to 12 decimal places.

        That angle is unbiased, with variance theta (pi - theta) / k; so its cosine is too small in amount: biased by
        about -cos(theta) theta (pi - theta) / (2 k).
        """
        return round(math.cos(math.pi * (1 - agreeing / self.k)), 12)

    def collision_probability(self, similarity: float) -> float:
        """1 - arccos(s) / pi."""
        return 1 - math.acos(min(max(similarity, -1.0), 1.0)) / math.pi

    def standard_error(self, similarity: float) -> float:
        """About sin(theta) sqrt(theta (pi - theta) / k), from the angle's by the delta method."""
        probability = self.collision_probability(similarity)
        slope = math.pi * math.sin(math.pi * probability)
        return slope * binomial_standard_error(probability, self.k)


def whole_weights(offsets: Offsets, weights: Weights) -> Counts:
    """The weights in units of 2^-24 of the power of 2 above the document's largest, rounded."""
    lengths = np.diff(offsets)
    filled = lengths > 0
    largest = np.zeros(len(lengths))
    if filled.any():
        largest[filled] = np.maximum.reduceat(np.abs(weights), offsets[:-1][filled])
    exponents = WEIGHT_BITS - np.frexp(largest)[1]
    whole: Counts = np.rint(np.ldexp(weights, np.repeat(exponents, lengths))).astype(np.int64)
    return whole


def make(
    k: int, seed: int, id_bits: int, options: Mapping[str, str | float], backend: str | None
) -> Hyperplane:
    """The family from a recipe; its options are `input`, `weights` (what the weights given to it are) and `vectors`."""
    check_options(NAME, options, OPTIONS)
    given, vectors = str(options.get("input", "terms")), str(options.get("vectors", "gaussian"))
    return Hyperplane(k, seed, id_bits, given, vectors, backend)
