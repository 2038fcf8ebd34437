"""The kernels of minhash in NumPy; see `SketchKernels`."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.sketch.kernels import (
    PRIME,
    Ids,
    Offsets,
)

# Sizes that keep the temporaries of a step within about a megabyte, so in the second-level cache.
_IDS_AT_ONCE = 1 << 15
_LOW = np.uint64(2**32 - 1)
_PRIME = np.uint64(PRIME)


def minimum_prime32(
    ids: Ids,
    offsets: Offsets,
    multipliers: NDArray[np.uint32],
    addends: NDArray[np.uint64],
    shift: int,
) -> NDArray[np.uint64]:
    factors = multipliers.astype(np.uint64)

    def hashes(points: Ids, function: int) -> NDArray[np.uint64]:
        # At most (2^32 - 1)^2 + 2^32 + 14, which fits. NumPy divides by a scalar faster than it folds.
        values: NDArray[np.uint64] = points * factors[function]
        values += addends[function]
        quotients = values // _PRIME
        quotients *= _PRIME
        values -= quotients
        return values

    return _minima(ids, offsets, shift, len(addends), hashes, np.dtype(np.uint64))


def minimum_java32(
    ids: Ids,
    offsets: Offsets,
    multipliers: NDArray[np.int32],
    addends: NDArray[np.int32],
    shift: int,
) -> NDArray[np.int32]:
    def hashes(points: Ids, function: int) -> NDArray[np.int32]:
        values = points.astype(np.int32)
        values *= multipliers[function]
        values += addends[function]
        return values

    return _minima(ids, offsets, shift, len(addends), hashes, np.dtype(np.int32))


def _minima(
    ids: Ids,
    offsets: Offsets,
    shift: int,
    k: int,
    hashes: Callable[[Ids, int], NDArray[Any]],
    dtype: np.dtype[Any],
) -> NDArray[Any]:
    filled = np.flatnonzero(offsets[1:] > offsets[:-1])
    minima = np.full((k, len(filled)), np.iinfo(dtype).max, dtype)
    for begin, end, documents, starts in _stretches(offsets[filled], int(offsets[0]), int(offsets[-1])):
        points = (ids[begin:end] >> np.uint64(shift)) & _LOW
        for function in range(k):
            least = minima[function, documents]
            np.minimum(least, np.minimum.reduceat(hashes(points, function), starts), out=least)
    sketches = np.zeros((len(offsets) - 1, k), dtype)
    sketches[filled] = minima.T
    return sketches


def _stretches(starts: Offsets, begin: int, end: int) -> Iterator[tuple[int, int, slice, Offsets]]:
    """Yield stretches of ids: begin, end, the documents touched, and where each begins in the stretch."""
    for low in range(begin, end, _IDS_AT_ONCE):
        high = min(low + _IDS_AT_ONCE, end)
        first = int(np.searchsorted(starts, low, side="right")) - 1
        last = int(np.searchsorted(starts, high, side="left"))
        yield low, high, slice(first, last), np.maximum(starts[first:last], low) - low
