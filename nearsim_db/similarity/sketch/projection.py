"""Random lines cut into buckets (Datar, Immorlica, Indyk, Mirrokni 2004), for Euclidean distance.

Position j is the bucket floor((r . x + u) / width) into which the document's vector x of weights falls on the j-th
random line. The components of r are normally distributed, which is a 2-stable distribution, and u is uniform in
[0, width). The probability that two points fall into the same bucket decreases with distance / width; see
`same_bucket`.

Weights are rounded to 2^-19 of a width, and u to 2^-32 of a width, so sums are exact. Buckets are numbered modulo 2^32.
A weight of 2^31 widths or more is replaced by a hash, which is far from the hashes of other weights and equal only for
equal weights. So nothing overflows silently.
"""

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Floats, Hashes, Ints
from nearsim_db.similarity.mixing import fmix64, random_words
from nearsim_db.similarity.sketch.directions import FRACTION_BITS, Projector
from nearsim_db.similarity.sketch.family import INPUTS, WEIGHTS, Curved, binomial_standard_error, window

NAME = "projection"
# The bucket is the upper half of a 64-bit sum.
WEIGHT_BITS = 32 - FRACTION_BITS

_HUGE = 2.0 ** (31 + WEIGHT_BITS)
# Within these limits no weight overflows, because weights are 32-bit floats.
_MIN_WIDTH, _MAX_WIDTH = 1e-30, 1e30
_ROOT_TAU = math.sqrt(2 * math.pi)


class Projection(Curved):
    """Sketches of k int32 for Euclidean distances d, expressed as similarities 1 / (1 + d).

    `width` is the width of a bucket, in the unit of the distances. With `input` "terms" ids are hashes; with "vector"
    they are dimensions from 0. Both give the same sketches, but "vector" is faster.
    """

    name = NAME
    metric = "euclidean"
    options: ClassVar = {"input": INPUTS, "weights": WEIGHTS, "width": ()}
    dtype = np.dtype(np.int32)

    def __init__(
        self,
        k: int = 128,
        seed: int = 1,
        id_bits: int = 64,
        width: float = 1.0,
        input: str = "terms",
        backend: str | None = None,
    ) -> None:
        super().__init__(k, seed, id_bits, backend)
        if not _MIN_WIDTH <= width <= _MAX_WIDTH:
            raise RecipeError(f"sketch.width is {width}; choose a value in {_MIN_WIDTH}..{_MAX_WIDTH}")
        self.width = width
        self._projector = Projector(k, seed, NAME, "gaussian", input == "vector", self._backend)
        self._starts = (random_words(seed, f"{NAME} offsets", k) >> np.uint64(32)).astype(np.int64)

    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> NDArray[np.int32]:
        """Return the sketches of a batch; see `Family.sketch`."""
        ids, offsets, weights = window(ids, offsets, weights)
        sketches = np.zeros((len(offsets) - 1, self.k), np.int32)
        for documents, sums in self._projector.sums(ids, offsets, self._whole_weights(weights)):
            sketches[documents] = (sums + self._starts) >> 32
        return sketches

    def similarity_of(self, agreeing: int) -> float:
        """Return 1 / (1 + d) to 12 decimal places, for the estimated distance d.

        d is the distance whose collision probability equals the fraction of equal positions; if no position is equal,
        the similarity is 0. The distance between unequal buckets is not used: for distances up to a quarter of a width,
        where the pairs of a recipe are, it would reduce the error by 0.2 % at most.
        """
        ratio = _ratio_of(agreeing / self.k)
        return round(ratio / (ratio + self.width), 12) if ratio < math.inf else 1.0

    def collision_probability(self, similarity: float) -> float:
        """Return `same_bucket` of the distance 1 / s - 1, or 0 for a similarity s of 0 or less."""
        if similarity <= 0:
            return 0.0
        return same_bucket(max(1 / similarity - 1, 0.0), self.width)

    def standard_error(self, similarity: float) -> float:
        """Return the error of the collision probability, converted by the delta method; 0 at similarities 0 and 1."""
        if not 0 < similarity < 1:
            return 0.0
        distance = 1 / similarity - 1
        # ds / dp = (ds / dd) / (dp / dd), where dp / dd = -(dp / dr) r / d and s d = 1 - s.
        slope = (1 - similarity) ** 2 / (self.width * _slope(self.width / distance))
        return slope * binomial_standard_error(same_bucket(distance, self.width), self.k)

    def _whole_weights(self, weights: Floats) -> Ints:
        """Round weights to multiples of 2^-19 of a width, and replace huge weights by hashes."""
        scaled = np.ldexp(weights / self.width, WEIGHT_BITS)
        huge = np.abs(scaled) >= _HUGE
        whole = np.rint(np.where(huge, 0, scaled)).astype(np.int64)
        whole[huge] = fmix64(weights[huge].view(np.uint64)).view(np.int64)
        return whole


def same_bucket(distance: float, width: float) -> float:
    """Return the probability that two points at this distance fall into the same bucket of a random line.

    It is 1 - 2 Phi(-r) - 2 / (sqrt(2 pi) r) (1 - exp(-r^2 / 2)) for r = width / distance (Datar, Immorlica, Indyk,
    Mirrokni: Locality-Sensitive Hashing Scheme Based on p-Stable Distributions, SCG 2004, section 3.2).
    """
    if not distance >= 0:
        raise RecipeError(f"a distance of {distance} is out of range; it must be 0 or more")
    return _same_bucket(width / distance) if distance > width / _MAX_WIDTH else 1.0


def _same_bucket(ratio: float) -> float:
    if ratio < 1e-8:
        return ratio / _ROOT_TAU
    return math.erf(ratio / math.sqrt(2)) + 2 / (_ROOT_TAU * ratio) * math.expm1(-ratio * ratio / 2)


def _slope(ratio: float) -> float:
    """Return the derivative of `_same_bucket` with respect to the ratio."""
    if ratio < 1e-8:
        return 1 / _ROOT_TAU
    return -2 / _ROOT_TAU * math.expm1(-ratio * ratio / 2) / ratio**2


@lru_cache(maxsize=1 << 16)
def _ratio_of(probability: float) -> float:
    """Invert `_same_bucket` by Newton's method.

    The start value is below the result, so the method never overshoots, because the function is concave.
    """
    if probability >= 1:
        return math.inf
    ratio = probability * _ROOT_TAU
    for _ in range(100):
        step = (probability - _same_bucket(ratio)) / _slope(ratio)
        if step <= ratio * 1e-15:
            break
        ratio += step
    return ratio
