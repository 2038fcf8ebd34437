"""Base classes of the families whose sketches are compared position by position."""

import math
from bisect import bisect_left
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.sketch import bands as cut
from nearsim_db.similarity.sketch.bands import Banding
from nearsim_db.similarity.sketch.kernels import Counts, KnownPairs, sketch_kernels
from nearsim_db.similarity.sketch.row_pairs import RowAgreements, compare_gathered

MAX_K = 65536


class Positional:
    """A family whose sketches are compared position by position and cut into bands."""

    positional = True
    k: int
    _backend: Backend

    def agreements(self, left: NDArray[Any], right: NDArray[Any]) -> tuple[Counts, Counts]:
        """Return the numbers of equal positions and of all positions; see `Family.agreements`."""
        equal: Counts = (left == right).sum(axis=1, dtype=np.int64)
        return equal, np.full(len(equal), self.k, np.int64)

    def band_keys(self, sketches: NDArray[Any], banding: Banding) -> NDArray[np.uint64]:
        """Hash runs of `rows` positions; see `Family.band_keys`."""
        return cut.band_keys(sketches, banding, backend=self._backend)

    def count_shared_bands(self, left: NDArray[Any], right: NDArray[Any], banding: Banding) -> Counts:
        """Count the equal runs of `rows` positions; see `Family.count_shared_bands`."""
        counts: Counts = self.matched_bands(left, right, banding).sum(axis=1, dtype=np.int64)
        return counts

    def compare_rows(
        self, sketches: NDArray[Any], left: Counts, right: Counts, banding: Banding
    ) -> RowAgreements:
        """Compare the rows in place, unless the band hash requires the keys; see `Family.compare_rows`."""
        if banding.scheme != "mix64":
            return compare_gathered(self, sketches, left, right, banding)
        kernels = sketch_kernels(self._backend)
        agreeing, shared = kernels.count_agreements(sketches, left, right, banding.bands, banding.rows)
        return RowAgreements(shared, agreeing, np.full(len(agreeing), self.k, np.int64))

    def matched_bands(self, left: NDArray[Any], right: NDArray[Any], banding: Banding) -> NDArray[np.bool_]:
        """Return which runs of `rows` positions are equal; see `Family.matched_bands`."""
        return cut.matched_bands(left, right, banding)

    def first_similar(
        self, sketches: NDArray[Any], present: NDArray[np.bool_], threshold: Fraction, decided: KnownPairs
    ) -> Counts:
        """Stop comparing a pair once the remaining positions cannot change the result; see `Family.first_similar`."""
        kernels = sketch_kernels(self._backend)
        return kernels.first_similar_positions(sketches, present, self._least_agreeing(threshold), decided)

    def _least_agreeing(self, threshold: Fraction) -> int:
        return least_agreeing(threshold, self.k)


class Linear(Positional):
    """A family whose positions agree with a probability equal to the similarity.

    Up to the 2^-32 by which the values of different ids, or darts, may be equal.
    """

    def estimate(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
        """Return the share of equal positions; see `Family.estimate`."""
        return agreement(left, right)

    def similarities(self, agreeing: Counts, compared: Counts) -> NDArray[np.float64]:
        """Return the share of equal positions; see `Family.similarities`."""
        shares: NDArray[np.float64] = agreeing / compared
        return shares

    def collision_probability(self, similarity: float) -> float:
        """Return the similarity itself."""
        return similarity

    def standard_error(self, similarity: float) -> float:
        """Return the binomial sqrt(s (1 - s) / k); fast_similarity stays below it on small sets."""
        return binomial_standard_error(similarity, self.k)


class Curved(Positional):
    """A family whose similarity is an increasing function of the share of equal positions."""

    def similarity_of(self, agreeing: int) -> float:
        """Return the similarity estimated from this number of equal positions; 1 if all are equal."""
        raise NotImplementedError

    def estimate(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
        """Map the numbers of equal positions to similarities; see `Family.estimate`."""
        return self.similarities(*self.agreements(left, right))

    def similarities(self, agreeing: Counts, compared: Counts) -> NDArray[np.float64]:
        """Map the numbers of equal positions to similarities; see `Family.similarities`."""
        counts, indexes = np.unique(agreeing, return_inverse=True)
        similarities = np.array([self.similarity_of(count) for count in counts.tolist()], np.float64)
        return similarities[indexes]

    def _least_agreeing(self, threshold: Fraction) -> int:
        return bisect_left(range(self.k), float(threshold), key=self.similarity_of)


def least_agreeing(threshold: Fraction, compared: int) -> int:
    """Return the least number of agreements among `compared` comparisons that reaches a threshold."""
    return -(-threshold.numerator * compared // threshold.denominator)


def agreement(left: NDArray[np.generic], right: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the share of equal positions, row by row: (m, k) and (m, k) to float64 of m, each in [0, 1]."""
    shares: NDArray[np.float64] = (left == right).mean(axis=1, dtype=np.float64)
    return shares


def binomial_standard_error(similarity: float, k: int) -> float:
    """Return the standard deviation of the mean of k independent trials: sqrt(s (1 - s) / k)."""
    return math.sqrt(similarity * (1 - similarity) / k)


def check_size(k: int) -> None:
    """Raise RecipeError unless k is in 1..65536."""
    if not 1 <= k <= MAX_K:
        raise RecipeError(f"sketch.k is {k}; choose a value in 1..{MAX_K}")


def check_id_bits(id_bits: int) -> None:
    """Raise RecipeError unless the ids are of 32 or 64 bits."""
    if id_bits not in (32, 64):
        raise RecipeError(f"ids of {id_bits} bits are not supported; choose 32 or 64")
