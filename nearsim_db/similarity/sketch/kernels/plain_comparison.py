"""The kernels that compare all sketches of a result set, in NumPy; see `SketchKernels`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.sketch.kernels import (
    Counts,
    KnownPairs,
)
from nearsim_db.similarity.sketch.kernels.plain_sorted import first_of_equals, merged


def first_similar_sorted(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, needs: Counts, decided: KnownPairs
) -> Counts:
    width = sketches.shape[1]
    own = first_of_equals(sketches)
    sizes = own.sum(axis=1)
    ids, indexes = np.unique(sketches, return_inverse=True)
    indexes, in_row = indexes.reshape(sketches.shape), np.zeros(len(ids), bool)

    def alike(row: int, others: Counts) -> NDArray[np.bool_]:
        small = (sizes[row] < width) & (sizes[others] < width)
        wanted = np.where(small, needs[sizes[row] + sizes[others]], need)
        # Merging is slow, and few pairs have enough ids in common.
        in_row[indexes[row]] = True
        enough: NDArray[np.bool_] = (in_row[indexes[others]] & own[others]).sum(axis=1) >= wanted
        in_row[indexes[row]] = False
        if enough.any():
            left = np.broadcast_to(sketches[row], (int(enough.sum()), width))
            enough[enough] = merged(left, sketches[others[enough]], width).both >= wanted[enough]
        return enough

    return _first_similar(present, decided, alike)


def first_similar_positions(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, decided: KnownPairs
) -> Counts:
    def alike(row: int, others: Counts) -> NDArray[np.bool_]:
        enough: NDArray[np.bool_] = (sketches[others] == sketches[row]).sum(axis=1) >= need
        return enough

    return _first_similar(present, decided, alike)


def _first_similar(
    present: NDArray[np.bool_], decided: KnownPairs, alike: Callable[[int, Counts], NDArray[np.bool_]]
) -> Counts:
    size = len(present)
    known = dict(zip(decided.pairs.tolist(), decided.alike.tolist(), strict=True))
    first = np.full(size, -1, np.int64)
    for row in range(size):
        kept = np.flatnonzero(first[:row] < 0)
        found = alike(row, kept) & present[kept] & present[row]
        for place, other in enumerate(kept.tolist() if known else ()):
            found[place] = known.get(row * size + other, found[place])
        if found.any():
            first[row] = kept[np.argmax(found)]
    return first
