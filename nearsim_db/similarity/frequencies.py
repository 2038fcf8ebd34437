"""Document frequencies of features, frozen with an index: weights of features, the rarer the heavier."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from nearsim_db.similarity.arrays import Floats, Hashes, Ints
from nearsim_db.similarity.common_shingles import ShingleCounts

MOST = 1 << 14  # features, 196,608 bytes, which are read with the generation
_ENTRY = np.dtype([("id", "<u8"), ("count", "<u4")])


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many of `documents` distinct texts each feature is; ids ascending, uint64, and counts, int64.

    These are the `MOST` most frequent ones, in two texts at least. All others count as found in one text.
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
        return cls(*counter.most_frequent(MOST), counter.documents)

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
        frequency = np.ones(len(ids), np.int64)
        if len(self.ids):
            places = np.minimum(self.ids.searchsorted(ids), len(self.ids) - 1)
            frequency = np.where(self.ids[places] == ids, self.counts[places], 1)
        return np.log1p(max(self.documents, 1) / frequency).astype(np.float32).astype(np.float64)


NOTHING_COUNTED = Frequencies.from_bytes(None)
