"""The sketch kernels compiled by numba; see `SketchKernels`.

Scratch memory is allocated inside each call, so threads may call them concurrently.
"""

from typing import Any

import numpy as np
from numba import int64, uint64, uintp
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, fmix64, inlined
from nearsim_db.similarity.mixing import FMIX64_FIRST, GOLDEN
from nearsim_db.similarity.sketch.kernels import Counts, FullRows, Ids, Offsets
from nearsim_db.similarity.sketch.kernels.compiled_comparison import count_agreements as count_agreements
from nearsim_db.similarity.sketch.kernels.compiled_comparison import (
    first_similar_positions as first_similar_positions,
)
from nearsim_db.similarity.sketch.kernels.compiled_comparison import (
    first_similar_sorted as first_similar_sorted,
)
from nearsim_db.similarity.sketch.kernels.compiled_darts import dart_minhash as dart_minhash
from nearsim_db.similarity.sketch.kernels.compiled_directions import projections as projections
from nearsim_db.similarity.sketch.kernels.compiled_minhash import fast_similarity as fast_similarity
from nearsim_db.similarity.sketch.kernels.compiled_minhash import minimum_java32 as minimum_java32
from nearsim_db.similarity.sketch.kernels.compiled_minhash import minimum_prime32 as minimum_prime32
from nearsim_db.similarity.sketch.kernels.compiled_sorted import merged as merged
from nearsim_db.similarity.sketch.kernels.compiled_sorted import smallest as smallest

_FIRST = np.uint64(FMIX64_FIRST)
_HALF = np.uint64(32)


def mixed_bands(positions: NDArray[Any], bands: int, rows: int, start: int) -> NDArray[np.uint64]:
    hashes = np.empty((len(positions), bands), np.uint64)
    _mixed_bands(positions, rows, np.uint64(start), hashes)
    return hashes


def intersections(ids: Ids, offsets: Offsets, left_rows: Offsets, right_rows: Offsets) -> Counts:
    counts = np.empty(len(left_rows), np.int64)
    _intersections(ids, offsets, left_rows, right_rows, counts)
    return counts


@compiled
def _mixed_bands(positions: NDArray[Any], rows: int, start: np.uint64, hashes: NDArray[np.uint64]) -> None:
    # Row by row, as vector instructions take several bands at once.
    for document in range(hashes.shape[0]):
        own, hashed = positions[document], hashes[document]
        hashed[:] = start
        for row in range(uintp(rows)):
            for band in range(uintp(len(hashed))):
                mixed = (hashed[band] ^ uint64(own[band * uintp(rows) + row])) * _FIRST
                hashed[band] = mixed ^ (mixed >> _HALF)
        for band in range(uintp(len(hashed))):
            hashed[band] = fmix64(hashed[band])


@compiled
def _intersections(
    ids: Ids, offsets: Offsets, left_rows: Offsets, right_rows: Offsets, counts: Counts
) -> None:
    for pair in range(len(counts)):
        left, left_end = offsets[left_rows[pair]], offsets[left_rows[pair] + 1]
        right, right_end = offsets[right_rows[pair]], offsets[right_rows[pair] + 1]
        count = int64(0)
        # Without branches on the ids, which are unpredictable.
        while left < left_end and right < right_end:
            ahead, behind = ids[left], ids[right]
            count += int64(ahead == behind)
            left += int64(ahead <= behind)
            right += int64(behind <= ahead)
        counts[pair] = count


_GOLDEN = np.uint64(GOLDEN)


def first_links(
    keys: NDArray[np.int64], by_band: bool, buckets: Counts, left: Counts, right: Counts, full: FullRows
) -> NDArray[np.bool_]:
    first = np.empty(len(buckets), np.bool_)
    search = _first_by_band if by_band else _first_sorted
    search(keys, buckets, left, right, full.keys, full.ends, first)
    return first


@inlined
def _place(bucket: int) -> np.uint64:
    return np.uint64(bucket) * _GOLDEN


@inlined
def _links(key: int, left: int, full: NDArray[np.int64], ends: NDArray[np.int64]) -> bool:
    low, high = 0, len(full)
    while low < high:
        middle = (low + high) // 2
        if full[middle] < key:
            low = middle + 1
        else:
            high = middle
    return bool(low == len(full) or full[low] != key or left < ends[low])


@compiled
def _first_by_band(
    keys: NDArray[np.int64],
    buckets: Counts,
    left: Counts,
    right: Counts,
    full: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: NDArray[np.bool_],
) -> None:
    for link in range(len(buckets)):
        one, other, own = keys[left[link]], keys[right[link]], _place(buckets[link])
        is_first = True
        for band in range(keys.shape[1]):
            key = one[band]
            if key == other[band] and _place(key) < own and _links(key, left[link], full, ends):
                is_first = False
                break
        first[link] = is_first


@compiled
def _first_sorted(
    keys: NDArray[np.int64],
    buckets: Counts,
    left: Counts,
    right: Counts,
    full: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: NDArray[np.bool_],
) -> None:
    for link in range(len(buckets)):
        one, other, own = keys[left[link]], keys[right[link]], _place(buckets[link])
        at, place, is_first = 0, 0, True
        while is_first and at < len(one) and place < len(other):
            if one[at] == other[place]:
                is_first = not (_place(one[at]) < own and _links(one[at], left[link], full, ends))
                at += 1
            elif one[at] < other[place]:
                at += 1
            else:
                place += 1
        first[link] = is_first
