"""The loops over ids, in plain NumPy and compiled by numba, bit-identical."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask

# The smallest prime above 2^32.
PRIME = 4294967311
BITS_PER_MAP = 2048
# Spreads the round over the 32 bits of a position of fast_similarity.
ROUND_MIX = 0x9E3779B1


class HashRounds(NamedTuple):
    """The random parameters of fast_similarity.

    Round r hashes an id x by h = (x ^ masks[r]) * multipliers[r] mod 2^64: the upper half of h chooses the
    position, the exclusive or of both halves is the value. The forced round gives position j the smallest
    forced_multipliers[j] * x + forced_addends[j] mod 2^32.
    """

    masks: Hashes
    multipliers: Hashes
    forced_multipliers: NDArray[np.uint32]
    forced_addends: NDArray[np.uint32]


class Darts(NamedTuple):
    """The random field of dart_minhash.

    The cell in slice s of weights and layer l of ranks of block (a, b) has the hash h = fmix64(fmix64(id ^
    mask) ^ (a << 56 | b << 48 | s << 24 | l)); its number of darts is the number of `counts` up to h. Dart j
    has the words fmix64(h + i * 0x9E3779B97F4A7C15) of i = 2 j + 1 and 2 j + 2: the halves of the first are its
    weight and its rank within the cell, the upper half of the second chooses the position, the lower is the
    value.
    """

    mask: np.uint64
    counts: Hashes


class Directions(NamedTuple):
    """Random vectors, whose components are drawn by hashing the id.

    Word w of an id x is fmix64(fmix64(x ^ mask) + (w + 1) GOLDEN). With a table, int16 of 4,096, each 16 bits
    of a word give one component, the lowest first: the table entry at their upper 12 bits. With an empty table
    each bit gives one, the lowest first: 1 is +1, 0 is -1.
    """

    mask: np.uint64
    table: NDArray[np.int16]

    @property
    def per_word(self) -> int:
        """The number of components in a word."""
        return 4 if len(self.table) else 64


class KnownPairs(NamedTuple):
    """Pairs of n rows that are known to be similar or not, overriding their sketches."""

    pairs: Ints  # the larger row times n plus the smaller row, ascending
    alike: Mask


NO_KNOWN_PAIRS = KnownPairs(np.zeros(0, np.int64), np.zeros(0, np.bool_))


class Merged(NamedTuple):
    """Of m pairs of sorted sketches, the number of merged ids in each, and in both."""

    left: Ints
    right: Ints
    both: Ints


class Sums(NamedTuple):
    """Sums over the features of m pairs of documents, a missing weight being 0."""

    products: Floats  # of both weights
    minima: Floats  # of the smaller weights
    maxima: Floats  # of the larger weights
    squares: Floats  # of the differences


class FullRows(NamedTuple):
    """Buckets over the limit."""

    keys: Ints  # ascending
    ends: Ints  # the row from which on members are no anchors


if TYPE_CHECKING:
    from nearsim_db.similarity.sketch.kernels import plain

    class SketchKernels:
        """The kernels of a back end, with the types of NumPy. The sketch of a document without ids is all zeros."""

        fast_similarity = staticmethod(plain.fast_similarity)
        dart_minhash = staticmethod(plain.dart_minhash)
        minimum_prime32 = staticmethod(plain.minimum_prime32)
        minimum_java32 = staticmethod(plain.minimum_java32)
        projections = staticmethod(plain.projections)
        digests = staticmethod(plain.digests)
        mixed_bands = staticmethod(plain.mixed_bands)
        intersections = staticmethod(plain.intersections)
        shared_bits = staticmethod(plain.shared_bits)
        longest_runs = staticmethod(plain.longest_runs)
        sums = staticmethod(plain.sums)
        count_agreements = staticmethod(plain.count_agreements)
        first_links = staticmethod(plain.first_links)
        first_ragged_links = staticmethod(plain.first_ragged_links)
        window_minima = staticmethod(plain.window_minima)
        smallest = staticmethod(plain.smallest)
        merged = staticmethod(plain.merged)
        first_similar_sorted = staticmethod(plain.first_similar_sorted)
        first_similar_positions = staticmethod(plain.first_similar_positions)
