"""The sketch kernels in NumPy. The sketch of a document without ids is all zeros."""

from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask, Ragged, are_fresh, places_of
from nearsim_db.similarity.mixing import FMIX64_FIRST, GOLDEN, fmix64
from nearsim_db.similarity.sketch.kernels import Directions, FullRows, Sums
from nearsim_db.similarity.sketch.kernels.plain_comparison import count_agreements as count_agreements
from nearsim_db.similarity.sketch.kernels.plain_comparison import (
    first_similar_positions as first_similar_positions,
)
from nearsim_db.similarity.sketch.kernels.plain_comparison import first_similar_sorted as first_similar_sorted
from nearsim_db.similarity.sketch.kernels.plain_comparison import merged as merged
from nearsim_db.similarity.sketch.kernels.plain_comparison import shared_bits as shared_bits
from nearsim_db.similarity.sketch.kernels.plain_comparison import smallest as smallest
from nearsim_db.similarity.sketch.kernels.plain_darts import dart_minhash as dart_minhash
from nearsim_db.similarity.sketch.kernels.plain_minhash import fast_similarity as fast_similarity
from nearsim_db.similarity.sketch.kernels.plain_minhash import minimum_java32 as minimum_java32
from nearsim_db.similarity.sketch.kernels.plain_minhash import minimum_prime32 as minimum_prime32

_ROWS_AT_ONCE = 256
_DIGEST_BYTES = 16
# For more bytes than this, hashlib releases the interpreter's lock, and then has to wait to get it back.
_MAX_BYTES_WITH_LOCK = 2_047
_HALF = np.uint64(32)
_LOW_56 = np.uint64((1 << 56) - 1)


def digests(words: Hashes, offsets: Ints, key: bytes) -> NDArray[np.void]:
    """Return the keyed BLAKE2b digest of the words of each document, 16 bytes. Words are uint64."""
    # Copying the keyed state for each document takes less time than hashing the key again.
    keyed, content = blake2b(digest_size=_DIGEST_BYTES, key=key), words.view(np.uint8).data
    joined = bytearray()
    for begin, end in pairwise((offsets * words.itemsize).tolist()):
        digest = keyed.copy()
        for at in range(begin, end, _MAX_BYTES_WITH_LOCK):
            digest.update(content[at : min(end, at + _MAX_BYTES_WITH_LOCK)])
        joined += digest.digest()
    return np.frombuffer(joined, f"V{_DIGEST_BYTES}")


def mixed_bands(positions: NDArray[Any], bands: int, rows: int, start: np.uint64) -> Hashes:
    """Return the 64-bit hashes (n, bands) of the bands of unsigned positions (n, k). `start` is the seed."""
    table = positions[:, : bands * rows].reshape(len(positions), bands, rows)
    hashes = np.full((len(positions), bands), start, np.uint64)
    for row in range(rows):
        hashes ^= table[:, :, row]
        hashes *= np.uint64(FMIX64_FIRST)
        hashes ^= hashes >> _HALF
    return fmix64(hashes)


def intersections(ids: Hashes, offsets: Ints, left_rows: Ints, right_rows: Ints) -> Ints:
    """Count the ids that documents left_rows[i] and right_rows[i] share. Their ids are sorted and distinct."""
    counts = np.zeros(len(left_rows), np.int64)
    order = np.argsort(left_rows, kind="stable")
    changes = np.flatnonzero(np.diff(left_rows[order])) + 1
    for group in np.split(order, changes):
        for at in range(0, len(group), _ROWS_AT_ONCE):
            pairs = group[at : at + _ROWS_AT_ONCE]
            left = left_rows[pairs[0]]
            counts[pairs] = _shared_with(
                ids[offsets[left] : offsets[left + 1]], ids, offsets, right_rows[pairs]
            )
    return counts


def longest_runs(ids: Hashes, order: Ints, offsets: Ints, left_rows: Ints, right_rows: Ints) -> Ints:
    """Return the length of the longest run of ids that documents left_rows[i] and right_rows[i] share, or -1.

    `order` has the places of the ids in `ids`, sorted by id within each document. -1 means that the caller must use
    `runs.longest_run` for the pair: if ids repeat, a kernel could take a time proportional to the product of both
    lengths. This NumPy version always returns -1.
    """
    return np.full(len(left_rows), -1, np.int64)


