"""The metric kernels in NumPy; see `MetricKernels`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.metrics.kernels import Sums
from nearsim_db.similarity.sketch.kernels import Counts, Ids, Offsets, Weights

_FEATURES_AT_ONCE = 1 << 17


def sums(ids: Ids, weights: Weights, offsets: Offsets, left: Counts, right: Counts) -> Sums:
    found = np.zeros((4, len(left)))
    sizes = np.diff(offsets)
    ends = np.cumsum(sizes[left] + sizes[right])
    begin = 0
    while begin < len(left):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _FEATURES_AT_ONCE, side="right")))
        found[:, begin:end] = _sums(ids, weights, offsets, left[begin:end], right[begin:end])
        begin = end
    return Sums(*found)


def _sums(
    ids: Ids, weights: Weights, offsets: Offsets, left: Counts, right: Counts
) -> list[NDArray[np.float64]]:
    pairs = len(left)
    left_at, left_of = _places(offsets, left)
    right_at, right_of = _places(offsets, right)
    places, pair_of = np.concatenate((left_at, right_at)), np.concatenate((left_of, right_of))
    order = np.lexsort((ids[places], pair_of))
    own_ids, pair_of = ids[places][order], pair_of[order]
    # The two weights of a shared id are adjacent.
    is_first = np.ones(len(order), bool)
    is_first[1:] = (own_ids[1:] != own_ids[:-1]) | (pair_of[1:] != pair_of[:-1])
    feature, is_unattended = np.cumsum(is_first) - 1, order < len(left_at)
    one, other = np.zeros((2, int(is_first.sum())))
    one[feature[is_unattended]] = weights[places[order[is_unattended]]]
    other[feature[~is_unattended]] = weights[places[order[~is_unattended]]]
    terms = (one * other, np.minimum(one, other), np.maximum(one, other), (one - other) * (one - other))
    return [add_up(pair_of[is_first], term, pairs) for term in terms]


def add_up(owners: Counts, terms: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Sum the terms of each owner, one after the other; np.sum would add pairwise."""
    added: NDArray[Any] = np.bincount(owners, terms, count)
    return added


def _places(offsets: Offsets, rows: Counts) -> tuple[Counts, Counts]:
    """Return the positions of the features of some documents, and each one's index into `rows`."""
    sizes = offsets[rows + 1] - offsets[rows]
    of = np.repeat(np.arange(len(rows)), sizes)
    return np.arange(len(of)) + (offsets[rows] - np.cumsum(sizes) + sizes)[of], of
