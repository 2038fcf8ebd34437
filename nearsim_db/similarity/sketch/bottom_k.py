"""Bottom-k (Broder 1997): the k smallest ids of a set, in ascending order, under one random order of all ids.

Of two sets A and B the sketches tell S, the k smallest ids of their union, which is a random sample of it; so
|S ∩ A ∩ B| / |S| is an unbiased estimate of their Jaccard similarity (Bar-Yossef et al. 2002), and
|S ∩ A ∩ B| / |S ∩ A| estimates how much of A is in B (Cohen and Kaplan 2007). Two sets of fewer than k ids are known
wholly, and compared exactly.

A set of fewer than k ids fills its row with its largest id again and again: ids are distinct, so a row is of such a set
exactly if its last two values are equal, or if k is 1 never. A set of exactly k ids looks like a larger one.
Nothing stands at a certain position, so there are no bands to cut: the band keys are the smallest ids, all under band
number 0. Two sets share as many bands as they have such ids in common.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.sketch.agreement import (
    binomial_standard_error,
    check_id_bits,
    check_size,
    least_agreeing,
)
from nearsim_db.similarity.sketch.bands import HASH_MASK, MAX_BANDS, mix_start
from nearsim_db.similarity.sketch.kernels import Counts, Ids, KnownPairs, Offsets, Weights, sketch_kernels
from nearsim_db.similarity.sketch.mixing import fmix32, fmix64, random_words

NAME = "bottom_k"


class BottomK:
    """Sketches of k ids, uint32 or uint64 as the ids are, for Jaccard similarity and containment.

    The ids are put into a random order by mixing them, which the seed decides. Under seed 0 they are left as they are:
    then they must be hashes, such as CRC-32, and sketches are the sorted ids themselves.
    """

    name = NAME
    metric = "jaccard"
    scheme_version = 1
    positional = False

    def __init__(self, k: int = 128, seed: int = 1, id_bits: int = 64, backend: str | None = None) -> None:
        check_size(k)
        check_id_bits(id_bits)
        self.k = k
        self.dtype = np.dtype(np.uint32 if id_bits == 32 else np.uint64)
        self._mask = random_words(seed, "bottom_k mask", 1).astype(self.dtype) if seed else None
        self._backend = backends.resolve(backend)

    def sketch(self, ids: Ids, offsets: Offsets, weights: Weights | None = None) -> NDArray[Any]:
        """The sketches of a batch; see `Family.sketch`."""
        points = ids[offsets[0] : offsets[-1]].astype(self.dtype, copy=False)
        if self._mask is not None:
            points = fmix32(points ^ self._mask) if self.dtype == np.uint32 else fmix64(points ^ self._mask)
        return sketch_kernels(self._backend).smallest(points, offsets - offsets[0], self.k)

    def agreements(self, left: NDArray[Any], right: NDArray[Any]) -> tuple[Counts, Counts]:
        """|S ∩ A ∩ B| and |S|; see `Family.agreements`."""
        merged = sketch_kernels(self._backend).merged(left, right, self.k)
        return merged.both, merged.left + merged.right - merged.both

    def estimate(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
        """|S ∩ A ∩ B| / |S|, exact for two sets of fewer than k ids; see `Family.estimate`."""
        both, union = self.agreements(left, right)
        shares: NDArray[np.float64] = both / union
        return shares

    def containment(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
        """The estimated share of left's ids that are in right, row by row, exact for two sets of fewer than k ids.

        Where right is many times larger there are few of left's ids in the sample, none at worst: then NaN.
        """
        merged = sketch_kernels(self._backend).merged(left, right, self.k)
        known = merged.left > 0
        shares = np.full(len(known), np.nan)
        np.divide(merged.both, merged.left, out=shares, where=known)
        return shares

    def band_keys(
        self, sketches: NDArray[Any], bands: int, rows: int, scheme: str, seed: int
    ) -> NDArray[np.uint64]:
        """The `bands` smallest ids, each hashed as a band of one row, with band number 0.

        What a smaller set lacks are hashes of its whole sketch, which only an equal set has: so a document has the same
        number of band rows as any other.
        """
        check_keys(bands, rows, scheme, self.k)
        mixed, start = sketch_kernels(self._backend).mixed_bands, mix_start(seed)
        keys = mixed(sketches, bands, 1, start)
        lacking = np.zeros(keys.shape, bool)
        lacking[:, 1:] = sketches[:, 1:bands] == sketches[:, : bands - 1]
        row, place = np.nonzero(lacking)
        whole = mixed(sketches[row], 1, self.k, start)[:, 0]
        keys[row, place] = mixed(np.stack((whole, place.astype(np.uint64)), axis=1), 1, 2, start)[:, 0]
        return keys & HASH_MASK

    def count_shared_bands(
        self, left: NDArray[Any], right: NDArray[Any], bands: int, rows: int, scheme: str, seed: int
    ) -> Counts:
        """How many of their `bands` smallest ids two sketches have in common; all, if they are equal."""
        check_keys(bands, rows, scheme, self.k)
        # More than the union of both can hold: merged to the end.
        shared = sketch_kernels(self._backend).merged(left[:, :bands], right[:, :bands], 2 * bands).both
        shared[(left == right).all(axis=1)] = bands
        return shared

    def matched_bands(
        self, left: NDArray[Any], right: NDArray[Any], bands: int, rows: int, scheme: str, seed: int
    ) -> NDArray[np.bool_]:
        """Which of left's `bands` smallest ids are among right's; all, if the sketches are equal."""
        check_keys(bands, rows, scheme, self.k)
        mine, other = left[:, :bands], right[:, :bands]
        matched = np.zeros(mine.shape, bool)
        for row in range(len(mine)):
            own = np.unique(mine[row])
            matched[row, : len(own)] = np.isin(own, other[row])
        matched[(left == right).all(axis=1)] = True
        return matched

    def first_similar(
        self, sketches: NDArray[Any], present: NDArray[np.bool_], threshold: Fraction, decided: KnownPairs
    ) -> Counts:
        """Stops merging as soon as the rest changes nothing; see `Family.first_similar`."""
        need, needs = least_agreeing(threshold, self.k), _least_shared(threshold, self.k)
        kernels = sketch_kernels(self._backend)
        return kernels.first_similar_sorted(sketches, present, need, needs, decided)

    def collision_probability(self, similarity: float) -> float:
        """The similarity: the probability that an id of the larger set is in the other, too, is at least that.

        Its rank there is no higher than here if the one set contains the other. So two sets share at least
        min_shared_bands of `bands` keys with at least the binomial probability that `lsh.match_probability` gives for
        bands of one row; it is exact for large sets of which one contains the other, and more for sets of equal size.
        """
        return similarity

    def standard_error(self, similarity: float) -> float:
        """The binomial bound sqrt(s (1 - s) / k); a sample without replacement varies less, a whole set not at all."""
        return binomial_standard_error(similarity, self.k)


def check_keys(bands: int, rows: int, scheme: str, k: int) -> None:
    """Raise RecipeError unless `bands` single ids of a sketch of k can be its band keys."""
    if scheme != "mix64":
        raise RecipeError(
            f"bottom_k has no bands of several rows to hash by {scheme!r}; leave bands.hash at mix64"
        )
    if not 1 <= bands <= min(k, MAX_BANDS):
        raise RecipeError(
            f"{bands} bands are impossible for bottom_k with k = {k}; choose 1..{min(k, MAX_BANDS)}"
        )
    if rows != 1:
        raise RecipeError(
            f"bands of {rows} rows are impossible for bottom_k: a band is a single id; choose 1 row"
        )


@lru_cache(maxsize=16)
def _least_shared(threshold: Fraction, k: int) -> Counts:
    """How many ids two whole sets must share to be alike, by how many ids they have together, each counted: to 2 k."""
    # Of a and b ids, i in both: i / (a + b - i) >= t is i >= t / (1 + t) (a + b).
    share = threshold / (1 + threshold)
    return np.array([least_agreeing(share, ids) for ids in range(2 * k + 1)], np.int64)


def make(k: int, seed: int, id_bits: int, options: Mapping[str, str | float], backend: str | None) -> BottomK:
    """The family from a recipe; it has no options of its own."""
    if options:
        raise RecipeError(f"bottom_k has no option {', '.join(sorted(options))}; leave it out")
    return BottomK(k, seed, id_bits, backend)
