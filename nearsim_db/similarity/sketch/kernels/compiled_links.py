"""The first links of pairs, compiled by numba; see `SketchKernels.first_links`."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, inlined
from nearsim_db.similarity.mixing import GOLDEN
from nearsim_db.similarity.sketch.kernels import Counts, FullRows

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
