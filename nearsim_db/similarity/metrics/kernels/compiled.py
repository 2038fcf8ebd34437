"""The metric kernels compiled by numba; see `MetricKernels`."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled
from nearsim_db.similarity.metrics.kernels import Sums
from nearsim_db.similarity.sketch.kernels import Counts, Ids, Offsets, Weights


def sums(ids: Ids, weights: Weights, offsets: Offsets, left: Counts, right: Counts) -> Sums:
    sums_out = np.empty((4, len(left)))
    _sums(ids, weights, offsets, left, right, sums_out)
    return Sums(*sums_out)


@compiled
def _sums(
    ids: Ids,
    weights: Weights,
    offsets: Offsets,
    left_rows: Counts,
    right_rows: Counts,
    sums_out: NDArray[np.float64],
) -> None:
    for pair in range(len(left_rows)):
        left, left_end = offsets[left_rows[pair]], offsets[left_rows[pair] + 1]
        right, right_end = offsets[right_rows[pair]], offsets[right_rows[pair] + 1]
        products = least = most = squares = 0.0
        while left < left_end or right < right_end:
            one = other = 0.0
            has_left, has_right = left < left_end, right < right_end
            if has_left and (not has_right or ids[left] <= ids[right]):
                one = weights[left]
            if has_right and (not has_left or ids[right] <= ids[left]):
                other = weights[right]
            # No weight is 0, so a nonzero one was read and is passed.
            left += np.int64(one != 0.0)
            right += np.int64(other != 0.0)
            products += one * other
            least += min(one, other)
            most += max(one, other)
            squares += (one - other) * (one - other)
        sums_out[0, pair], sums_out[1, pair], sums_out[2, pair], sums_out[3, pair] = (
            products,
            least,
            most,
            squares,
        )
