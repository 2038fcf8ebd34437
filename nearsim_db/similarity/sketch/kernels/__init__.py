"""Sketch kernels: the loops over ids, once in plain NumPy and once compiled by numba, with identical results."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask

# The smallest prime above 2^32.
PRIME = 4294967311
BITS_PER_MAP = 2048
# The factor that spreads the number of a round over the 32 bits of a position of fast_similarity.
ROUND_MIX = 0x9E3779B1


class HashRounds(NamedTuple):
    """The random parameters of fast_similarity.

    Round r hashes an id x to h = (x ^ masks[r]) * multipliers[r] mod 2^64. The upper half of h chooses the position,
    and the exclusive or of both halves is the value. The last round fills an empty position j with the smallest value
    of forced_multipliers[j] * x + forced_addends[j] mod 2^32 over all ids x.
    """

    masks: Hashes
    multipliers: Hashes
    forced_multipliers: NDArray[np.uint32]
    forced_addends: NDArray[np.uint32]


class Darts(NamedTuple):
    """The random field of dart_minhash.

    In block (a, b), the cell in slice s of weights and layer l of ranks has the hash
    h = fmix64(fmix64(id ^ mask) ^ (a << 56 | b << 48 | s << 24 | l)).
    It has as many darts as `counts` has entries up to h. Dart j has two words, fmix64(h + i * 0x9E3779B97F4A7C15) for
    i = 2 j + 1 and i = 2 j + 2. The halves of the first word are the weight and the rank of the dart within the cell.
    The upper half of the second word chooses the position, and the lower half is the value.
    """

    mask: np.uint64
    counts: Hashes  # see `dart_minhash._count_thresholds`


class Directions(NamedTuple):
    """Random vectors, whose components for an id are drawn by hashing the id.

    Word w of an id x is fmix64(fmix64(x ^ mask) + (w + 1) GOLDEN). With a table of 4,096 entries, each 16 bits of a
    word give a component, from the lowest bits: the upper 12 of the 16 bits are the index of its table entry. With an
    empty table, each bit gives a component, from the lowest bit: 1 is +1, and 0 is -1.
    """

    mask: np.uint64
    table: NDArray[np.int16]  # 4,096 entries, or empty for components of +1 and -1

    @property
    def per_word(self) -> int:
        """The number of components in a word."""
        return 4 if len(self.table) else 64


class KnownPairs(NamedTuple):
    """Pairs of n rows whose similarity is already decided. The decisions override the sketches."""

    pairs: Ints  # the larger row times n plus the smaller row, ascending
    alike: Mask  # whether the two rows are similar


NO_KNOWN_PAIRS = KnownPairs(np.zeros(0, np.int64), np.zeros(0, np.bool_))


class Merged(NamedTuple):
    """For m pairs of sorted sketches, counts of the merged ids."""

    left: Ints  # ids in the left sketch
    right: Ints  # ids in the right sketch
    both: Ints  # ids in both sketches


class Sums(NamedTuple):
    """Sums over the features of m pairs of documents. The weight of a missing feature is 0."""

    products: Floats  # the products of both weights
    minima: Floats  # the smaller weights
    maxima: Floats  # the larger weights
    squares: Floats  # the squared differences of the weights


class FullRows(NamedTuple):
    """Buckets with more members than the bucket limit."""

    keys: Ints  # ascending
    ends: Ints  # the first row that is not an anchor of the bucket


if TYPE_CHECKING:
    from nearsim_db.similarity.sketch.kernels import plain

    class SketchKernels:
        """The kernels of a back end, with the types of the NumPy version.

        The sketch of a document without ids is all zeros.
        """

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
