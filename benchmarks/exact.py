"""Find all pairs of sets that reach a Jaccard threshold, without sketches: the truth for measurements."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.in_memory import distinct
from benchmarks.truth import Flags, Ints
from nearsim_db.similarity.linked_pairs import links
from nearsim_db.similarity.metrics import exact_threshold, intersections, reach_mask

Ids = npt.NDArray[np.uint64]

_PAIRS_AT_ONCE = 10_000_000
_VERIFIED_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class ExactPairs:
    """Pairs of sets in the order of their rows."""

    left: Ints  # rows
    right: Ints  # rows, larger than the left ones
    intersection: Ints  # sizes
    union: Ints  # sizes


def exact_pairs(sets: Sequence[Ids], threshold: float) -> ExactPairs:
    """Return every pair of sets whose Jaccard similarity reaches the threshold.

    Uses prefix filtering (Chaudhuri, Ganti, Kaushik 2006). Order the ids of each set from rare to frequent. If another
    set has at least ceil(t n) of the n ids of a set, it has one of the first n - ceil(t n) + 1 of them. Pairs with such
    an id in common are verified by merging the sets.
    """
    sizes = np.array([len(ids) for ids in sets], np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    flat = np.concatenate(sets) if sets else np.zeros(0, np.uint64)

    # Collect the pairs that share a rare id and whose sizes permit the threshold.
    codes = np.zeros(0, np.int64)
    for left, right in _sharing_rare_ids(flat, sizes, threshold):
        fitting = _may_reach(sizes[left], sizes[right], threshold)
        # Express a pair as one number, so that repetitions are easily dropped.
        codes = distinct(np.concatenate((codes, left[fitting] * len(sets) + right[fitting])))

    left, right = np.divmod(codes, max(len(sets), 1))
    shared = np.zeros(len(codes), np.int64)
    for begin in range(0, len(codes), _VERIFIED_AT_ONCE):
        part = slice(begin, begin + _VERIFIED_AT_ONCE)
        shared[part] = intersections(flat, offsets, left[part], right[part])
    union = sizes[left] + sizes[right] - shared
    kept = reach_mask(shared, union, threshold)
    return ExactPairs(left[kept], right[kept], shared[kept], union[kept])


def _sharing_rare_ids(flat: Ids, sizes: Ints, threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """Yield pairs of sets that share one of the rarest ids of both; a pair may occur several times."""
    _, kinds, frequencies = np.unique(flat, return_inverse=True, return_counts=True)
    rarity = np.empty(len(frequencies), np.int64)
    # The rarest id is 0.
    rarity[np.argsort(frequencies, kind="stable")] = np.arange(len(frequencies))
    owners = np.repeat(np.arange(len(sizes)), sizes)

    # Sort the ids of each set by rarity, for all sets at once.
    in_order = np.sort(owners * len(frequencies) + rarity[kinds])
    places = np.arange(len(flat)) - np.repeat(np.cumsum(sizes) - sizes, sizes)

    # Compute with integers: ceil() of a rounded product could be too large by 1, and lose pairs.
    needed = exact_threshold(threshold)
    prefixes = sizes - -(-sizes * needed.numerator // needed.denominator) + 1
    owners, ranks = np.divmod(in_order[places < np.repeat(prefixes, sizes)], max(len(frequencies), 1))

    order = np.argsort(ranks, kind="stable")
    for _, left, right in links(ranks[order].astype(np.uint64), owners[order], 0, _PAIRS_AT_ONCE):
        yield left, right


def _may_reach(left: Ints, right: Ints, threshold: float) -> Flags:
    """Return whether sets of these sizes could reach the threshold if the smaller set were a subset of the larger."""
    return reach_mask(np.minimum(left, right), np.maximum(left, right), threshold)
