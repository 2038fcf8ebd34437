"""Bottom-k (Broder 1997): the k smallest ids of a set, in ascending order, under one random order of all ids.

The sketches of two sets A and B determine S, the k smallest ids of their union, which is a random sample of the union.
Therefore |S ∩ A ∩ B| / |S| is an unbiased estimate of their Jaccard similarity (Bar-Yossef et al. 2002), and
|S ∩ A ∩ B| / |S ∩ A| estimates the fraction of A that is in B (Cohen and Kaplan 2007). Two sets of fewer than k ids are
completely contained in their sketches, so they are compared exactly. For larger sets the error is below its binomial
bound, because a sample without replacement varies less.

The sketch of a set of fewer than k ids is padded with copies of its largest id. Ids are distinct, so the last two
values of a sketch are equal only for such sets, except if k is 1. A set of exactly k ids looks like a larger set. Ids
have no fixed positions, so a sketch cannot be cut into bands: the band keys are the smallest ids, all with the band
number 0. Two sets share one band for each of these ids that they have in common.
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

    The seed determines the random order, by mixing the ids. With seed 0 ids are not mixed: they must be hashes, such as
    CRC-32, and sketches are the smallest ids themselves.
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
        """Return the mixed ids, whose numerical order is the random order."""
        points = ids.astype(self.dtype, copy=False)
        if self._mask is None:
            return points
        return fmix32(points ^ self._mask) if self.dtype == np.uint32 else fmix64(points ^ self._mask)

    def salted(self, sketches: Sketches, salts: Hashes) -> Sketches:
        """Return the sketches unchanged, because a salt would change the order of the ids; see `Family.salted`."""
        return sketches

    def agreements(self, left: Sketches, right: Sketches) -> tuple[Ints, Ints]:
        """Return |S ∩ A ∩ B| and |S|; see `Family.agreements`."""
        merged = self._kernels.merged(left, right, self.k)
        return merged.both, merged.left + merged.right - merged.both

    def containment(self, left: Sketches, right: Sketches) -> Floats:
        """Estimate the fraction of the ids of `left` that are in `right`, row by row.

        It is exact for two sets of fewer than k ids. If the right set is many times larger, few ids of the left set are
        in the sample. The result is NaN if the sample has none of them.
        """
        merged = self._kernels.merged(left, right, self.k)
        is_sampled = merged.left > 0
        fractions = np.full(len(is_sampled), np.nan)
        np.divide(merged.both, merged.left, out=fractions, where=is_sampled)
        return fractions

    def band_keys(self, sketches: Sketches, banding: Banding) -> Hashes:
        """Hash each of the `bands` smallest ids as a band of one row, with the band number 0.

        If a set has fewer ids, hashes of its whole sketch replace the missing keys, so that every document has the same
        number of band rows. Only equal sets share these keys.
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
        """Count the shared ids among the `bands` smallest of two sketches. Equal sketches share all bands."""
        bands = check_keys(banding, self.k)
        # No union has more ids than this limit, so all ids are merged.
        shared = self._kernels.merged(left[:, :bands], right[:, :bands], 2 * bands).both
        shared[(left == right).all(axis=1)] = bands
        return shared

    def matched_bands(self, left: Sketches, right: Sketches, banding: Banding) -> Mask:
        """Return which of the `bands` smallest ids of `left` are among those of `right`; all if the sketches
        are equal.
        """
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
        """Compare sketches by merging them, until the result is certain; see `Family.first_similar`."""
        need, needs = least_agreeing(threshold, self.k), _least_shared(threshold, self.k)
        return self._kernels.first_similar_sorted(sketches, present, need, needs, decided)

    def collision_probability(self, similarity: float) -> float:
        """Return the similarity: a lower bound of the probability that a key of one set is a key of the other set.

        Consider two sets of which the larger contains the smaller. A shared id has the same or a lower rank in the
        smaller set, so each key of the larger set is a key of the smaller set with a probability equal to the
        similarity. `lsh.match_probability` with bands of one row is exact for two such sets if they are large, and a
        lower bound for other sets. Sets of equal size have the highest probability.
        """
        return similarity


def check_keys(banding: Banding, k: int) -> int:
    """Return the number of bands. Raises RecipeError if the bands cannot be single ids of a sketch of k values."""
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
    """Return the number of ids that two sets of fewer than k ids must share to be similar.

    The index is the sum of the two sizes, from 0 to 2 k.
    """
    # For sets of a and b ids that share i ids, i / (a + b - i) >= t is equivalent to i >= t / (1 + t) (a + b).
    share = threshold / (1 + threshold)
    return np.array([least_agreeing(share, ids) for ids in range(2 * k + 1)], np.int64)
