"""The kernel of random directions in NumPy; see `SketchKernels`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.mixing import GOLDEN, fmix64
from nearsim_db.similarity.sketch.kernels import Counts, Directions, Ids, Offsets

_COMPONENTS_AT_ONCE = 1 << 19


def components(ids: Ids, directions: Directions, k: int) -> NDArray[Any]:
    """Return the components (n, k) of n ids: int8 or int16."""
    per_word = directions.per_word
    steps = np.arange(1, -(-k // per_word) + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    words = fmix64(fmix64(ids ^ directions.mask)[:, None] + steps).astype("<u8", copy=False)
    if per_word == 64:
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=k, bitorder="little").view(np.int8)
        return 2 * bits - 1
    chosen: NDArray[np.int16] = directions.table[words.view("<u2")[:, :k] >> 4]
    return chosen


def projections(
    ids: Ids, offsets: Offsets, whole: Counts, directions: Directions, k: int
) -> NDArray[np.int64]:
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
