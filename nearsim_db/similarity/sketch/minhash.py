"""MinHash (Broder 1997): position j is the least value of the j-th universal hash function over the set.

Two kinds of functions:
- prime32: h(x) = (a x + b) mod 4294967311, the least prime above 2^32, exactly; uint64 up to 2^32 + 14.
- java32: h(x) = a x + b wrapped to a signed 32-bit integer, with a and b from java.util.Random; int32.
Linear functions require ids that are hashes: on runs of consecutive numbers estimates are too low (0.49 for
0.56). Sketches can be merged (the sketch of a union) and truncated (fewer positions, same seed).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch.kernels import PRIME, Ids, Offsets, Weights, sketch_kernels
from nearsim_db.similarity.sketch.positional import Linear, check_id_bits, check_size

NAME = "minhash"
FUNCTIONS = ("prime32", "java32")

Coefficients = tuple[NDArray[Any], NDArray[Any]]


class MinHash(Linear):
    """Sketches of k positions, uint64 (prime32) or int32 (java32), for Jaccard similarity.

    The functions take 32 bits: the id itself if it has 32 bits, its upper half if it has 64.
    """

    name = NAME
    metric = "jaccard"
    scheme_version = 1

    def __init__(
        self,
        k: int = 128,
        seed: int = 1,
        id_bits: int = 64,
        functions: str = "prime32",
        backend: str | None = None,
    ) -> None:
        check_size(k)
        check_functions(functions)
        drawn = _draw_java32(k, seed) if functions == "java32" else _draw_prime32(k, seed)
        self._set_up(drawn, id_bits, functions, backend)

    @classmethod
    def with_coefficients(
        cls,
        multipliers: Sequence[int],
        addends: Sequence[int],
        id_bits: int = 32,
        functions: str = "prime32",
        backend: str | None = None,
    ) -> "MinHash":
        """Return the family with the functions a x + b, one position each.

        For prime32, a must be in 1..2^32 - 1 and b is reduced modulo the prime; for java32 both wrap to 32
        bits.
        """
        check_size(len(multipliers))
        check_functions(functions)
        if len(multipliers) != len(addends):
            raise RecipeError(f"{len(multipliers)} multipliers need as many addends, not {len(addends)}")
        coefficients = (_wrapped if functions == "java32" else _reduced)(multipliers, addends)
        family = cls.__new__(cls)
        family._set_up(coefficients, id_bits, functions, backend)
        return family

    def _set_up(self, coefficients: Coefficients, id_bits: int, functions: str, backend: str | None) -> None:
        check_id_bits(id_bits)
        self._multipliers, self._addends = coefficients
        self.k = len(self._multipliers)
        self.functions = functions
        self.dtype = np.dtype(np.int32 if functions == "java32" else np.uint64)
        self._shift = id_bits - 32
        self._backend = backends.resolve(backend)

    def sketch(self, ids: Ids, offsets: Offsets, weights: Weights | None = None) -> NDArray[Any]:
        """Return the sketches of a batch; see `Family.sketch`."""
        kernels = sketch_kernels(self._backend)
        minimum = kernels.minimum_java32 if self.functions == "java32" else kernels.minimum_prime32
        return minimum(ids, offsets, self._multipliers, self._addends, self._shift)

    def merge(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return the sketches of the unions, row by row; every row must be of a document with ids."""
        union: NDArray[Any] = np.minimum(left, right)
        return union

    def truncate(self, sketches: NDArray[Any], k: int) -> NDArray[Any]:
        """Return the sketches that the same seed gives for a smaller k: a copy of the first k columns."""
        if not 1 <= k <= sketches.shape[1]:
            raise RecipeError(f"a sketch of {sketches.shape[1]} positions cannot be truncated to {k}")
        return sketches[:, :k].copy()


def check_functions(functions: str) -> None:
    """Raise RecipeError for an unknown kind of hash functions."""
    if functions not in FUNCTIONS:
        raise RecipeError(f"unknown minhash functions {functions!r}; choose one of {', '.join(FUNCTIONS)}")


def _draw_prime32(k: int, seed: int) -> Coefficients:
    high = np.uint64(32)
    words = random_words(seed, "minhash multipliers", k) >> high
    # Scaled, not reduced, to 2^32 - 1 intervals of equal width, so that no multiplier is 0.
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


def make(k: int, seed: int, id_bits: int, options: Mapping[str, Any], backend: str | None) -> MinHash:
    """Return the family of a recipe; its options are `functions` and `coefficients`."""
    unknown = sorted(set(options) - {"functions", "coefficients"})
    if unknown:
        raise RecipeError(
            f"minhash has no option {', '.join(unknown)}; its options are functions and coefficients"
        )
    functions = str(options.get("functions", "prime32"))
    if given := options.get("coefficients"):
        multipliers, addends = zip(*given, strict=True)
        return MinHash.with_coefficients(multipliers, addends, id_bits, functions, backend)
    return MinHash(k, seed, id_bits, functions, backend)


_MULTIPLIER = 0x5DEECE66D
_ADDEND = 0xB
_STATE_MASK = (1 << 48) - 1


def next_ints(seed: int, count: int) -> NDArray[np.int32]:
    """Return the first `count` results of nextInt() of a java.util.Random with this seed (any 64-bit long)."""
    state = (seed ^ _MULTIPLIER) & _STATE_MASK
    words = []
    for _ in range(count):
        state = (state * _MULTIPLIER + _ADDEND) & _STATE_MASK
        words.append(state >> 16)
    return np.array(words, np.uint32).view(np.int32)