def _shared_with(left: Hashes, ids: Hashes, offsets: Ints, right_rows: Ints) -> Ints:
    if not len(left):
        return np.zeros(len(right_rows), np.int64)
    right = np.concatenate([ids[offsets[row] : offsets[row + 1]] for row in right_rows])
    places = np.searchsorted(left, right)
    hits = left[np.minimum(places, len(left) - 1)] == right
    ends = np.cumsum(offsets[right_rows + 1] - offsets[right_rows])
    return np.diff(np.concatenate(([0], np.cumsum(hits)))[ends], prepend=0)


_FEATURES_AT_ONCE = 1 << 17


def sums(ids: Hashes, weights: Floats, offsets: Ints, left: Ints, right: Ints) -> Sums:
    """Compute the sums of the pairs of documents left[i] and right[i].

    Document i has ids[offsets[i]:offsets[i + 1]], sorted and distinct. Each sum starts at 0 and adds the features one
    by one, in the order of their ids, rounding to float64 at every step. A pair therefore has the same sums in any
    batch, and the same sums with left and right exchanged.
    """
    totals = np.zeros((4, len(left)))
    sizes = np.diff(offsets)
    ends = np.cumsum(sizes[left] + sizes[right])

    begin = 0
    while begin < len(left):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _FEATURES_AT_ONCE, side="right")))
        totals[:, begin:end] = _sums(ids, weights, offsets, left[begin:end], right[begin:end])
        begin = end
    return Sums(*totals)


def _sums(ids: Hashes, weights: Floats, offsets: Ints, left: Ints, right: Ints) -> list[Floats]:
    pairs = len(left)
    left_at, left_of = _feature_places(offsets, left)
    right_at, right_of = _feature_places(offsets, right)
    places, pair_of = np.concatenate((left_at, right_at)), np.concatenate((left_of, right_of))
    order = np.lexsort((ids[places], pair_of))
    sorted_ids, pair_of = ids[places][order], pair_of[order]

    # The two weights of a shared id are adjacent.
    is_first = are_fresh(pair_of, sorted_ids)
    feature, is_of_left = np.cumsum(is_first) - 1, order < len(left_at)
    x, y = np.zeros((2, int(is_first.sum())))
    x[feature[is_of_left]] = weights[places[order[is_of_left]]]
    y[feature[~is_of_left]] = weights[places[order[~is_of_left]]]
    terms = (x * y, np.minimum(x, y), np.maximum(x, y), (x - y) * (x - y))
    return [add_up(pair_of[is_first], term, pairs) for term in terms]


def add_up(owners: Ints, terms: Floats, count: int) -> Floats:
    """Sum the terms of each owner one by one. np.sum would add them pairwise, and round differently."""
    added: NDArray[Any] = np.bincount(owners, terms, count)
    return added


