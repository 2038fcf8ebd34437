"""The kernels of sorted sketches compiled by numba; see `SketchKernels`."""

from typing import Any

import numpy as np
from numba import int64
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, inlined
from nearsim_db.similarity.sketch.kernels import Merged, Offsets


def smallest(points: NDArray[Any], offsets: Offsets, k: int) -> NDArray[Any]:
    sketches = np.zeros((len(offsets) - 1, k), points.dtype)
    _smallest(points, offsets, points.dtype.type(np.iinfo(points.dtype).max), sketches)
    return sketches


def merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    counts = Merged(*np.empty((3, len(left)), np.int64))
    _merged(np.ascontiguousarray(left), np.ascontiguousarray(right), limit, counts)
    return counts


@compiled
def _smallest(points: NDArray[Any], offsets: Offsets, largest: Any, sketches: NDArray[Any]) -> None:
    k = sketches.shape[1]
    buffer = np.empty(2 * k + 256, points.dtype)
    for document in range(len(offsets) - 1):
        if offsets[document] == offsets[document + 1]:
            continue
        count, bound = 0, largest
        for at in range(offsets[document], offsets[document + 1]):
            # Ids above the k-th smallest so far cannot be in the sketch, so few of many are buffered.
            if points[at] <= bound:
                if count == len(buffer):
                    count = _sort_distinct(buffer, count, k)
                    if count == k:
                        bound = buffer[k - 1]
                buffer[count] = points[at]
                count += 1
        count = _sort_distinct(buffer, count, k)
        sketches[document, :count] = buffer[:count]
        sketches[document, count:] = buffer[count - 1]


@compiled
def _sort_distinct(buffer: NDArray[Any], count: int, k: int) -> int:
    """Sort buffer[:count] and move its k smallest distinct values to the front; return their number."""
    buffer[:count].sort()
    kept = 1
    for at in range(1, count):
        if kept == k:
            break
        if buffer[at] != buffer[kept - 1]:
            buffer[kept] = buffer[at]
            kept += 1
    return kept


@inlined
def distinct_length(row: NDArray[Any]) -> int:
    """Return the number of ids in a sorted row: up to the first of those equal to its last."""
    return int(np.searchsorted(row, row[-1])) + 1


@compiled
def _merged(left: NDArray[Any], right: NDArray[Any], limit: int, counts: Merged) -> None:
    width = left.shape[1]
    for pair in range(len(left)):
        one, other = left[pair], right[pair]
        sizes = distinct_length(one), distinct_length(other)
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
