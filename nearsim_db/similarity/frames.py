"""Pairs that have little in common but what recurs in many documents, such as pages of one site under a long menu."""

from collections.abc import Sequence

import numpy as np

from nearsim_db.similarity.arrays import Hashes

# Pairs that are looked at.
SAMPLE_SIZE = 100
# A feature recurs if so many documents of the sample have it, and this share of them.
_MIN_DOCUMENTS, _MIN_SHARE = 5, 0.1
# Without what recurs, documents with fewer features have no content of their own to compare.
_MIN_OWN_FEATURES = 20


def count_framed(sets: Sequence[Hashes], pairs: Sequence[tuple[int, int]]) -> int:
    """Return how many pairs have little in common but features that recur, though each document has others.

    sets: the distinct ids of the features of each document, sorted. pairs: numbers of documents in `sets`.
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
        framed += smaller >= _MIN_OWN_FEATURES and 2 * shared < smaller
    return framed
