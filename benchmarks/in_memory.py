"""Compute the features of a corpus in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.truth import Ints
from nearsim_db.records import Document
from nearsim_db.similarity.encoder import Encoder

Ids = npt.NDArray[np.uint64]

_TEXTS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class FeatureSets:
    """The features of a corpus, stored once for documents with equal features; the first of these is their head."""

    head_of: Ints  # int64, the row of the head of each document, -1 for a document without features
    heads: Ints  # the rows of the heads, ascending
    sets: list[Ids]  # the features of each head

    def members(self) -> dict[int, list[int]]:
        """Return for each head the rows of the documents with its features, including the head."""
        by_head: dict[int, list[int]] = {head: [] for head in self.heads.tolist()}
        for row, head in enumerate(self.head_of.tolist()):
            if head >= 0:
                by_head[head].append(row)
        return by_head


def read_features(encoder: Encoder, documents: Sequence[Document]) -> FeatureSets:
    """Compute the features of all documents; documents with equal digests have the first of them as head."""
    head_of = np.full(len(documents), -1, np.int64)
    by_digest: dict[bytes, int] = {}
    heads, sets = [], []

    for begin in range(0, len(documents), _TEXTS_AT_ONCE):
        batch = documents[begin : begin + _TEXTS_AT_ONCE]
        features = encoder.features(
            [encoder.content_of(document.title, document.body, document.vector) for document in batch]
        )
        for place in range(len(batch)):
            ids = features.of(place)
            if not len(ids):
                continue
            row = begin + place
            head_of[row] = head = by_digest.setdefault(encoder.digest(ids), row)
            if head == row:
                heads.append(row)
                # Copy, because a view would keep the features of the whole batch in memory.
                sets.append(ids.copy())
    return FeatureSets(head_of, np.array(heads, np.int64), sets)


def distinct(values: Ints) -> Ints:
    """Return the distinct values, ascending.

    NumPy 2.4 implements np.unique by hashing, which is 50 times slower on ten million values.
    """
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
