"""Shingles whose words count in any order: their ids are made of the sorted ids of the words."""

import numpy as np

from nearsim_db.similarity.arrays import Hashes, Ints
from nearsim_db.similarity.mixing import GOLDEN, fmix64


def free_ids(words: Hashes, offsets: Ints, k: int) -> tuple[Hashes, Ints]:
    """Return the ids of the shingles of documents, whose words are `words[offsets[i]:offsets[i + 1]]`, ragged as they.

    Each run of `k` words is a shingle; a document of fewer words, but at least one, is one shingle. Shingles of the
    same words, each as often, are equal.
    """
    counts = np.diff(offsets)
    shingles = np.where(counts > 0, np.maximum(counts - k + 1, 1), 0)
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(shingles)))
    if not ends[-1]:
        return np.zeros(0, np.uint64), ends
    first = np.arange(ends[-1]) + np.repeat(offsets[:-1] - ends[:-1], shingles)
    places = first[:, np.newaxis] + np.arange(k)
    is_own = places < np.repeat(offsets[1:], shingles)[:, np.newaxis]
    units = np.where(is_own, words[np.minimum(places, len(words) - 1)], np.uint64(0))
    units.sort(axis=1)
    ids = np.zeros(len(units), np.uint64)
    for column in units.T:
        ids = fmix64(ids * np.uint64(GOLDEN) + column)
    return ids, ends
