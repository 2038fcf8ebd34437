"""Temporary files with the features and sketches of documents that a build signs, kept until its pairs are verified."""

import os
import tempfile
from collections.abc import Generator, Iterable, Sequence
from threading import Lock
from typing import Any, Self
from uuid import UUID
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.feature_file import FeatureFile
from nearsim_db.similarity.arrays import Ints, Mask, Sketches
from nearsim_db.similarity.batches import PackedDigests, SignatureRows, Signatures
from nearsim_db.similarity.encoder import Encoder

_MIN_FREE_BYTES_PER_BYTE = 4
_SKETCHES_PER_BATCH = 20_000


class FeatureSpool:
    """Features and sketches by doc_id.

    Threads may add documents until `finish`, and read them afterwards. No more documents are added once the files take
    a fourth of the free disk space. An entry is valid only for its digest; if a document was added twice, the last
    entry counts. Sketches that differ in size are not kept.
    """

    def __init__(self, encoder: Encoder, file: FeatureFile) -> None:
        self.takes_features: bool = encoder.is_exact
        self.has_heads: bool = False
        self._has_sketches = not encoder.family.ordered
        self._has_features = encoder.is_exact
        self._file = file
        self._is_open = True
        self._adding = Lock()
        self._added: list[tuple[Ints, NDArray[np.void]]] = []
        self._doc_ids: Ints = np.zeros(0, np.int64)
        self.close: finalize[..., object] = finalize(self, file.close)

    @classmethod
    def create(cls, encoder: Encoder) -> Self | None:
        """Create an empty spool; return None if there is no temporary folder."""
        try:
            return cls(encoder, FeatureFile(encoder))
        except OSError:
            return None

    def __len__(self) -> int:
        """Return the number of documents, once the spool is finished."""
        return len(self._doc_ids)

    def add(self, rows: SignatureRows, features: Sequence[NDArray[Any]]) -> bool:
        """Add documents, with their features if pairs are verified by features; return False if there is no room."""
        with self._adding:
            is_whole = not self._has_features or len(features) == len(rows.doc_ids)
            if not (self._is_open and is_whole and self._has_room(rows, features)):
                self._is_open = self.takes_features = False
                return False

            no_features = [np.zeros(0, np.uint64)] * len(rows.doc_ids)
            added = features if self._has_features else no_features
            try:
                self._file.add(
                    rows.sketches if self._has_sketches else rows.sketches[:0],
                    np.concatenate(added) if len(added) else np.zeros(0, np.uint64),
                    np.fromiter(map(len, added), np.int64, len(added)),
                )
            except OSError:  # the disk is full; documents added before can still be read
                self._is_open = self.takes_features = False
                return False
            self._added.append((rows.doc_ids, rows.digests))
            return True

    def _has_room(self, rows: SignatureRows, features: Sequence[NDArray[Any]]) -> bool:
        disk = os.statvfs(tempfile.gettempdir())
        added = rows.sketches.nbytes + sum(array.nbytes for array in features)
        return (self._file.size_bytes + added) * _MIN_FREE_BYTES_PER_BYTE <= disk.f_bavail * disk.f_frsize

    def finish(self) -> None:
        """Complete the spool, so that it can be read. A second call does nothing."""
        if not self._added:
            return
        self._is_open = self.takes_features = False
        doc_ids = np.concatenate([doc_ids for doc_ids, _ in self._added])
        digests = np.concatenate([digests for _, digests in self._added])
        self._added = []
        self._file.finish()

        # The sort is stable, so the last of several equal doc_ids was added last.
        self._numbers = np.argsort(doc_ids, kind="stable")
        self._doc_ids, self._digests = doc_ids[self._numbers], digests[self._numbers]

    def _find(self, doc_ids: Ints) -> tuple[Ints, Mask]:
        """Return the places of documents among the sorted doc_ids, and a mask of the documents in the spool."""
        if not len(self._doc_ids):
            return np.zeros(len(doc_ids), np.int64), np.zeros(len(doc_ids), bool)
        places = np.searchsorted(self._doc_ids, doc_ids, side="right") - 1
        return places, (places >= 0) & (self._doc_ids[places] == doc_ids)

    def match_heads(self, heads: Iterable[tuple[Ints, NDArray[np.void]]]) -> bool:
        """Whether the spool has the sketches of all heads, so that they need not be read from the database.

        `heads` yields doc_ids and digests of some heads at a time, in order. The result is False if two heads have
        equal digests. It is also False if only the first 64 bits of two digests are equal, which is rare and merely
        causes the sketches to be read from the database.
        """
        self.has_heads = False
        parts, halves = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for doc_ids, digests in heads:
            places, is_here = self._find(doc_ids)
            if not self._has_sketches or not is_here.all() or not (self._digests[places] == digests).all():
                return False
            parts.append(doc_ids)
            halves.append(digests.view(np.uint64)[::2].copy())

        ordered = np.sort(np.concatenate(halves))
        self._heads = np.concatenate(parts)
        self.has_heads = len(ordered) > 0 and not (ordered[1:] == ordered[:-1]).any()
        return self.has_heads

    def stream_head_sketches(self) -> Generator[tuple[Ints, Sketches], None, None]:
        """Yield doc_ids and sketches of the heads in order, some at a time, after `match_heads`."""
        for at in range(0, len(self._heads), _SKETCHES_PER_BATCH):
            doc_ids = self._heads[at : at + _SKETCHES_PER_BATCH]
            yield doc_ids, self.read_signatures(doc_ids).sketches

    def read_signatures(self, doc_ids: Ints) -> Signatures:
        """Return the signatures of heads, all of which must be in the spool."""
        places, _ = self._find(doc_ids)
        sketches = self._file.read_sketches(self._numbers[places])
        return Signatures(doc_ids, sketches, PackedDigests(self._digests[places]), distinct=True)

    def get_all(self, doc_ids: Sequence[int], digests: Sequence[UUID]) -> list[NDArray[Any] | None]:
        """Return the features of documents; None for a document that the spool does not have under this digest."""
        features: list[NDArray[Any] | None] = [None] * len(doc_ids)
        if not self._has_features or not len(self._doc_ids):
            return features
        places, is_here = self._find(np.asarray(doc_ids, np.int64))
        is_here &= self._digests[places] == PackedDigests.of(digests).array

        # Read in the order in which documents were added, so that adjacent ranges are read at once.
        chosen = np.flatnonzero(is_here)
        chosen = chosen[np.argsort(self._numbers[places[chosen]])]
        numbers = self._numbers[places[chosen]]
        for row, array in zip(chosen.tolist(), self._file.read_features(numbers), strict=True):
            features[row] = array
        return features
