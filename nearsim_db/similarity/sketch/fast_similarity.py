"""Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017): fills all positions in about one pass.

In each round every id is thrown into a random position with a random value; the earliest round, then the lowest
value, wins the position. A thousand ids almost always fill 128 positions in the first round. The paper ends
with k rounds of one position each; this scheme ends with one round that hashes every id for each position still
empty. Position j of two sets then agrees exactly if the id that wins j in their union is in both, so the
estimate stays unbiased. The variance is at most that of MinHash, and about half of it on sets smaller than k.
Sketches can be neither merged nor truncated.
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
        """Ids of 32 bits are mixed first; ids of 64 bits must already be mixed over their full range."""
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
