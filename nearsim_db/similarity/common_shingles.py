"""In how many documents shingles are: those that say nothing about a document, and weights, the rarer the heavier.

Shingles of many documents, and of texts that a recipe ignores, are left out. Frequencies are frozen with an index.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask, are_fresh, offsets_of
from nearsim_db.similarity.recipe.validation import DEFAULT_PASSAGE
from nearsim_db.similarity.text.clean import clean

if TYPE_CHECKING:
    from nearsim_db.similarity.recipe import Recipe
    from nearsim_db.similarity.text import Shingler

MOST_FREQUENT = 1 << 14  # features, 196,608 bytes, which are read with the generation
LEAST_DOCUMENTS = 20
SAMPLE_SIZE, SAMPLE_SEED = 10_000, 1
_LEAST_MERGED = 1 << 18  # ids; so that all merges together take little longer than the last
_MOST_COUNTED = (
    1 << 23
)  # 130 MB; beyond it ids counted once are dropped, which lowers other counts by one at most
_ENTRY = np.dtype([("id", "<u8"), ("count", "<u4")])


class ShingleCounts:
    """Counts in how many distinct texts each shingle is; equal texts are one."""

    def __init__(self) -> None:
        self.documents: int = 0
        self._seen: set[bytes] = set()
        self._ids, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._waiting: list[Hashes] = []
        self._size = 0  # of those waiting

    def add(self, sequences: Sequence[Hashes]) -> None:
        """Count the shingles of some texts, in any order and with repetitions."""
        fresh = [np.unique(own) for own in sequences if len(own) and _is_new(own, self._seen)]
        self.documents += len(fresh)
        self._waiting += fresh
        self._size += sum(map(len, fresh))
        if self._size > max(len(self._ids), _LEAST_MERGED):
            self._merge()

    def _merge(self) -> None:
        if not self._waiting:
            return
        own, counts = np.unique(np.concatenate([self._ids[:0], *self._waiting]), return_counts=True)
        ids, counts = np.concatenate((self._ids, own)), np.concatenate((self._counts, counts))
        order = np.argsort(ids, kind="stable")  # two ascending runs, which takes linear time
        firsts = np.flatnonzero(are_fresh(ids[order]))
        self._ids = ids[order][firsts]
        self._counts = np.add.reduceat(counts[order], firsts) if len(firsts) else counts
        self._waiting, self._size = [], 0
        if len(self._ids) > _MOST_COUNTED:
            often = self._counts > 1
            self._ids, self._counts = self._ids[often], self._counts[often]

    def above(self, percent: float) -> Hashes:
        """Return the ids in more than `percent` of the texts, and in LEAST_DOCUMENTS at least, ascending."""
        self._merge()
        return self._ids[_are_many(self._counts, self.documents, percent)]

    def most_frequent(self, most: int) -> tuple[Hashes, Ints]:
        """Return the ids in the most texts, two at least, ascending, and their counts."""
        self._merge()
        order = np.lexsort((self._ids, -self._counts))[:most]
        chosen = np.sort(order[self._counts[order] > 1])
        return self._ids[chosen], self._counts[chosen]

    def counts_of(self, ids: Hashes) -> Ints:
        """Return in how many texts each of some ids is."""
        self._merge()
        return _counts_of(ids, self._ids, self._counts, 0)


def _counts_of(ids: Hashes, known: Hashes, counts: Ints, otherwise: int) -> Ints:
    """Return the counts of ids, `otherwise` where they are not among the known ones, which ascend."""
    if not len(known):
        return np.full(len(ids), otherwise, np.int64)
    places = np.minimum(known.searchsorted(ids), len(known) - 1)
    return np.where(known[places] == ids, counts[places], otherwise)


@dataclass(frozen=True, slots=True)
class CommonShingles:
    """Hashes of shingles of too many texts, ascending; in how many of `documents` distinct texts each of them is."""

    ids: Hashes
    counts: Ints
    documents: int


def find_common(read: Callable[[], Iterable[Sequence[Hashes]]], recipe: "Recipe") -> CommonShingles:
    """Return the shingles that more than match.ignore_common percent of the texts share, though they differ elsewhere.

    A text counts for a shingle if it has a stretch of its own, where all shingles are in at most half as many texts as
    that one is: so a footer is common, but not a story of which there are many edited copies. `read` returns batches
    of the shingles of texts in their order; it is called again if any shingle may be common.
    """
    counter, percent = ShingleCounts(), recipe.match.ignore_common or 0.0
    for batch in read():
        counter.add(batch)
    often = counter.above(percent)
    holders, seen = np.zeros(len(often), np.int64), set[bytes]()
    for batch in read() if len(often) else ():
        for sequence in batch:
            own = np.unique(sequence[are_in(often, sequence)])
            if len(own) and _is_new(sequence, seen):
                least = 2 * _rarest_stretch(counter.counts_of(sequence), recipe)
                holders[often.searchsorted(own[counter.counts_of(own) >= least])] += 1
    often = often[_are_many(holders, counter.documents, percent)]
    return CommonShingles(often, counter.counts_of(often), counter.documents)


def _are_many(counts: Ints, documents: int, percent: float) -> Mask:
    many: Mask = (counts * 100 > documents * percent) & (counts >= LEAST_DOCUMENTS)
    return many


def _is_new(sequence: Hashes, seen: set[bytes]) -> bool:
    digest = hashlib.blake2b(sequence.tobytes(), digest_size=16).digest()
    is_new = digest not in seen
    seen.add(digest)
    return is_new


def _rarest_stretch(counts: Ints, recipe: "Recipe") -> int:
    """Return the least count that no shingle of some stretch exceeds, from those of a text; more than any if too short.

    A stretch has match.passage words between other shingles, or a tenth of the text if that is more. In a text of less
    than two of them it is half the text, but longer than what one changed word makes.
    """
    full = (recipe.match.passage or DEFAULT_PASSAGE) + recipe.words_around
    length = max(min(full, max(len(counts) // 2, 2 * recipe.shingle.k)), len(counts) // 10)
    return int(_maxima(counts, length).min(initial=np.iinfo(np.int32).max))


def _maxima(values: Ints, length: int) -> Ints:
    """Return the greatest of each `length` consecutive values, none if there are fewer."""
    if len(values) < length:
        return values[:0]
    size = 1
    while 2 * size <= length:
        values, size = np.maximum(values[:-size], values[size:]), 2 * size
    rest = length - size
    return np.maximum(values[: len(values) - rest], values[rest:])


def ignored_ids(recipe: "Recipe", shingler: "Shingler") -> Hashes:
    """Return the shingles of the texts that a recipe ignores, ascending."""
    texts = [clean(text)[0] for text in recipe.match.ignore or ()]
    return np.unique(shingler.shingles(texts).ids) if texts else np.zeros(0, np.uint64)


def without(ignored: Hashes, ids: Hashes, offsets: Ints) -> tuple[Hashes, Ints]:
    """Return the ids of documents without some, given in ascending order, and their offsets."""
    if not len(ignored):
        return ids, offsets
    kept = ~are_in(ignored, ids)
    ends = offsets_of(kept)
    return ids[kept], ends[offsets]


def are_in(known: Hashes, ids: Hashes) -> Mask:
    """Return which ids are among known ones, at least one, in ascending order."""
    found: Mask = known[np.minimum(known.searchsorted(ids), len(known) - 1)] == ids
    return found


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many of `documents` distinct texts each feature is; ids ascending, uint64, and counts, int64.

    These are the `MOST_FREQUENT` most frequent ones, in two texts at least. All others count as found in one text.
    """

    ids: Hashes
    counts: Ints
    documents: int

    @classmethod
    def of(cls, batches: Iterable[Sequence[Hashes]]) -> Self:
        """Count the features of texts, given in batches."""
        counter = ShingleCounts()
        for batch in batches:
            counter.add(batch)
        return cls(*counter.most_frequent(MOST_FREQUENT), counter.documents)

    @classmethod
    def from_bytes(cls, stored: bytes | None) -> Self:
        """Return what `to_bytes` stored; None: nothing was counted."""
        entries = np.frombuffer(stored or np.zeros(1, _ENTRY).tobytes(), _ENTRY)
        return cls(entries["id"][1:].copy(), entries["count"][1:].astype(np.int64), int(entries["count"][0]))

    def to_bytes(self) -> bytes:
        """Return entries of 12 bytes, little-endian: an id and its count; the first has the count of texts."""
        entries = np.zeros(len(self.ids) + 1, _ENTRY)
        entries["id"][1:], entries["count"][1:], entries["count"][0] = self.ids, self.counts, self.documents
        return entries.tobytes()

    def weights(self, ids: Hashes) -> Floats:
        """Return ln(1 + n / df) of features that df of n documents have, rounded to 32-bit floats.

        The last bits of a logarithm differ between processors.
        """
        frequency = _counts_of(ids, self.ids, self.counts, 1)
        return np.log1p(max(self.documents, 1) / frequency).astype(np.float32).astype(np.float64)


NOTHING_COUNTED = Frequencies.from_bytes(None)
