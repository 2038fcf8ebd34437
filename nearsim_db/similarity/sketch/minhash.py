"""MinHash (Broder 1997): position j is the smallest value that the j-th hash function has on the set.

There are two kinds of hash functions:
- prime32: h(x) = (a x + b) mod 4294967311, computed exactly. The modulus is the smallest prime above 2^32, so values
  are uint64 up to 2^32 + 14.
- java32: h(x) = a x + b wrapped to a signed 32-bit integer, with a and b from java.util.Random. Values are int32.
These linear functions require ids that are hashes: for runs of consecutive numbers the estimates are too low (0.49
instead of 0.56). Sketches can be merged to the sketch of a union, and truncated to fewer positions of the same seed.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Sketches
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch.family import Family
from nearsim_db.similarity.sketch.kernels import PRIME

Coefficients = tuple[NDArray[Any], NDArray[Any]]


class MinHash(Family):
    """Sketches of k positions, uint64 (prime32) or int32 (java32), for Jaccard similarity.

    The hash functions take 32 bits: the id itself if ids have 32 bits, and its upper half if they have 64.
    """

    name = "minhash"
    metric = "jaccard"
    options: ClassVar = {"functions": ("prime32", "java32"), "coefficients": ()}

    def __init__(
        self,
        k: int = 128,
        seed: int = 1,
        id_bits: int = 64,
        functions: str = "prime32",
        backend: str | None = None,
        coefficients: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Draw the functions a x + b from the seed, or take the pairs of a and b in `coefficients`.

        For prime32, a must be in 1..2^32 - 1, and b is reduced modulo the prime. For java32, a and b wrap to 32 bits.
        """
        super().__init__(len(coefficients) if coefficients else k, seed, id_bits, backend)
        is_java = functions == "java32"
        if coefficients:
            self._multipliers, self._addends = (_wrapped if is_java else _reduced)(
                *zip(*coefficients, strict=True)
            )
        else:
            self._multipliers, self._addends = (_draw_java32 if is_java else _draw_prime32)(k, seed)
        self.functions = functions
        self.dtype = np.dtype(np.int32 if is_java else np.uint64)
        self._shift = id_bits - 32

    @property
    def coefficients(self) -> list[tuple[int, int]]:
        """The numbers a and b of each hash function."""
        return list(zip(self._multipliers.tolist(), self._addends.tolist(), strict=True))

    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> Sketches:
        """Return the sketches of a batch; see `Family.sketch`."""
        is_java = self.functions == "java32"
        minimum = self._kernels.minimum_java32 if is_java else self._kernels.minimum_prime32
        return minimum(ids, offsets, self._multipliers, self._addends, self._shift)


def _draw_prime32(k: int, seed: int) -> Coefficients:
    high = np.uint64(32)
    words = random_words(seed, "minhash multipliers", k) >> high
    # Scale the words to 1..2^32 - 1, so that no multiplier is 0 and all are equally probable.
    multipliers = 1 + ((words * np.uint64(2**32 - 1)) >> high)
    return multipliers.astype(np.uint32), random_words(seed, "minhash addends", k) >> high


def _draw_java32(k: int, seed: int) -> Coefficients:
    pairs = next_ints(seed, 2 * k)
    return pairs[0::2].copy(), pairs[1::2].copy()


def _reduced(multipliers: Sequence[int], addends: Sequence[int]) -> Coefficients:
    for multiplier in multipliers:
        if not 1 <= multiplier < 2**32:
            raise RecipeError(f"a multiplier of {multiplier} is out of range; choose one in 1..2^32 - 1")
    return np.array(multipliers, np.uint32), np.array([b % PRIME for b in addends], np.uint64)


def _wrapped(multipliers: Sequence[int], addends: Sequence[int]) -> Coefficients:
    wrapped = [np.array([v % 2**32 for v in values], np.uint32) for values in (multipliers, addends)]
    return wrapped[0].view(np.int32), wrapped[1].view(np.int32)


_MULTIPLIER = 0x5DEECE66D
_ADDEND = 0xB
_STATE_MASK = (1 << 48) - 1


def next_ints(seed: int, count: int) -> NDArray[np.int32]:
    """Return the first `count` results of nextInt() of a java.util.Random with this seed, a 64-bit long."""
    state = (seed ^ _MULTIPLIER) & _STATE_MASK
    words = []
    for _ in range(count):
        state = (state * _MULTIPLIER + _ADDEND) & _STATE_MASK
        words.append(state >> 16)
    return np.array(words, np.uint32).view(np.int32)
