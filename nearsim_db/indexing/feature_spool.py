"""Features and sketches of documents in a temporary file, from their signing to the end of the build.

Each process writes to a part of its own of the sparse file: a header, a directory, which says where the features and
the sketch of each document are, and these. Directories that are finished are mapped, so that none is held in memory.
"""

import mmap
import os
import sys
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
_PAGE = mmap.ALLOCATIONGRANULARITY
_MOST_DOCUMENTS = 1 << 25  # for each process that writes
_MOST_BYTES = 1 << 35
_PART_BYTES = 2 * _MOST_BYTES
_LEFT_FREE = 4  # times what all processes have written
_ARRAYS_AT_ONCE = 1_000  # systems take 1,024
_DOCUMENTS_AT_ONCE = 1_000_000  # 40 MB of entries


@dataclass(frozen=True, slots=True)
class SpoolPlace:
    """Where a process writes to the file of a spool, in a temporary folder: at the first byte of its own part."""

    descriptor: int
    folder: str
    begin: int = 0

    @property
    def directory(self) -> tuple[int, int, int]:
        """The places of the doc_ids, of the entries, and of what they describe, each a multiple of a page."""
        doc_ids = self.begin + _PAGE
        entries = doc_ids + _whole_pages(_MOST_DOCUMENTS * _DOC_ID.itemsize)
        return doc_ids, entries, entries + _whole_pages(_MOST_DOCUMENTS * _ENTRY.itemsize)


def _whole_pages(size: int) -> int:
    return size + -size % _PAGE


@dataclass(frozen=True, slots=True)
class _Part:
    """The mapped directory of a process: doc_ids, int64 ascending, and as many entries."""

    doc_ids: Ints
    entries: NDArray[np.void]

    @classmethod
    def mapped(cls, place: SpoolPlace, documents: int, access: int = mmap.ACCESS_READ) -> Self:
        """Return the directory of a part that has documents."""
        arrays = [
            np.frombuffer(
                mmap.mmap(place.descriptor, documents * dtype.itemsize, access=access, offset=at), dtype
            )
            for at, dtype in zip(place.directory, (_DOC_ID, _ENTRY), strict=False)
        ]
        return cls(*arrays)

    def sort(self) -> None:
        """Sort a directory that was mapped for writing."""
        order = np.argsort(self.doc_ids, kind="stable")
        self.doc_ids[:], self.entries[:] = self.doc_ids[order], self.entries[order]

    def find(self, wanted: Ints) -> tuple[Ints, Mask]:
        """Return the places of documents among the entries, and which of them are here."""
        places = np.searchsorted(self.doc_ids, wanted).clip(max=len(self.doc_ids) - 1)
        return places, self.doc_ids[places] == wanted


