"""Pairs that have little in common but what recurs in many documents, such as the pages of a site under a long menu."""

from collections.abc import Sequence

import numpy as np

from nearsim_db.similarity.arrays import Hashes, Sketches

# Pairs that are looked at.
MAX_SAMPLED_PAIRS = 100
# In fewer pairs for each document, few documents are similar to many.
MIN_PAIRS_PER_DOCUMENT = 2
# A feature recurs if so many documents of the sample have it, and this share of them.
_MIN_DOCUMENTS, _MIN_SHARE = 5, 0.1
# A document with fewer other features has no content of its own to compare.
_MIN_OWN_FEATURES, _MIN_OWN_POSITIONS = 20, 12
_VALUE_BITS = 40  # values of minhash need 33
# Families whose sketches have comparable values at each position.
SKETCH_FAMILIES = ("fast_similarity", "minhash")


def count_framed(
    sets: Sequence[Hashes], pairs: Sequence[tuple[int, int]], min_own: int = _MIN_OWN_FEATURES
) -> int:
    """Return how many pairs share little but features that recur, though both documents have `min_own` others.

    sets: the distinct ids of the features of each document, sorted. pairs: places of documents in `sets`.
    """
    if not pairs:
        return 0
    ids, counts = np.unique(np.concatenate(sets), return_counts=True)
    recurring = ids[counts >= max(_MIN_DOCUMENTS, _MIN_SHARE * len(sets))]
    own = [np.setdiff1d(features, recurring, assume_unique=True) for features in sets]

    framed = 0
    for left, right in pairs:
        smaller = min(len(own[left]), len(own[right]))
        shared = len(np.intersect1d(own[left], own[right], assume_unique=True))
        framed += smaller >= min_own and 2 * shared < smaller
    return framed


def count_framed_sketches(sketches: Sketches, pairs: Sequence[tuple[int, int]]) -> int:
    """Return about how many pairs `count_framed` counts, by the sketches (n, k) of a family of `SKETCH_FAMILIES`.

    Equal values at one position stand for equal features.
    """
    positions = np.arange(sketches.shape[1], dtype=np.uint64) << np.uint64(_VALUE_BITS)
    sets = list(np.sort(sketches.astype(np.uint64) | positions, axis=1))
    return count_framed(sets, pairs, _MIN_OWN_POSITIONS)
