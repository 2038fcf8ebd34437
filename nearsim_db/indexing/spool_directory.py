"""The directory of a feature spool: where the features and the sketch of each document are in its file."""

import mmap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.batches import PackedDigests, SignatureRows

_ENTRY = np.dtype([("begin", np.int64), ("size", np.int64), ("sketch", np.int64), ("digest", "V16")])
_DOC_ID = np.dtype(np.int64)

Ids = NDArray[np.int64]


class SpoolDirectory:
    """Entries of documents: the place and the bytes of their features, the place of their sketch, and their digest."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ids, NDArray[np.void]]] = []
        self._size = 0
        self.doc_ids: Ids = np.zeros(0, _DOC_ID)
        self.entries: NDArray[np.void] = np.zeros(0, _ENTRY)

    def __len__(self) -> int:
        return self._size

    def add(self, rows: SignatureRows, sizes: Ids, begin: int, sketch_bytes: int) -> None:
        """Add documents whose features begin at a place, one after the other, and whose sketches follow."""
        part = np.empty(len(sizes), _ENTRY)
        part["digest"], part["size"] = rows.digests, sizes
        part["begin"] = begin + np.cumsum(sizes) - sizes
        part["sketch"] = begin + int(sizes.sum()) + np.arange(len(sizes)) * sketch_bytes
        self._append(rows.doc_ids, part)

    def merge(self, other: "SpoolDirectory") -> None:
        """Add the documents of a sorted directory."""
        self._append(other.doc_ids, other.entries)

    def _append(self, doc_ids: Ids, entries: NDArray[np.void]) -> None:
        self._parts.append((doc_ids, entries))
        self._size += len(doc_ids)

    def sort(self) -> None:
        """Complete the directory, so that documents are found."""
        if self._parts:
            doc_ids = np.concatenate([part for part, _ in self._parts])
            entries = np.concatenate([part for _, part in self._parts])
            order = np.argsort(doc_ids, kind="stable")
            self._parts, self.doc_ids, self.entries = [], doc_ids[order], entries[order]

    def arrays(self) -> list[NDArray[np.generic]]:
        """Return what `mapped` reads, once sorted."""
        return [self.doc_ids, self.entries]

    @classmethod
    def mapped(cls, descriptor: int, place: int, documents: int) -> "SpoolDirectory":
        """Return a sorted directory that is in a file from a place on, a multiple of mmap.ALLOCATIONGRANULARITY."""
        found = cls()
        if documents:
            first = documents * _DOC_ID.itemsize
            size = first + documents * _ENTRY.itemsize
            content = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ, offset=place)
            found.doc_ids = np.frombuffer(content, _DOC_ID, documents)
            found.entries = np.frombuffer(content, _ENTRY, documents, first)
            found._size = documents
        return found

    def find(
        self, doc_ids: Sequence[int] | Ids, digests: NDArray[np.void] | None = None
    ) -> tuple[Ids, NDArray[np.bool_]]:
        """Return the places of documents among the entries, and which of them are here, under a digest if given."""
        wanted = np.asarray(doc_ids, np.int64)
        if not len(self.doc_ids):
            return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
        places = np.searchsorted(self.doc_ids, wanted).clip(max=len(self.doc_ids) - 1)
        here = self.doc_ids[places] == wanted
        if digests is not None:
            here &= self.entries["digest"][places] == digests
        return places, here

    def digests(self, places: Ids) -> PackedDigests:
        """Return the digests of some entries."""
        return PackedDigests(self.entries["digest"][places])
