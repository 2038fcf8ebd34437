"""Shingles that say nothing about a document: those of many documents, and of texts that a recipe ignores."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.text.clean import clean

if TYPE_CHECKING:
    from nearsim_db.similarity.recipe import Recipe
    from nearsim_db.similarity.text import Shingler

Ids = NDArray[np.uint64]
Offsets = NDArray[np.int64]

LEAST_DOCUMENTS = 20
SAMPLE_SIZE, SAMPLE_SEED = 10_000, 1
_MOST_COUNTED = (
    1 << 23
)  # 130 MB; beyond it ids counted once are dropped, which lowers other counts by one at most


class CommonShingles:
    """Counts in how many distinct texts each shingle is; equal texts are one."""

    def __init__(self) -> None:
        self.documents: int = 0
        self._seen: set[bytes] = set()
        self._ids, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    def add(self, sequences: Sequence[Ids]) -> None:
        """Count the shingles of some texts, in any order and with repetitions."""
        fresh = [own for own in sequences if len(own) and self._is_new(own)]
        self.documents += len(fresh)
        own = np.unique(np.concatenate([np.zeros(0, np.uint64), *map(np.unique, fresh)]), return_counts=True)
        both = np.concatenate((self._ids, own[0])), np.concatenate((self._counts, own[1]))
        self._ids, places = np.unique(both[0], return_inverse=True)
        self._counts = np.bincount(places, both[1], len(self._ids)).astype(np.int64)
        if len(self._ids) > _MOST_COUNTED:
            often = self._counts > 1
            self._ids, self._counts = self._ids[often], self._counts[often]

    def _is_new(self, sequence: Ids) -> bool:
        digest = hashlib.blake2b(sequence.tobytes(), digest_size=16).digest()
        is_new = digest not in self._seen
        self._seen.add(digest)
        return is_new

    def above(self, percent: float) -> tuple[Ids, Offsets]:
        """Return the ids in more than `percent` of the texts, and in LEAST_DOCUMENTS at least, and their counts."""
        chosen = (self._counts * 100 > self.documents * percent) & (self._counts >= LEAST_DOCUMENTS)
        return self._ids[chosen], self._counts[chosen]

    def counts_of(self, ids: Ids) -> Offsets:
        """Return in how many texts each of some ids is."""
        known = np.append(self._ids, np.uint64(0)), np.append(self._counts, 0)
        places = self._ids.searchsorted(ids)
        return np.where(known[0][places] == ids, known[1][places], 0)


def ignored_ids(recipe: "Recipe", shingler: "Shingler") -> Ids:
    """Return the shingles of the texts that a recipe ignores, ascending."""
    texts = [clean(text)[0] for text in recipe.match.ignore or ()]
    return np.unique(shingler.shingles(texts).ids) if texts else np.zeros(0, np.uint64)


def without(ignored: Ids, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
    """Return the ids of documents without some, given in ascending order, and their offsets."""
    if not len(ignored):
        return ids, offsets
    kept = ~are_in(ignored, ids)
    ends: Offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))
    return ids[kept], ends[offsets]


def are_in(known: Ids, ids: Ids) -> NDArray[np.bool_]:
    """Return which ids are among known ones, at least one, in ascending order."""
    found: NDArray[np.bool_] = known[np.minimum(known.searchsorted(ids), len(known) - 1)] == ids
    return found
