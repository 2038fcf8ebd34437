"""Pairs of sketches that are given as rows of a matrix."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.sketch.bands import Banding
from nearsim_db.similarity.sketch.kernels import Counts

_BYTES_AT_ONCE = 1 << 24  # of sketches on each side


class RowAgreements(NamedTuple):
    """Of m pairs of sketches, int64 each: shared band keys, agreeing places, compared places."""

    shared: Counts
    agreeing: Counts
    compared: Counts


class _Comparing(Protocol):
    def agreements(self, left: NDArray[Any], right: NDArray[Any]) -> tuple[Counts, Counts]: ...

    def count_shared_bands(self, left: NDArray[Any], right: NDArray[Any], banding: Banding) -> Counts: ...


def compare_gathered(
    family: _Comparing,
    sketches: NDArray[Any],
    left: Counts,
    right: Counts,
    banding: Banding,
) -> RowAgreements:
    """Compare copies of the sketches, a part of the pairs at a time; see `Family.compare_rows`."""
    found = RowAgreements(*(np.empty(len(left), np.int64) for _ in range(3)))
    step = max(1, _BYTES_AT_ONCE // max(1, sketches[:1].nbytes))
    for at in range(0, len(left), step):
        part = slice(at, at + step)
        sides = sketches[left[part]], sketches[right[part]]
        found.shared[part] = family.count_shared_bands(*sides, banding)
        found.agreeing[part], found.compared[part] = family.agreements(*sides)
    return found
