"""The kernels of sorted sketches, and of comparing all sketches of a result set; see `SketchKernels`."""

from typing import Any

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, inlined
from nearsim_db.similarity.sketch.kernels import Counts, KnownPairs, Merged, Offsets

_POSITIONS_AT_ONCE = 64


def smallest(points: NDArray[Any], offsets: Offsets, k: int) -> NDArray[Any]:
    sketches = np.zeros((len(offsets) - 1, k), points.dtype)
    _smallest(points, offsets, points.dtype.type(np.iinfo(points.dtype).max), sketches)
    return sketches


def merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    counts = Merged(*np.empty((3, len(left)), np.int64))
    _merged(np.ascontiguousarray(left), np.ascontiguousarray(right), limit, counts)
    return counts


def first_similar_sorted(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, needs: Counts, decided: KnownPairs
) -> Counts:
    first = np.empty(len(sketches), np.int64)
    _first_similar_sorted(sketches, present, need, needs, decided.pairs, decided.alike, first)
    return first


def first_similar_positions(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, decided: KnownPairs
) -> Counts:
    first = np.empty(len(sketches), np.int64)
    _first_similar_positions(sketches, present, need, decided.pairs, decided.alike, first)
    return first


@compiled
def _smallest(points: NDArray[Any], offsets: Offsets, largest: Any, sketches: NDArray[Any]) -> None:
    k = sketches.shape[1]
    held = np.empty(2 * k + 256, points.dtype)
    for document in range(len(offsets) - 1):
        if offsets[document] == offsets[document + 1]:
            continue
        count, bound = 0, largest
        for at in range(offsets[document], offsets[document + 1]):
            # What is above the k-th of those seen so far is in no sketch: of many ids few are held at all.
            if points[at] <= bound:
                if count == len(held):
                    count = _sort_distinct(held, count, k)
                    if count == k:
                        bound = held[k - 1]
                held[count] = points[at]
                count += 1
        count = _sort_distinct(held, count, k)
        sketches[document, :count] = held[:count]
        sketches[document, count:] = held[count - 1]


@compiled
def _sort_distinct(held: NDArray[Any], count: int, k: int) -> int:
    """Sort held[:count], leave the k smallest distinct of them in front; returns how many these are."""
    held[:count].sort()
    kept = 1
    for at in range(1, count):
        if kept == k:
            break
        if held[at] != held[kept - 1]:
            held[kept] = held[at]
            kept += 1
    return kept


@inlined
def _length(row: NDArray[Any]) -> int:
    """How many ids a sorted row has: up to the first of those equal to its last."""
    return int(np.searchsorted(row, row[-1])) + 1


@compiled
def _merged(left: NDArray[Any], right: NDArray[Any], limit: int, counts: Merged) -> None:
    width = left.shape[1]
    for pair in range(len(left)):
        one, other = left[pair], right[pair]
        sizes = _length(one), _length(other)
        small = sizes[0] < width and sizes[1] < width
        bound = sizes[0] + sizes[1] if small else limit
        begin = begin_other = both = 0
        while begin < sizes[0] and begin_other < sizes[1] and begin + begin_other - both < bound:
            ahead, behind = one[begin], other[begin_other]
            both += int64(ahead == behind)
            begin += int64(ahead <= behind)
            begin_other += int64(behind <= ahead)
        rest = bound - (begin + begin_other - both)
        more = min(rest, sizes[0] - begin)
        counts.left[pair] = begin + more
        counts.right[pair] = begin_other + min(rest - more, sizes[1] - begin_other)
        counts.both[pair] = both


@compiled
def _first_similar_sorted(
    sketches: NDArray[Any],
    present: NDArray[np.bool_],
    need: int,
    needs: Counts,
    pairs: Counts,
    alike: NDArray[np.bool_],
    first: Counts,
) -> None:
    size = len(sketches)
    lengths, staying = np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for row in range(size):
        lengths[row] = _length(sketches[row])
        first[row] = -1
        for place in range(count):
            other = staying[place]
            known = _decided(pairs, alike, row * size + other)
            if known < 0 and present[row] and present[other]:
                known = _share_enough(
                    sketches[row], sketches[other], lengths[row], lengths[other], need, needs
                )
            if known > 0:
                first[row] = other
                break
        if first[row] < 0:
            staying[count] = row
            count += 1


@inlined
def _decided(pairs: Counts, alike: NDArray[np.bool_], pair: int) -> int:
    """1 for alike, 0 for not, -1 where the sketches decide."""
    if not len(pairs):
        return -1
    place = np.searchsorted(pairs, pair)
    if place == len(pairs) or pairs[place] != pair:
        return -1
    return int(alike[place])


@compiled
def _share_enough(
    left: NDArray[Any], right: NDArray[Any], left_size: int, right_size: int, need: int, needs: Counts
) -> int:
    width = len(left)
    unshared = 2 * width
    if left_size < width and right_size < width:
        need = needs[left_size + right_size]
    else:
        unshared = width - need
    begin = end = both = 0
    # What each side can do without; below 0 at once where a set is too small. So no end is ever run over.
    spare_left, spare_right = left_size - need, right_size - need
    while begin - both <= spare_left and end - both <= spare_right and begin + end - 2 * both <= unshared:
        ahead, behind = left[begin], right[end]
        both += int64(ahead == behind)
        begin += int64(ahead <= behind)
        end += int64(behind <= ahead)
        if both == need:
            return 1
    return 0


@compiled
def _first_similar_positions(
    sketches: NDArray[Any],
    present: NDArray[np.bool_],
    need: int,
    pairs: Counts,
    alike: NDArray[np.bool_],
    first: Counts,
) -> None:
    size = len(sketches)
    staying = np.empty(size, np.int64)
    count = 0
    for row in range(size):
        first[row] = -1
        for place in range(count):
            other = staying[place]
            known = _decided(pairs, alike, row * size + other)
            if known < 0 and present[row] and present[other]:
                known = _agree_enough(sketches[row], sketches[other], need)
            if known > 0:
                first[row] = other
                break
        if first[row] < 0:
            staying[count] = row
            count += 1


@compiled
def _agree_enough(left: NDArray[Any], right: NDArray[Any], need: int) -> int:
    width = len(left)
    equal, begin = int64(0), 0
    # A stretch of constant length is compared by vector instructions: six times faster.
    while begin + _POSITIONS_AT_ONCE <= width:
        part = uint32(0)
        for position in range(_POSITIONS_AT_ONCE):
            part += uint32(left[begin + position] == right[begin + position])
        equal += int64(part)
        begin += _POSITIONS_AT_ONCE
        if equal >= need:
            return 1
        if equal + width - begin < need:
            return 0
    for position in range(begin, width):
        equal += int64(left[position] == right[position])
    return int(equal >= need)
