"""Features and sketches of documents in a temporary file, from their signing to the end of the build.

A mapped directory says where the features and the sketch of each document are in the file.
"""

import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self
from uuid import UUID
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Ints, Mask
from nearsim_db.similarity.batches import PackedDigests, SignatureRows, Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import FEATURE

_ENTRY = np.dtype([("begin", np.int64), ("size", np.int64), ("sketch", np.int64), ("digest", "V16")])
_DOC_ID = np.dtype(np.int64)


class SpoolDirectory:
    """Entries of documents: the place and the bytes of their features, the place of their sketch, and their digest."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, NDArray[np.void]]] = []
        self._size = 0
        self.doc_ids: Ints = np.zeros(0, _DOC_ID)
        self.entries: NDArray[np.void] = np.zeros(0, _ENTRY)

    def __len__(self) -> int:
        return self._size

    def add(self, rows: SignatureRows, sizes: Ints, begin: int, sketch_bytes: int) -> None:
        """Add documents whose features begin at a place, one after the other, and whose sketches follow."""
        part = np.empty(len(sizes), _ENTRY)
        part["digest"], part["size"] = rows.digests, sizes
        part["begin"] = begin + np.cumsum(sizes) - sizes
        part["sketch"] = begin + int(sizes.sum()) + np.arange(len(sizes)) * sketch_bytes
        self._append(rows.doc_ids, part)

    def merge(self, other: "SpoolDirectory") -> None:
        """Add the documents of a sorted directory."""
        self._append(other.doc_ids, other.entries)

    def _append(self, doc_ids: Ints, entries: NDArray[np.void]) -> None:
        self._parts.append((doc_ids, entries))
        self._size += len(doc_ids)

    def sort(self) -> None:
        """Complete the directory, so that documents are found."""
        if self._parts:
            doc_ids = np.concatenate([self.doc_ids, *(part for part, _ in self._parts)])
            entries = np.concatenate([self.entries, *(part for _, part in self._parts)])
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
        self, doc_ids: Sequence[int] | Ints, digests: NDArray[np.void] | None = None
    ) -> tuple[Ints, Mask]:
        """Return the places of documents among the entries, and which of them are here, under a digest if given."""
        wanted = np.asarray(doc_ids, np.int64)
        if not len(self.doc_ids):
            return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
        places = np.searchsorted(self.doc_ids, wanted).clip(max=len(self.doc_ids) - 1)
        here = self.doc_ids[places] == wanted
        if digests is not None:
            here &= self.entries["digest"][places] == digests
        return places, here

    def digests(self, places: Ints) -> PackedDigests:
        """Return the digests of some entries."""
        return PackedDigests(self.entries["digest"][places])


_HEADER = np.dtype(
    [("documents", np.int64), ("place", np.int64)]
)  # of a finished part; the place of its directory
_PAGE = mmap.ALLOCATIONGRANULARITY
_MOST_BYTES = 1 << 33  # for each process that writes
_PART_BYTES = 2 * _MOST_BYTES  # of the sparse file
_LEFT_FREE = 8  # times what a process has written
_MOST_DOCUMENTS = 2_000_000  # for each process, whose directory takes 48 bytes a document
_ARRAYS_AT_ONCE = 1_000  # systems take 1,024


@dataclass(frozen=True, slots=True)
class SpoolPlace:
    """Where a process writes to the file of a spool, in a temporary folder: at the first byte of its own part."""

    descriptor: int
    folder: str
    begin: int = 0


class FeatureSpool:
    """Features and sketches of documents, as long as there is room for them.

    A process takes about up to _MOST_DOCUMENTS, in up to _MOST_BYTES and an eighth of what is free on the disk. The
    file has no name, so it ends with the processes that have opened it, however they end. Several processes may write
    to parts of it, and each reads those that are finished. An entry is only valid for its digest. One thread may add
    documents, until `finish`; threads may share it after `gather`. Sketches that differ in size are left out.
    """

    def __init__(self, encoder: Encoder, place: SpoolPlace) -> None:
        self._dtype = FEATURE if encoder.metric.weighted else np.dtype(np.uint64)
        self._family = encoder.family
        self._place = place
        self.descriptor: int = place.descriptor
        self._directory = SpoolDirectory()
        self._first = place.begin + _PAGE  # after the header
        self._bytes = 0
        self._is_open, self._is_finished = True, False
        self._gathered = {place.begin}
        self.close: finalize[..., object] = finalize(self, os.close, place.descriptor)

    @classmethod
    def create(cls, encoder: Encoder) -> Self | None:
        """Create an empty spool in the temporary folder; None if there is none, or if features are not compared."""
        if not encoder.is_exact:
            return None
        try:
            with tempfile.TemporaryFile(prefix="nearsim-") as file:
                return cls(encoder, SpoolPlace(os.dup(file.fileno()), tempfile.gettempdir()))
        except OSError:
            return None

    def place_for(self, process: int) -> SpoolPlace:
        """Return the part of the file for another process: the first, second and so on."""
        return replace(self._place, begin=process * _PART_BYTES)

    @property
    def is_open(self) -> bool:
        """Whether documents can be added."""
        return self._is_open

    def add(self, rows: SignatureRows, features: Sequence[NDArray[Any]]) -> bool:
        """Add documents; return False, and stay closed, once they exceed the disk or the bounds."""
        sizes = np.array([one.nbytes for one in features], np.int64)
        begin = self._first + self._bytes
        sketches = [] if self._family.ordered else [np.ascontiguousarray(rows.sketches)]
        added = int(sizes.sum()) + sum(one.nbytes for one in sketches)
        fits = self._is_open and self._fits(added, len(sizes))
        if not fits or not self._write([*features, *sketches], begin):
            self._is_open = False
            return False
        self._directory.add(rows, sizes, begin, self._sketch_bytes)
        self._bytes += added
        return True

    def _fits(self, added: int, documents: int) -> bool:
        used = self._bytes + added
        disk = os.fstatvfs(self.descriptor)
        return (
            used <= min(_MOST_BYTES, disk.f_bavail * disk.f_frsize // _LEFT_FREE)
            and len(self._directory) + documents <= _MOST_DOCUMENTS
        )

    def stop(self) -> None:
        """Take no documents any more that are not needed."""
        self._is_open = False

    def finish(self) -> None:
        """Complete the part of this process, so that the others can read it too, if the disk has room."""
        if self._is_finished:
            return
        self.stop()
        self._is_finished = True
        self._directory.sort()
        place = self._first + self._bytes
        place += -place % _PAGE
        if len(self) and self._write(self._directory.arrays(), place):
            self._write([np.array([(len(self), place)], _HEADER)], self._place.begin)

    def gather(self) -> None:
        """Have what all other processes have finished, besides what was added here."""
        self.finish()
        for begin in range(0, os.fstat(self.descriptor).st_size, _PART_BYTES):
            header = os.pread(self.descriptor, _HEADER.itemsize, begin)
            if begin in self._gathered or len(header) < _HEADER.itemsize:
                continue
            documents, place = np.frombuffer(header, _HEADER)[0].tolist()
            if documents and place:
                self._directory.merge(SpoolDirectory.mapped(self.descriptor, place, documents))
                self._gathered.add(begin)
        self._directory.sort()

    def __len__(self) -> int:
        return len(self._directory)

    @property
    def _sketch_bytes(self) -> int:
        return self._family.k * self._family.dtype.itemsize

    def has_all(self, doc_ids: Ints, digests: NDArray[np.void]) -> bool:
        """Whether documents are all here under their digests."""
        return bool(self._directory.find(doc_ids, digests)[1].all())

    def stream_signatures(self, doc_ids: Ints) -> Iterator[Signatures]:
        """Yield the signatures of documents, which are all here, in order and in batches."""
        directory = self._directory
        is_wanted = np.zeros(len(directory), bool)
        is_wanted[directory.find(doc_ids)[0]] = True
        steps = np.diff(directory.entries["sketch"]) != self._sketch_bytes
        for low, high in pairwise(sorted({0, *(np.flatnonzero(steps) + 1).tolist(), len(directory)})):
            places = low + np.flatnonzero(is_wanted[low:high])
            begin = int(directory.entries["sketch"][low])
            content = os.pread(self.descriptor, (high - low) * self._sketch_bytes, begin)
            sketches = np.frombuffer(content, self._family.dtype).reshape(high - low, -1)[places - low]
            yield Signatures(directory.doc_ids[places], sketches, directory.digests(places))

    def read_signatures(self, doc_ids: Ints) -> Signatures | None:
        """Return the signatures of some documents; None if one of them is not here."""
        places, here = self._directory.find(doc_ids)
        if not here.all():
            return None
        begins = self._directory.entries["sketch"][places].tolist()
        content = b"".join([os.pread(self.descriptor, self._sketch_bytes, begin) for begin in begins])
        sketches = np.frombuffer(content, self._family.dtype).reshape(len(doc_ids), self._family.k)
        return Signatures(doc_ids, sketches, self._directory.digests(places))

    def get_all(self, doc_ids: Sequence[int], digests: Sequence[UUID]) -> list[NDArray[Any] | None]:
        """Return the features of several documents; None for those that are not here under their digest."""
        if not len(self):
            return [None] * len(doc_ids)
        places, here = self._directory.find(doc_ids, PackedDigests.of(digests).array)
        entries = self._directory.entries[places]
        ranges = zip(entries["begin"].tolist(), entries["size"].tolist(), here.tolist(), strict=True)
        return [
            np.frombuffer(os.pread(self.descriptor, size, begin), self._dtype) if is_here else None
            for begin, size, is_here in ranges
        ]

    def _write(self, content: Sequence[NDArray[Any]], at: int) -> bool:
        """Write arrays at a place; return False if the disk is full."""
        try:
            for first in range(0, len(content), _ARRAYS_AT_ONCE):
                part = [
                    one.view(np.uint8).data for one in content[first : first + _ARRAYS_AT_ONCE] if len(one)
                ]
                size = sum(map(len, part))
                if part and os.pwritev(self.descriptor, part, at) < size:
                    return False
                at += size
        except OSError:
            return False
        return True