def _feature_places(offsets: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return the places of the features of documents, and for each feature the index in `rows` of its document."""
    sizes = offsets[rows + 1] - offsets[rows]
    owners = np.repeat(np.arange(len(rows)), sizes)
    return places_of(offsets[rows], sizes), owners


_LINKS_AT_ONCE = 1 << 14


def first_links(keys: Ints, by_band: bool, buckets: Ints, left: Ints, right: Ints, full: FullRows) -> Mask:
    """Return which of m links are the first of their pair: bool of m.

    Link i is the pair of the rows left[i] < right[i] in the bucket with the key buckets[i]. It is the first if no
    earlier bucket links the two rows. A bucket links them if both have its key, and if the bucket is not in `full` or
    left[i] is below its end.

    Buckets are ordered by the product of their key and GOLDEN, modulo 2^64, so that every band comes first equally
    often. `keys` is (n, bands), and ascending in each row; with `by_band`, equal keys are in equal columns instead.
    """
    first = np.ones(len(buckets), bool)
    for at in range(0, len(buckets), _LINKS_AT_ONCE):
        part = slice(at, at + _LINKS_AT_ONCE)
        first[part] = ~_linked_before(
            keys[left[part]], keys[right[part]], by_band, buckets[part], left[part], full
        )
    return first


def _linked_before(
    left: Ints, right: Ints, by_band: bool, buckets: Ints, left_rows: Ints, full: FullRows
) -> Mask:
    shared = _places(left) < _places(buckets)[:, None]
    if by_band:
        shared &= left == right
    else:
        shared &= np.stack([(right == key[:, None]).any(axis=1) for key in left.T], axis=1)
    links, bands = np.nonzero(shared)
    if len(full.keys):
        shared_keys = left[links, bands]
        at = np.searchsorted(full.keys, shared_keys).clip(max=len(full.keys) - 1)
        links = links[(full.keys[at] != shared_keys) | (left_rows[links] < full.ends[at])]
    linked = np.zeros(len(left), bool)
    linked[links] = True
    return linked


def first_ragged_links(
    keys: Hashes, offsets: Ints, buckets: Ints, left: Ints, right: Ints, full: FullRows
) -> Mask:
    """Do the same as `first_links`, where row i has keys[offsets[i]:offsets[i + 1]], ascending and below 2^63."""
    first = np.empty(len(buckets), bool)
    for link, (left_row, right_row) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        left_keys, right_keys = (keys[offsets[row] : offsets[row + 1]] for row in (left_row, right_row))
        shared = np.intersect1d(left_keys, right_keys, assume_unique=True).view(np.int64)[None]
        part = slice(link, link + 1)
        first[link] = not _linked_before(shared, shared, True, buckets[part], left[part], full)[0]
    return first


def window_minima(points: Hashes, offsets: Ints, windows: Ints) -> tuple[Hashes, Ints]:
    """Return the least point of each window of a document, cut to its low 56 bits, and the offsets of documents.

    A window of document i has windows[i] consecutive points; a document with fewer points is a single window. The
    results are distinct and ascending within each document.
    """
    minima_by_document = [
        np.unique(_least_of_windows(points[begin:end], min(window, end - begin)) & _LOW_56)
        for (begin, end), window in zip(pairwise(offsets.tolist()), windows.tolist(), strict=True)
    ]
    minima = Ragged.of(minima_by_document)
    return minima.values, minima.offsets


def _least_of_windows(points: Hashes, window: int) -> Hashes:
    """Return the least point of each window, by combining the results of overlapping shorter windows."""
    least, covered = points, 1
    while covered < window:
        step = min(covered, window - covered)
        least = np.minimum(least[:-step], least[step:])
        covered += step
    return least


def _places(buckets: Ints) -> Hashes:
    return np.ascontiguousarray(buckets).view(np.uint64) * np.uint64(GOLDEN)


_COMPONENTS_AT_ONCE = 1 << 19


def components(ids: Hashes, directions: Directions, k: int) -> NDArray[Any]:
    """Return the components of k random vectors for n ids: (n, k) of int8 or int16."""
    per_word = directions.per_word
    steps = np.arange(1, -(-k // per_word) + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    words = fmix64(fmix64(ids ^ directions.mask)[:, None] + steps).astype("<u8", copy=False)
    if per_word == 64:
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=k, bitorder="little").view(np.int8)
        return 2 * bits - 1
    chosen: NDArray[np.int16] = directions.table[words.view("<u2")[:, :k] >> 4]
    return chosen


def projections(ids: Hashes, offsets: Ints, whole: Ints, directions: Directions, k: int) -> Ints:
    """Return the products of the integer weights of n documents and k random vectors: (n, k), modulo 2^64."""
    sums = np.zeros((len(offsets) - 1, k), np.int64)
    at_once = max(1, _COMPONENTS_AT_ONCE // k)
    for low in range(int(offsets[0]), int(offsets[-1]), at_once):
        high = min(low + at_once, int(offsets[-1]))
        drawn = components(ids[low:high], directions, k)
        first = int(np.searchsorted(offsets, low, side="right")) - 1
        last = int(np.searchsorted(offsets, high, side="left"))
        for document in range(first, last):
            begin, end = max(int(offsets[document]), low), min(int(offsets[document + 1]), high)
            sums[document] += whole[begin:end] @ drawn[begin - low : end - low]
    return sums
