"""The loops over ids, in plain NumPy and compiled by numba, bit-identical."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask
from nearsim_db.similarity.backend import Backend, load_kernels

PRIME = 4294967311  # the smallest prime above 2^32
BITS = 2048
ROUND_MIX = 0x9E3779B1  # spreads the round over the 32 bits of a fast_similarity position


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
    """Pairs of n rows that are known to be similar or not, overriding their sketches.

    `pairs` is int64, the larger row times n plus the smaller one, ascending; `alike` is bool.
    """

    pairs: Ints
    alike: Mask


NO_KNOWN_PAIRS = KnownPairs(np.zeros(0, np.int64), np.zeros(0, np.bool_))


class Merged(NamedTuple):
    """Of m pairs of sorted sketches, int64 each: the number of merged ids in each, and in both."""

    left: Ints
    right: Ints
    both: Ints


class Sums(NamedTuple):
    """Sums over the features of two documents, a missing weight being 0; float64 of m.

    `products` sums the products of both weights, `least` the smaller weights, `most` the larger ones, `squares`
    the squared differences.
    """

    products: Floats
    least: Floats
    most: Floats
    squares: Floats


class FullRows(NamedTuple):
    """Buckets over the limit: their keys, ascending, and the row from which on members are no anchors; int64 of n."""

    keys: Ints
    ends: Ints


class SketchKernels(Protocol):
    """The kernels that a back end implements. The sketch of a document without ids is all zeros."""

    def fast_similarity(
        self, ids: Hashes, offsets: Ints, hash_rounds: HashRounds, mix_ids: bool
    ) -> NDArray[np.uint32]:
        """Return the positions (n, k): the value, exclusive-or'd with the round times ROUND_MIX."""

    def dart_minhash(
        self, ids: Hashes, weights: Floats, offsets: Ints, limits: Floats, darts: Darts, k: int
    ) -> NDArray[np.uint32]:
        """Return the values (n, k) of the darts of lowest rank; of equal ranks the lowest value.

        `limits`, above 0, are the ranks below which to search first; if a position has no dart there, the limit
        is doubled.
        """

    def minimum_prime32(
        self, ids: Hashes, offsets: Ints, multipliers: NDArray[np.uint32], addends: Hashes, shift: int
    ) -> Hashes:
        """Return the least (a x + b) mod PRIME of each document and function, x = the low 32 bits of id >> shift."""

    def minimum_java32(
        self,
        ids: Hashes,
        offsets: Ints,
        multipliers: NDArray[np.int32],
        addends: NDArray[np.int32],
        shift: int,
    ) -> NDArray[np.int32]:
        """Return the least a x + b, wrapped to int32, of each document and function, x as for prime32."""

    def projections(self, ids: Hashes, offsets: Ints, whole: Ints, directions: Directions, k: int) -> Ints:
        """Return the products (n, k) of each document's integer weights with k random vectors, modulo 2^64."""

    def mixed_bands(self, positions: NDArray[Any], bands: int, rows: int, start: np.uint64) -> Hashes:
        """Return a 64-bit hash of each band (n, bands) of unsigned positions (n, k); `start` seeds it."""

    def intersections(self, ids: Hashes, offsets: Ints, left_rows: Ints, right_rows: Ints) -> Ints:
        """Count the ids that documents left_rows[i] and right_rows[i] share; ids are sorted and distinct."""

    def shared_bits(self, ids: Hashes, offsets: Ints, left_rows: Ints, right_rows: Ints) -> tuple[Ints, Ints]:
        """Return the bits of each document, and those that documents left_rows[i] and right_rows[i] share.

        An id sets the bit of its lowest digits, of BITS in all.
        """

    def longest_runs(
        self, ids: Hashes, order: Ints, offsets: Ints, left_rows: Ints, right_rows: Ints
    ) -> Ints:
        """Return the length of the longest run of ids that documents left_rows[i] and right_rows[i] share, or -1.

        `order` sorts the ids of each document, as places in `ids`. -1 leaves the pair to `runs.longest_run`: for ids
        that repeat, time would grow with the product of both lengths.
        """

    def sums(self, ids: Hashes, weights: Floats, offsets: Ints, left: Ints, right: Ints) -> Sums:
        """Compute the sums of m pairs, given as rows: document i has ids[offsets[i]:offsets[i + 1]], sorted and
        distinct.

        Each sum starts at 0 and adds one feature after the other by ascending id, rounding to float64 at every
        step. So a pair has the same sums in any batch, and in either order.
        """

    def count_agreements(
        self, sketches: NDArray[Any], left: Ints, right: Ints, bands: int, rows: int
    ) -> tuple[Ints, Ints]:
        """Count the equal positions of m pairs of sketches, and the equal runs of `rows` among the first `bands`.

        `left` and `right` are rows of `sketches`, (n, k).
        """

    def first_links(
        self, keys: Ints, by_band: bool, buckets: Ints, left: Ints, right: Ints, full: FullRows
    ) -> Mask:
        """Return which of m links are the first of their pair: no bucket before `buckets[i]` links its two rows.

        The order of buckets is that of their products with GOLDEN, modulo 2^64, in which each band is as often first.

        `keys` is (n, bands), ascending in each row, or with `by_band` such that equal keys are in equal columns. Rows
        `left[i]` < `right[i]` share a bucket if they share its key; it links them if it is not in `full` or
        `left[i]` is below its end.
        """

    def first_ragged_links(
        self, keys: Hashes, offsets: Ints, buckets: Ints, left: Ints, right: Ints, full: FullRows
    ) -> Mask:
        """Return what `first_links` returns for rows keys[offsets[i]:offsets[i + 1]], each ascending, below 2^63."""

    def window_minima(self, points: Hashes, offsets: Ints, windows: Ints) -> tuple[Hashes, Ints]:
        """Return the least point of each `windows[i]` consecutive ones of document i: distinct and ascending, ragged.

        Of each the low 56 bits. A document with fewer points is one window.
        """

    def smallest(self, points: NDArray[Any], offsets: Ints, k: int) -> NDArray[Any]:
        """Return the k smallest distinct points of each document, ascending, (n, k), padded with the last one.

        `points` is uint32 or uint64.
        """

    def merged(self, left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
        """Merge rows of (m, k), as made by `smallest`, pair by pair until `limit` distinct ids.

        Two rows of fewer than k ids are merged to their end.
        """

    def first_similar_sorted(
        self, sketches: NDArray[Any], present: Mask, need: int, needs: Ints, decided: KnownPairs
    ) -> Ints:
        """Implement `Family.first_similar` for rows as made by `smallest`.

        Rows are similar if they share `need` of the k smallest ids of their union; or, if both have fewer than
        k ids, a and b of them, needs[a + b] of all.
        """

    def first_similar_positions(
        self, sketches: NDArray[Any], present: Mask, need: int, decided: KnownPairs
    ) -> Ints:
        """Implement `Family.first_similar` for rows that are similar if `need` of their positions are equal."""


def sketch_kernels(backend: Backend) -> SketchKernels:
    """Return the kernels of a back end."""
    kernels: SketchKernels = load_kernels(__name__, backend)
    return kernels
