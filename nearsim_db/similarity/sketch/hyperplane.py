"""Random hyperplanes (Charikar 2002): position j says on which side of the j-th hyperplane a document is.

A document is a vector of weights. Position j is a byte: 1 if the product of the document and the j-th random vector is
positive, otherwise 0. Two vectors at an angle of theta agree in a position with probability 1 - theta / pi. This holds
for random vectors with normally distributed components (gaussian). Random vectors with components of +1 and -1 (sign)
are faster, but for these it holds only if documents have many components of similar size: a document of a few terms has
too few different directions.

Weights are rounded to 24 bits below the largest weight, so sums are exact. With signs, the product of a few equal
weights is often 0. Such a tie is broken by other random signs, and by the same weights made unequal at random. Opposite
vectors therefore have opposite sketches, and two documents without a common term agree in half of the positions even if
they are short.
"""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask, offsets_of
from nearsim_db.similarity.mixing import fmix64, random_words
from nearsim_db.similarity.sketch.directions import Projector
from nearsim_db.similarity.sketch.family import INPUTS, WEIGHTS, Curved, binomial_standard_error, window

NAME = "hyperplane"
WEIGHT_BITS = 24

# To break ties, weights are multiplied by random factors from this number to twice this number.
_MIN_TIE_FACTOR = 1 << 16


class Hyperplane(Curved):
    """Sketches of k uint8, each 0 or 1, for cosine similarity.

    With `input` "terms" ids are hashes; with "vector" they are dimensions from 0. Both give the same sketches, but
    "vector" is faster. `vectors` is "gaussian" or "sign".
    """

    name = NAME
    metric = "cosine"
    options: ClassVar = {"input": INPUTS, "weights": WEIGHTS, "vectors": ("gaussian", "sign")}
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
        super().__init__(k, seed, id_bits, backend)
        self._projector = Projector(k, seed, NAME, vectors, input == "vector", self._backend)
        self._tie_breaker = Projector(k, seed, f"{NAME} ties", "sign", False, self._backend)
        self._tie_mask = random_words(seed, f"{NAME} uneven", 1)[0]

    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> NDArray[np.uint8]:
        """Return the sketches of a batch; see `Family.sketch`.

        A vector multiplied by a positive power of 2 has the same sketch. A vector multiplied by -1 has the opposite
        sketch.
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
        self, sketches: NDArray[np.uint8], ties: Mask, ids: Hashes, offsets: Ints, whole: Ints
    ) -> None:
        """Set the positions whose product is 0, in place, by other random signs and weights made unequal."""
        lengths = np.diff(offsets)
        tied = ties.any(axis=1) & (lengths > 0)
        rows, are_tied = np.flatnonzero(tied), np.repeat(tied, lengths)
        random_part = (fmix64(ids[are_tied] ^ self._tie_mask) >> np.uint64(48)).astype(np.int64)
        uneven = whole[are_tied] * (_MIN_TIE_FACTOR + random_part)
        begins = offsets_of(lengths[rows])
        for documents, sums in self._tie_breaker.sums(ids[are_tied], begins, uneven):
            tied_rows = rows[documents]
            sketches[tied_rows] |= (sums > 0) & ties[tied_rows]

    def similarity_of(self, agreeing: int) -> float:
        """Return the cosine of pi times the fraction of positions that differ, to 12 decimal places.

        The estimate of the angle theta is unbiased and has the variance theta (pi - theta) / k. The estimate of its
        cosine is biased towards 0 by about cos(theta) theta (pi - theta) / (2 k).
        """
        return round(math.cos(math.pi * (1 - agreeing / self.k)), 12)

    def collision_probability(self, similarity: float) -> float:
        """Return 1 - arccos(s) / pi."""
        return 1 - math.acos(min(max(similarity, -1.0), 1.0)) / math.pi

    def standard_error(self, similarity: float) -> float:
        """Return the error of the angle, converted by the delta method: sin(theta) sqrt(theta (pi - theta) / k)."""
        probability = self.collision_probability(similarity)
        slope = math.pi * math.sin(math.pi * probability)
        return slope * binomial_standard_error(probability, self.k)


def whole_weights(offsets: Ints, weights: Floats) -> Ints:
    """Round weights to multiples of a unit: 2^-24 times the power of 2 above the largest weight of the document."""
    lengths = np.diff(offsets)
    filled = lengths > 0
    largest = np.zeros(len(lengths))
    if filled.any():
        largest[filled] = np.maximum.reduceat(np.abs(weights), offsets[:-1][filled])
    exponents = WEIGHT_BITS - np.frexp(largest)[1]
    whole: Ints = np.rint(np.ldexp(weights, np.repeat(exponents, lengths))).astype(np.int64)
    return whole
