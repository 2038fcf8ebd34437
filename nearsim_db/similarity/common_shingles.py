"""Document frequencies of shingles: common shingles are left out, and rare features have more weight.

Shingles that many documents have, or that are in texts ignored by the recipe, say nothing about a document. An index
keeps the frequencies with which it was built.
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

# These features take 196,608 bytes, which are read together with the generation.
MAX_FREQUENT_FEATURES = 1 << 14
MIN_COMMON_DOCUMENTS = 20
SAMPLE_SIZE, SAMPLE_SEED = 10_000, 1
# A merge has at least this number of ids. Merges grow, so all of them together take little longer than the last one.
_MIN_MERGED_IDS = 1 << 18
# This number of ids takes 130 MB. If there are more, ids that were counted once are dropped. Counts of ids that occur
# again are then too low by one.
_MAX_COUNTED_IDS = 1 << 23
_ENTRY = np.dtype([("id", "<u8"), ("count", "<u4")])


class ShingleCounts:
    """Counts the distinct texts in which each shingle occurs. Equal texts count once."""

    def __init__(self) -> None:
        self.documents: int = 0
        self._seen: set[bytes] = set()
        self._ids, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._waiting: list[Hashes] = []
        self._waiting_ids = 0

    def add(self, sequences: Sequence[Hashes]) -> None:
        """Count the shingles of texts. The shingles of a text may have any order, and may repeat."""
        fresh = [np.unique(ids) for ids in sequences if len(ids) and _is_new(ids, self._seen)]
        self.documents += len(fresh)
        self._waiting += fresh
        self._waiting_ids += sum(map(len, fresh))
        if self._waiting_ids > max(len(self._ids), _MIN_MERGED_IDS):
            self._merge()

    def _merge(self) -> None:
        if not self._waiting:
            return

        waiting, counts = np.unique(np.concatenate([self._ids[:0], *self._waiting]), return_counts=True)
        ids, counts = np.concatenate((self._ids, waiting)), np.concatenate((self._counts, counts))
        # Sorting two ascending runs takes linear time, because a stable sort merges them.
        order = np.argsort(ids, kind="stable")
        firsts = np.flatnonzero(are_fresh(ids[order]))
        self._ids = ids[order][firsts]
        self._counts = np.add.reduceat(counts[order], firsts) if len(firsts) else counts
        self._waiting, self._waiting_ids = [], 0

        if len(self._ids) > _MAX_COUNTED_IDS:
            is_repeated = self._counts > 1
            self._ids, self._counts = self._ids[is_repeated], self._counts[is_repeated]

    def above(self, percent: float) -> Hashes:
        """Return the ids that are in more than `percent` of the texts and in at least MIN_COMMON_DOCUMENTS,
        ascending.
        """
        self._merge()
        return self._ids[_are_common(self._counts, self.documents, percent)]

    def most_frequent(self, max_ids: int) -> tuple[Hashes, Ints]:
        """Return the `max_ids` ids that are in the most texts, ascending, and their counts.

        Ids that are in a single text are left out.
        """
        self._merge()
        order = np.lexsort((self._ids, -self._counts))[:max_ids]
        places = np.sort(order[self._counts[order] > 1])
        return self._ids[places], self._counts[places]

    def counts_of(self, ids: Hashes) -> Ints:
        """Return the number of texts in which each id occurs."""
        self._merge()
        return _counts_of(ids, self._ids, self._counts, 0)


def _counts_of(ids: Hashes, counted: Hashes, counts: Ints, otherwise: int) -> Ints:
    """Return the counts of ids, or `otherwise` for an id that is not in `counted`, which is ascending."""
    if not len(counted):
        return np.full(len(ids), otherwise, np.int64)
    places = np.minimum(counted.searchsorted(ids), len(counted) - 1)
    return np.where(counted[places] == ids, counts[places], otherwise)


@dataclass(frozen=True, slots=True)
class CommonShingles:
    """Shingles that are in too many texts."""

    ids: Hashes  # ascending
    counts: Ints  # number of distinct texts with each shingle
    documents: int  # number of distinct texts that were counted


def find_common(read: Callable[[], Iterable[Sequence[Hashes]]], recipe: "Recipe") -> CommonShingles:
    """Return the shingles that are shared by more than match.ignore_common percent of otherwise different texts.

    A text counts for a shingle only if it also has a stretch of text in which every shingle is in at most half as many
    texts. The shingles of a footer are therefore common, but the shingles of a story with many edited copies are not.

    `read` returns batches of the shingles of texts, in the order of the text. It is called a second time if any shingle
    may be common.
    """
    counter, percent = ShingleCounts(), recipe.match.ignore_common or 0.0
    for batch in read():
        counter.add(batch)
    frequent = counter.above(percent)

    # Count the texts that also have a rarer stretch.
    differing, seen = np.zeros(len(frequent), np.int64), set[bytes]()
    for batch in read() if len(frequent) else ():
        for sequence in batch:
            shared = np.unique(sequence[are_in(frequent, sequence)])
            if len(shared) and _is_new(sequence, seen):
                min_count = 2 * _rarest_stretch(counter.counts_of(sequence), recipe)
                differing[frequent.searchsorted(shared[counter.counts_of(shared) >= min_count])] += 1
    common = frequent[_are_common(differing, counter.documents, percent)]
    return CommonShingles(common, counter.counts_of(common), counter.documents)


def _are_common(counts: Ints, documents: int, percent: float) -> Mask:
    common: Mask = (counts * 100 > documents * percent) & (counts >= MIN_COMMON_DOCUMENTS)
    return common


def _is_new(sequence: Hashes, seen: set[bytes]) -> bool:
    digest = hashlib.blake2b(sequence.tobytes(), digest_size=16).digest()
    is_new = digest not in seen
    seen.add(digest)
    return is_new


def _rarest_stretch(counts: Ints, recipe: "Recipe") -> int:
    """Return how common the rarest stretch of a text is: the smallest value of its stretches' largest counts.

    `counts` are the counts of the shingles of the text, in the order of the text. The result is a very large number if
    the text is too short for a stretch. A stretch has match.passage words between other shingles, or a tenth of the
    text if that is more. In a text of less than two such stretches, a stretch is half the text, but longer than the
    shingles that a single changed word affects.
    """
    full = (recipe.match.passage or DEFAULT_PASSAGE) + recipe.words_around
    length = max(min(full, max(len(counts) // 2, 2 * recipe.shingle.k)), len(counts) // 10)
    return int(_maxima(counts, length).min(initial=np.iinfo(np.int32).max))


def _maxima(values: Ints, length: int) -> Ints:
    """Return the maximum of each `length` consecutive values, or an empty array if there are fewer values."""
    if len(values) < length:
        return values[:0]
    size = 1
    while 2 * size <= length:
        values, size = np.maximum(values[:-size], values[size:]), 2 * size
    shift = length - size
    return np.maximum(values[: len(values) - shift], values[shift:])


def ignored_ids(recipe: "Recipe", shingler: "Shingler") -> Hashes:
    """Return the ids of the shingles of the texts in match.ignore, ascending."""
    texts = [clean(text)[0] for text in recipe.match.ignore or ()]
    return np.unique(shingler.shingles(texts).ids) if texts else np.zeros(0, np.uint64)


def without(ignored: Hashes, ids: Hashes, offsets: Ints) -> tuple[Hashes, Ints]:
    """Remove ignored ids, which are ascending, from the ids of documents. Return the ids and the offsets of
    documents.
    """
    if not len(ignored):
        return ids, offsets
    kept = ~are_in(ignored, ids)
    ends = offsets_of(kept)
    return ids[kept], ends[offsets]


def are_in(ascending: Hashes, ids: Hashes) -> Mask:
    """Return which ids are in `ascending`, a sorted array that is not empty: bool of the shape of `ids`."""
    are_equal: Mask = ascending[np.minimum(ascending.searchsorted(ids), len(ascending) - 1)] == ids
    return are_equal


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Document frequencies of features.

    Only the `MAX_FREQUENT_FEATURES` most frequent features are kept, if they are in at least two texts. Every other
    feature counts as if it were in one text.
    """

    ids: Hashes  # ascending
    counts: Ints  # number of distinct texts with each feature
    documents: int  # number of distinct texts that were counted

    @classmethod
    def of(cls, batches: Iterable[Sequence[Hashes]]) -> Self:
        """Count the features of batches of texts."""
        counter = ShingleCounts()
        for batch in batches:
            counter.add(batch)
        return cls(*counter.most_frequent(MAX_FREQUENT_FEATURES), counter.documents)

    @classmethod
    def from_bytes(cls, stored: bytes | None) -> Self:
        """Return the frequencies that `to_bytes` encoded. None means that no texts were counted."""
        entries = np.frombuffer(stored or np.zeros(1, _ENTRY).tobytes(), _ENTRY)
        return cls(entries["id"][1:].copy(), entries["count"][1:].astype(np.int64), int(entries["count"][0]))

    def to_bytes(self) -> bytes:
        """Encode the frequencies as entries of 12 bytes, little-endian: an id (8 bytes) and its count (4 bytes).

        The count of the first entry, before these, is the number of texts.
        """
        entries = np.zeros(len(self.ids) + 1, _ENTRY)
        entries["id"][1:], entries["count"][1:], entries["count"][0] = self.ids, self.counts, self.documents
        return entries.tobytes()

    def weights(self, ids: Hashes) -> Floats:
        """Return the weights ln(1 + n / df) of features that df of n documents have.

        Weights are rounded to 32-bit floats, because the last bits of a logarithm differ between processors.
        """
        frequency = _counts_of(ids, self.ids, self.counts, 1)
        return np.log1p(max(self.documents, 1) / frequency).astype(np.float32).astype(np.float64)


NOTHING_COUNTED = Frequencies.from_bytes(None)
