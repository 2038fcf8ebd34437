"""Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017), which fills all positions in about one pass.

In each round every id is thrown into a random position with a random value. A position keeps the value of the earliest
round in which it was hit, and the lowest value of that round. A thousand ids almost always fill 128 positions in the
first round. The paper ends with k rounds of one position each; this scheme ends with a single round, which hashes every
id for each position that is still empty. Two sets agree in position j exactly if the id that wins j in their union is
in both sets, so the estimate is unbiased. Its variance is at most the variance of MinHash, and about half of it for
sets smaller than k. Sketches can be neither merged nor truncated.
"""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch.family import Family
from nearsim_db.similarity.sketch.kernels import HashRounds

ROUNDS = 16


class FastSimilarity(Family):
    """Sketches of k uint32 for Jaccard similarity."""

    name = "fast_similarity"
    metric = "jaccard"
    dtype = np.dtype(np.uint32)

    def __init__(self, k: int = 128, seed: int = 1, id_bits: int = 64, backend: str | None = None) -> None:
        """Draw the hash functions from the seed.

        Ids of 32 bits are mixed before use; ids of 64 bits must already be mixed over their full range.
        """
        super().__init__(k, seed, id_bits, backend)
        self._mix_ids = id_bits == 32
        self._rounds = _draw_rounds(k, seed)

    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> NDArray[np.uint32]:
        """Return the sketches of a batch; see `Family.sketch`."""
        return self._kernels.fast_similarity(ids, offsets, self._rounds, self._mix_ids)


def _draw_rounds(k: int, seed: int) -> HashRounds:
    odd, high = np.uint64(1), np.uint64(32)
    forced = random_words(seed, "fast_similarity forced multipliers", k)
    return HashRounds(
        masks=random_words(seed, "fast_similarity masks", ROUNDS),
        multipliers=random_words(seed, "fast_similarity multipliers", ROUNDS) | odd,
        forced_multipliers=((forced >> high) | odd).astype(np.uint32),
        forced_addends=(random_words(seed, "fast_similarity forced addends", k) >> high).astype(np.uint32),
    )
