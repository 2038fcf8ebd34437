"""The kernels of sorted sketches in NumPy; see `SketchKernels`."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.sketch.kernels import (
    Merged,
    Offsets,
)

_ROWS_AT_ONCE = 256


def smallest(points: NDArray[Any], offsets: Offsets, k: int) -> NDArray[Any]:
    sketches = np.zeros((len(offsets) - 1, k), points.dtype)
    for document, (begin, end) in enumerate(pairwise(offsets.tolist())):
        if begin < end:
            least = np.unique(points[begin:end])[:k]
            sketches[document, : len(least)] = least
            sketches[document, len(least) :] = least[-1]
    return sketches


def merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    parts = [
        _merged(left[at : at + _ROWS_AT_ONCE], right[at : at + _ROWS_AT_ONCE], limit)
        for at in range(0, max(len(left), 1), _ROWS_AT_ONCE)
    ]
    return Merged(*(np.concatenate(counts) for counts in zip(*parts, strict=True)))


def _merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    width = left.shape[1]
    rows = np.concatenate((left, right), axis=1)
    own = np.concatenate((first_of_equals(left), first_of_equals(right)), axis=1)
    small = ~own[:, width - 1] & ~own[:, -1]
    bound = np.where(small, 2 * width, limit)
    order = np.argsort(rows, axis=1, kind="stable")
    rank = np.cumsum(first_of_equals(np.take_along_axis(rows, order, axis=1)), axis=1)
    is_counted = np.take_along_axis(own, order, axis=1) & (rank <= bound[:, None])
    of_left = (is_counted & (order < width)).sum(axis=1, dtype=np.int64)
    of_right = (is_counted & (order >= width)).sum(axis=1, dtype=np.int64)
    return Merged(of_left, of_right, of_left + of_right - np.minimum(rank[:, -1], bound))


def first_of_equals(rows: NDArray[Any]) -> NDArray[np.bool_]:
    first = np.ones(rows.shape, bool)
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return first
