"""Bottom-k (Broder 1997): the k smallest ids of a set, ascending, under one random order of all ids.

From the sketches of two sets A and B follows S, the k smallest ids of their union, a random sample of it. So |S
∩ A ∩ B| / |S| is an unbiased estimate of their Jaccard similarity (Bar-Yossef et al. 2002), and |S ∩ A ∩ B| /
|S ∩ A| estimates the share of A that is in B (Cohen and Kaplan 2007). Two sets of fewer than k ids are known
completely and compared exactly. A sample without replacement varies less than the binomial bound of the error, a
completely known set not at all.

The row of a set of fewer than k ids is padded with its largest id. As ids are distinct, the last two values of
a row are equal exactly for such sets, except if k is 1. A set of exactly k ids looks like a larger one. Ids
have no fixed positions, so there are no bands to cut: the band keys are the smallest ids, all under band number
0. Two sets share as many bands as they have these ids in common.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask, Sketches
from nearsim_db.similarity.mixing import fmix32, fmix64, random_words
from nearsim_db.similarity.sketch.bands import HASH_MASK, MAX_BANDS, Banding, mix_start
from nearsim_db.similarity.sketch.family import Family, least_agreeing
from nearsim_db.similarity.sketch.kernels import KnownPairs


class BottomK(Family):
    """Sketches of k ids, uint32 or uint64 like the ids, for Jaccard similarity and containment.

    The seed determines the random order, by mixing the ids. Seed 0 leaves them unchanged: they must then be
    hashes, such as CRC-32, and sketches are the sorted ids themselves.
    """

    name = "bottom_k"
    metric = "jaccard"
    positional = False

    def __init__(self, k: int = 128, seed: int = 1, id_bits: int = 64, backend: str | None = None) -> None:
        super().__init__(k, seed, id_bits, backend)
        self.dtype = np.dtype(np.uint32 if id_bits == 32 else np.uint64)
        self._mask = random_words(seed, "bottom_k mask", 1).astype(self.dtype) if seed else None

    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> Sketches:
        """Return the sketches of a batch; see `Family.sketch`."""
        points = self._points(ids[offsets[0] : offsets[-1]])
        return self._kernels.smallest(points, offsets - offsets[0], self.k)

    def _points(self, ids: Hashes) -> NDArray[Any]:
        """Return the ids in the random order."""
        points = ids.astype(self.dtype, copy=False)
        if self._mask is None:
            return points
        return fmix32(points ^ self._mask) if self.dtype == np.uint32 else fmix64(points ^ self._mask)

    def salted(self, sketches: Sketches, salts: Hashes) -> Sketches:
        """Return sketches as they are: the order of the ids, which decides what is compared, must remain."""
        return sketches

    def agreements(self, left: Sketches, right: Sketches) -> tuple[Ints, Ints]:
        """Return |S ∩ A ∩ B| and |S|; see `Family.agreements`."""
        merged = self._kernels.merged(left, right, self.k)
        return merged.both, merged.left + merged.right - merged.both

    def containment(self, left: Sketches, right: Sketches) -> Floats:
        """Estimate the share of left's ids that are in right, row by row; exact for two sets of fewer than k ids.

        If right is many times larger, few of left's ids are in the sample; NaN if none is.
        """
        merged = self._kernels.merged(left, right, self.k)
        known = merged.left > 0
        shares = np.full(len(known), np.nan)
        np.divide(merged.both, merged.left, out=shares, where=known)
        return shares

    def band_keys(self, sketches: Sketches, banding: Banding) -> Hashes:
        """Hash each of the `bands` smallest ids as a band of one row, with band number 0.

        A smaller set gets hashes of its whole sketch for the missing ids, which only an equal set shares; so
        every document has the same number of band rows.
        """
        bands = check_keys(banding, self.k)
        mixed, start = self._kernels.mixed_bands, mix_start(banding.seed)
        keys = mixed(sketches, bands, 1, start)
        missing = np.zeros(keys.shape, bool)
        missing[:, 1:] = sketches[:, 1:bands] == sketches[:, : bands - 1]
        row, band = np.nonzero(missing)
        whole = mixed(sketches[row], 1, self.k, start)[:, 0]
        keys[row, band] = mixed(np.stack((whole, band.astype(np.uint64)), axis=1), 1, 2, start)[:, 0]
        return keys & HASH_MASK

    def count_shared_bands(self, left: Sketches, right: Sketches, banding: Banding) -> Ints:
        """Count the ids among the `bands` smallest that two sketches share; all if the sketches are equal."""
        bands = check_keys(banding, self.k)
        # A limit larger than any union: rows are merged to the end.
        shared = self._kernels.merged(left[:, :bands], right[:, :bands], 2 * bands).both
        shared[(left == right).all(axis=1)] = bands
        return shared

    def matched_bands(self, left: Sketches, right: Sketches, banding: Banding) -> Mask:
        """Return which of left's `bands` smallest ids are among right's; all if the sketches are equal."""
        bands = check_keys(banding, self.k)
        left_ids, right_ids = left[:, :bands], right[:, :bands]
        matched = np.zeros(left_ids.shape, bool)
        for row in range(len(left_ids)):
            distinct = np.unique(left_ids[row])
            matched[row, : len(distinct)] = np.isin(distinct, right_ids[row])
        matched[(left == right).all(axis=1)] = True
        return matched

    def first_similar(
        self, sketches: Sketches, present: Mask, threshold: Fraction, decided: KnownPairs
    ) -> Ints:
        """Stop merging a pair once the rest cannot change the result; see `Family.first_similar`."""
        need, needs = least_agreeing(threshold, self.k), _least_shared(threshold, self.k)
        return self._kernels.first_similar_sorted(sketches, present, need, needs, decided)

    def collision_probability(self, similarity: float) -> float:
        """Return the similarity, a lower bound of the probability that an id of the larger set is in the other
        too.

        The rank of an id in the smaller set is no higher if one set contains the other. So two sets share at
        least min_shared_bands of `bands` keys with at least the binomial probability that
        `lsh.match_probability` gives for bands of one row. It is exact for large sets of which one contains the
        other, and higher for sets of equal size.
        """
        return similarity


def check_keys(banding: Banding, k: int) -> int:
    """Return the number of bands. Raises RecipeError unless they can be single ids of a sketch of k."""
    bands, rows, scheme, _ = banding
    if scheme != "mix64":
        raise RecipeError(
            f"bands.hash is {scheme!r}, which hashes bands of several rows; bottom_k requires mix64"
        )
    if not 1 <= bands <= min(k, MAX_BANDS):
        raise RecipeError(
            f"{bands} bands are out of range for bottom_k with k = {k}; choose 1..{min(k, MAX_BANDS)}"
        )
    if rows != 1:
        raise RecipeError(
            f"bands of {rows} rows are not supported by bottom_k, whose bands are single ids; choose 1 row"
        )
    return bands


@lru_cache(maxsize=16)
def _least_shared(threshold: Fraction, k: int) -> Ints:
    """Return how many ids two completely known sets must share to be similar, by the sum of their sizes up to 2 k."""
    # Of a and b ids, i in both: i / (a + b - i) >= t is i >= t / (1 + t) (a + b).
    share = threshold / (1 + threshold)
    return np.array([least_agreeing(share, ids) for ids in range(2 * k + 1)], np.int64)
