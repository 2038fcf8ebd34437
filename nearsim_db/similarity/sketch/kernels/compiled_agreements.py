"""Equal positions and bands of pairs of sketches, compiled by numba; see `SketchKernels.count_agreements`."""

from typing import Any

import numpy as np
from numba import int64
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled
from nearsim_db.similarity.sketch.kernels import Counts


def count_agreements(
    sketches: NDArray[Any], left: Counts, right: Counts, bands: int, rows: int
) -> tuple[Counts, Counts]:
    equal, runs = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    _count_agreements(sketches, left, right, bands, rows, equal, runs)
    return equal, runs


@compiled
def _count_agreements(
    sketches: NDArray[Any], left: Counts, right: Counts, bands: int, rows: int, equal: Counts, runs: Counts
) -> None:
    for pair in range(len(left)):
        one, other = sketches[left[pair]], sketches[right[pair]]
        positions, matched = int64(0), int64(0)
        for position in range(len(one)):
            positions += int64(one[position] == other[position])
        for band in range(bands):
            run = int64(1)
            for position in range(band * rows, (band + 1) * rows):
                run &= int64(one[position] == other[position])
            matched += run
        equal[pair], runs[pair] = positions, matched
