"""Random hyperplanes (Charikar 2002): position j is the side of the j-th hyperplane that a document is on.

The document is its vector of weights; position j is 1 if its product with the j-th random vector is positive,
else 0, one byte each. Two vectors at an angle of theta agree in a position with probability 1 - theta / pi.
That holds for random vectors of normally distributed components (gaussian); for components of +1 and -1 (sign),
which are faster, it holds for vectors of many components of similar size, but for a few terms there are too few
directions.

Weights are rounded to 24 bits below the largest, so sums are exact. The product of a few equal weights with
signs is often 0; then other signs decide, over the same weights made unequal at random. So opposite vectors
have opposite sketches, and documents without a common term agree in half of the positions, however short they
are.
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

# Ties are broken with weights multiplied by this to twice this.
_MIN_TIE_FACTOR = 1 << 16


class Hyperplane(Curved):
    """Sketches of k uint8, each 0 or 1, for cosine similarity.

    With `input` "terms" ids are hashes; with "vector" they are dimensions from 0, which is faster; sketches are
    the same. `vectors` is "gaussian" or "sign".
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

        A vector and its multiple by a positive power of 2 have the same sketch; a vector and its negative have
        opposite ones.
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
        """Set the positions whose product is 0 by other signs and weights made unequal, in place."""
        lengths = np.diff(offsets)
        tied = ties.any(axis=1) & (lengths > 0)
        rows, of_tied = np.flatnonzero(tied), np.repeat(tied, lengths)
        random_part = (fmix64(ids[of_tied] ^ self._tie_mask) >> np.uint64(48)).astype(np.int64)
        uneven = whole[of_tied] * (_MIN_TIE_FACTOR + random_part)
        begins = offsets_of(lengths[rows])
        for documents, sums in self._tie_breaker.sums(ids[of_tied], begins, uneven):
            chosen = rows[documents]
            sketches[chosen] |= (sums > 0) & ties[chosen]

    def similarity_of(self, agreeing: int) -> float:
        """Return the cosine of pi times the share of positions that differ, to 12 decimal places.

        The angle is unbiased, with variance theta (pi - theta) / k; its cosine is biased towards 0 by about
        cos(theta) theta (pi - theta) / (2 k).
        """
        return round(math.cos(math.pi * (1 - agreeing / self.k)), 12)

    def collision_probability(self, similarity: float) -> float:
        """1 - arccos(s) / pi."""
        return 1 - math.acos(min(max(similarity, -1.0), 1.0)) / math.pi

    def standard_error(self, similarity: float) -> float:
        """Return about sin(theta) sqrt(theta (pi - theta) / k): the angle's error, converted by the delta method."""
        probability = self.collision_probability(similarity)
        slope = math.pi * math.sin(math.pi * probability)
        return slope * binomial_standard_error(probability, self.k)


def whole_weights(offsets: Ints, weights: Floats) -> Ints:
    """Round weights to units of 2^-24 of the power of 2 above the document's largest weight."""
    lengths = np.diff(offsets)
    filled = lengths > 0
    largest = np.zeros(len(lengths))
    if filled.any():
        largest[filled] = np.maximum.reduceat(np.abs(weights), offsets[:-1][filled])
    exponents = WEIGHT_BITS - np.frexp(largest)[1]
    whole: Ints = np.rint(np.ldexp(weights, np.repeat(exponents, lengths))).astype(np.int64)
    return whole
