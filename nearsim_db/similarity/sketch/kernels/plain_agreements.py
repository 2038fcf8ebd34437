"""Equal positions and bands of pairs of sketches, in NumPy; see `SketchKernels.count_agreements`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.sketch.kernels import Counts

_BYTES_AT_ONCE = 1 << 24  # of sketches on each side


def count_agreements(
    sketches: NDArray[Any], left: Counts, right: Counts, bands: int, rows: int
) -> tuple[Counts, Counts]:
    equal, runs = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    step = max(1, _BYTES_AT_ONCE // max(1, sketches[:1].nbytes))
    for at in range(0, len(left), step):
        part = slice(at, at + step)
        same = sketches[left[part]] == sketches[right[part]]
        equal[part] = same.sum(axis=1, dtype=np.int64)
        table = same[:, : bands * rows].reshape(len(same), bands, rows)
        runs[part] = table.all(axis=2).sum(axis=1, dtype=np.int64)
    return equal, runs