class FeatureSpool:
    """Features and sketches of documents, as long as there is room for them.

    A process takes up to _MOST_DOCUMENTS and _MOST_BYTES, and all together a fifth of what was free on the disk. The
    file has no name, so it ends with the processes that have opened it, however they end. Each of several processes
    reads the parts that are finished. An entry is only valid for its digest. One thread may add documents, until
    `finish`; threads may share it after `gather`. Sketches that differ in size are left out.
    """

    def __init__(self, encoder: Encoder, place: SpoolPlace) -> None:
        self._dtype = FEATURE if encoder.metric.weighted else np.dtype(np.uint64)
        self._family = encoder.family
        self._place = place
        self.descriptor: int = place.descriptor
        self._documents = self._bytes = 0
        self._newest = -1
        self._is_sorted, self._is_open, self._is_finished = True, True, False
        self._parts: dict[int, _Part] = {}
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
        doc_ids, entries, first = self._place.directory
        begin, count = first + self._bytes, self._documents
        part = np.empty(len(features), _ENTRY)
        sizes = np.array([one.nbytes for one in features], np.int64)
        part["digest"], part["size"] = rows.digests, sizes
        part["begin"] = begin + np.cumsum(sizes) - sizes
        part["sketch"] = begin + int(sizes.sum()) + np.arange(len(sizes)) * self._sketch_bytes
        sketches = [] if self._family.ordered else [np.ascontiguousarray(rows.sketches)]
        added = int(sizes.sum()) + sum(one.nbytes for one in sketches)
        self._is_open = (
            self._is_open
            and self._fits(added, len(sizes))
            and self._write([*features, *sketches], begin)
            and self._write([np.ascontiguousarray(rows.doc_ids)], doc_ids + count * _DOC_ID.itemsize)
            and self._write([part], entries + count * _ENTRY.itemsize)
        )
        if self._is_open and len(part):
            self._bytes += added
            self._documents += len(part)
            self._is_sorted &= bool((np.diff(rows.doc_ids, prepend=self._newest) > 0).all())
            self._newest = int(rows.doc_ids[-1])
        return self._is_open

    def _fits(self, added: int, documents: int) -> bool:
        disk, file = os.fstatvfs(self.descriptor), os.fstat(self.descriptor)
        return (
            self._bytes + added <= _MOST_BYTES
            and self._documents + documents <= _MOST_DOCUMENTS
            and file.st_blocks * 512 + added <= disk.f_bavail * disk.f_frsize // _LEFT_FREE
        )

    def stop(self) -> None:
        """Take no documents any more that are not needed."""
        self._is_open = False

    def finish(self) -> None:
        """Complete the part of this process, so that all can read it, if the disk has room."""
        if self._is_finished:
            return
        self.stop()
        self._is_finished = True
        if self._documents:
            if not self._is_sorted:
                _Part.mapped(self._place, self._documents, mmap.ACCESS_WRITE).sort()
            self._write([np.array([self._documents])], self._place.begin)
            self._map(self._place.begin)

    def gather(self) -> None:
        """Have what all processes have finished, this one too."""
        self.finish()
        for begin in range(0, os.fstat(self.descriptor).st_size, _PART_BYTES):
            if begin not in self._parts:
                self._map(begin)

    def _map(self, begin: int) -> None:
        documents = int.from_bytes(os.pread(self.descriptor, _DOC_ID.itemsize, begin), sys.byteorder)
        if documents:
            self._parts[begin] = _Part.mapped(replace(self._place, begin=begin), documents)

    def __len__(self) -> int:
        """Return the number of documents that were gathered."""
        return sum(len(part.doc_ids) for part in self._parts.values())

    @property
    def _sketch_bytes(self) -> int:
        return self._family.k * self._family.dtype.itemsize

    def _find(self, doc_ids: Ints) -> tuple[NDArray[np.void], Mask]:
        """Return the entries of documents, each of the first part that has it, and which of them are here."""
        entries, here = np.zeros(len(doc_ids), _ENTRY), np.zeros(len(doc_ids), bool)
        for part in self._parts.values():
            places, found = part.find(doc_ids)
            found &= ~here
            entries[found] = part.entries[places[found]]
            here |= found
        return entries, here

    def has_all(self, doc_ids: Ints, digests: NDArray[np.void]) -> bool:
        """Whether documents are all here under their digests."""
        for at in range(0, len(doc_ids), _DOCUMENTS_AT_ONCE):
            part = slice(at, at + _DOCUMENTS_AT_ONCE)
            entries, here = self._find(doc_ids[part])
            if not (here & (entries["digest"] == digests[part])).all():
                return False
        return True

    def stream_signatures(self, doc_ids: Ints) -> Iterator[Signatures]:
        """Yield the signatures of documents, which are all here and ascend, in batches in the order of the file."""
        for part in self._parts.values():
            places, here = part.find(doc_ids)
            yield from self._stream_part(part, places[here])
            doc_ids = doc_ids[~here]

    def _stream_part(self, part: _Part, places: Ints) -> Iterator[Signatures]:
        is_wanted = np.zeros(len(part.doc_ids), bool)
        is_wanted[places] = True
        steps = np.diff(part.entries["sketch"]) != self._sketch_bytes
        for low, high in pairwise(sorted({0, *(np.flatnonzero(steps) + 1).tolist(), len(is_wanted)})):
            chosen = low + np.flatnonzero(is_wanted[low:high])
            content = os.pread(
                self.descriptor, (high - low) * self._sketch_bytes, int(part.entries["sketch"][low])
            )
            sketches = np.frombuffer(content, self._family.dtype).reshape(high - low, -1)[chosen - low]
            yield Signatures(part.doc_ids[chosen], sketches, PackedDigests(part.entries["digest"][chosen]))

    def read_signatures(self, doc_ids: Ints) -> Signatures | None:
        """Return the signatures of some documents; None if one of them is not here."""
        entries, here = self._find(doc_ids)
        if not here.all():
            return None
        begins = entries["sketch"].tolist()
        content = b"".join([os.pread(self.descriptor, self._sketch_bytes, begin) for begin in begins])
        sketches = np.frombuffer(content, self._family.dtype).reshape(len(doc_ids), self._family.k)
        return Signatures(doc_ids, sketches, PackedDigests(entries["digest"]))

    def get_all(self, doc_ids: Sequence[int], digests: Sequence[UUID]) -> list[NDArray[Any] | None]:
        """Return the features of several documents; None for those that are not here under their digest."""
        if not self._parts:
            return [None] * len(doc_ids)
        entries, here = self._find(np.asarray(doc_ids, np.int64))
        here &= entries["digest"] == PackedDigests.of(digests).array
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
