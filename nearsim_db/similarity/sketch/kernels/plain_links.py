"""The first links of pairs, in NumPy; see `SketchKernels.first_links`."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.mixing import GOLDEN, Words
from nearsim_db.similarity.sketch.kernels import Counts, FullRows

_LINKS_AT_ONCE = 1 << 14


def first_links(
    keys: NDArray[np.int64], by_band: bool, buckets: Counts, left: Counts, right: Counts, full: FullRows
) -> NDArray[np.bool_]:
    first = np.ones(len(buckets), bool)
    for at in range(0, len(buckets), _LINKS_AT_ONCE):
        part = slice(at, at + _LINKS_AT_ONCE)
        first[part] = ~_linked_before(
            keys[left[part]], keys[right[part]], by_band, buckets[part], left[part], full
        )
    return first


def _linked_before(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    by_band: bool,
    buckets: Counts,
    left_rows: Counts,
    full: FullRows,
) -> NDArray[np.bool_]:
    shared = _places(left) < _places(buckets)[:, None]
    if by_band:
        shared &= left == right
    else:
        shared &= np.stack([(right == key[:, None]).any(axis=1) for key in left.T], axis=1)
    links, bands = np.nonzero(shared)
    if len(full.keys):
        own = left[links, bands]
        at = np.searchsorted(full.keys, own).clip(max=len(full.keys) - 1)
        links = links[(full.keys[at] != own) | (left_rows[links] < full.ends[at])]
    linked = np.zeros(len(left), bool)
    linked[links] = True
    return linked


def _places(buckets: NDArray[np.int64]) -> Words:
    return np.ascontiguousarray(buckets).view(np.uint64) * np.uint64(GOLDEN)
