"""Features and sketches of documents in a temporary file, from their signing to the end of the build.

Each process writes to a part of its own of the sparse file: a header, a directory, which says where the features and
the sketch of each document are, and these. Directories that are finished are mapped, so that none is held in memory.
Band keys of all heads, if they are too many for memory, are in the first part after the documents.
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
_KEYS_BEGIN = _MOST_BYTES + _MOST_BYTES // 2
_LEFT_BY_FEATURES, _LEFT_FREE = 4, 2  # times what all processes have written; of sketches and band keys
_NO_FEATURES = -1  # the size in an entry
_ARRAYS_AT_ONCE = 1_000  # systems take 1,024
_SKETCHES_AT_ONCE = 20_000


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
    files: tuple[mmap.mmap, ...]

    @classmethod
    def mapped(cls, place: SpoolPlace, documents: int, access: int = mmap.ACCESS_READ) -> Self:
        """Return the directory of a part that has documents."""
        dtypes = (_DOC_ID, _ENTRY)
        files = tuple(
            mmap.mmap(place.descriptor, documents * dtype.itemsize, access=access, offset=at)
            for at, dtype in zip(place.directory, dtypes, strict=False)
        )
        return cls(np.frombuffer(files[0], np.int64), np.frombuffer(files[1], _ENTRY), files)

    def release(self) -> None:
        """Give back the memory of what was read; the file has it."""
        for one in self.files:
            one.madvise(mmap.MADV_DONTNEED)

    def sort(self) -> None:
        """Sort a directory that was mapped for writing."""
        order = np.argsort(self.doc_ids, kind="stable")
        self.doc_ids[:], self.entries[:] = self.doc_ids[order], self.entries[order]

    def find(self, wanted: Ints) -> tuple[Ints, Mask]:
        """Return the places of documents among the entries, and which of them are here."""
        places = np.searchsorted(self.doc_ids, wanted).clip(max=len(self.doc_ids) - 1)
        return places, self.doc_ids[places] == wanted


@dataclass(frozen=True, slots=True)
class SpooledKeys:
    """Band keys of n heads in a mapped file: doc_ids int64 of n, ascending; keys int64 (n, bands)."""

    doc_ids: Ints
    keys: Ints
    file: mmap.mmap

    @classmethod
    def mapped(cls, descriptor: int, heads: int, bands: int, access: int = mmap.ACCESS_READ) -> Self:
        """Return those of a file."""
        first = _PAGE + heads * _DOC_ID.itemsize
        content = mmap.mmap(descriptor, cls.size(heads, bands), access=access, offset=_KEYS_BEGIN)
        keys = np.frombuffer(content, _DOC_ID, heads * bands, first)
        return cls(np.frombuffer(content, _DOC_ID, heads, _PAGE), keys.reshape(heads, bands), content)

    @staticmethod
    def size(heads: int, bands: int) -> int:
        """Return the bytes of a header, doc_ids and keys."""
        return _PAGE + heads * (1 + bands) * _DOC_ID.itemsize

    def release(self) -> None:
        """Give back the memory of what was read or written; the file has it."""
        self.file.madvise(mmap.MADV_DONTNEED)


class FeatureSpool:
    """Features and sketches of documents, as long as there is room for them.

    A process takes up to _MOST_DOCUMENTS and _MOST_BYTES. All together take features until they have used a fifth of
    what was free on the disk, and sketches alone until they have used a third. The file has no name, so it ends with
    the processes that have opened it, however they end. Each of several processes reads the parts that are finished. An
    entry is only valid for its digest. One thread may add documents, until `finish`; threads may share it after
    `gather`. Sketches that differ in size are left out.
    """

    def __init__(self, encoder: Encoder, place: SpoolPlace) -> None:
        self._dtype = FEATURE if encoder.metric.weighted else np.dtype(np.uint64)
        self._family = encoder.family
        self._place = place
        self.descriptor: int = place.descriptor
        self._documents = self._bytes = 0
        self._newest = -1
        self._is_sorted, self._is_open, self._takes_features = True, True, True
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
    def takes_features(self) -> bool:
        """Whether features of more documents are kept."""
        return self._takes_features

    def add(self, rows: SignatureRows, features: Sequence[NDArray[Any]]) -> bool:
        """Add documents; return whether their features are kept, which are not given once there is no room for more."""
        sketches = [] if self._family.ordered else [np.ascontiguousarray(rows.sketches)]
        content, count = [*features, *sketches], len(rows.doc_ids)
        self._takes_features &= len(features) == count and self._fits(content, count, _LEFT_BY_FEATURES)
        if not self._takes_features:
            content, features = sketches, ()
        self._is_open &= (self._takes_features or bool(sketches)) and self._fits(content, count, _LEFT_FREE)
        self._is_open = self._is_open and self._append(rows, features, content)
        self._takes_features &= self._is_open
        return self._takes_features

    def _append(
        self, rows: SignatureRows, features: Sequence[NDArray[Any]], content: Sequence[NDArray[Any]]
    ) -> bool:
        """Write documents with features, or none, and all `content`; return False if the disk is full."""
        doc_ids, entries, first = self._place.directory
        begin, count = first + self._bytes, self._documents
        part = np.empty(len(rows.doc_ids), _ENTRY)
        sizes = np.array([one.nbytes for one in features], np.int64)
        part["digest"], part["size"] = rows.digests, sizes if len(sizes) else _NO_FEATURES
        part["begin"] = begin + np.cumsum(sizes) - sizes if len(sizes) else begin
        part["sketch"] = begin + int(sizes.sum()) + np.arange(len(part)) * self._sketch_bytes
        is_written = (
            self._write(content, begin)
            and self._write([np.ascontiguousarray(rows.doc_ids)], doc_ids + count * _DOC_ID.itemsize)
            and self._write([part], entries + count * _ENTRY.itemsize)
        )
        if is_written and len(part):
            self._bytes += sum(one.nbytes for one in content)
            self._documents += len(part)
            self._is_sorted &= bool((np.diff(rows.doc_ids, prepend=self._newest) > 0).all())
            self._newest = int(rows.doc_ids[-1])
        return is_written

    def _fits(self, content: Sequence[NDArray[Any]], documents: int, left_free: int) -> bool:
        added = sum(one.nbytes for one in content)
        return (
            self._bytes + added <= _MOST_BYTES
            and self._documents + documents <= _MOST_DOCUMENTS
            and self._has_room(added, left_free)
        )

    def _has_room(self, added: int, left_free: int) -> bool:
        """Whether the disk has so many times as much free as all processes will have written."""
        disk, file = os.fstatvfs(self.descriptor), os.fstat(self.descriptor)
        return file.st_blocks * 512 + added <= disk.f_bavail * disk.f_frsize // left_free

    def stop_features(self) -> None:
        """Keep no features of further documents."""
        self._takes_features = False

    def finish(self) -> None:
        """Complete the part of this process, so that all can read it, if the disk has room."""
        if self._place.begin in self._parts:
            return
        self._is_open = self._takes_features = False
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
        entries, here = self._find(doc_ids)
        self._release()
        return bool((here & (entries["digest"] == digests)).all())

    def _release(self) -> None:
        for part in self._parts.values():
            part.release()

    def stream_signatures(self, doc_ids: Ints) -> Iterator[Signatures]:
        """Yield the signatures of documents, which are all here and ascend, in batches in the order of the file."""
        for part in self._parts.values():
            places, here = part.find(doc_ids)
            yield from self._stream_part(part, places[here])
            part.release()
            doc_ids = doc_ids[~here]

    def _stream_part(self, part: _Part, places: Ints) -> Iterator[Signatures]:
        is_wanted = np.zeros(len(part.doc_ids), bool)
        is_wanted[places] = True
        steps = np.diff(part.entries["sketch"]) != self._sketch_bytes
        bounds = {0, *(np.flatnonzero(steps) + 1).tolist(), *range(0, len(is_wanted), _SKETCHES_AT_ONCE)}
        for low, high in pairwise(sorted({*bounds, len(is_wanted)})):
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
        content = b"".join(self._read_all(entries["sketch"], np.full(len(entries), self._sketch_bytes)))
        sketches = np.frombuffer(content, self._family.dtype).reshape(len(doc_ids), self._family.k)
        return Signatures(doc_ids, sketches, PackedDigests(entries["digest"]))

    def get_all(self, doc_ids: Sequence[int], digests: Sequence[UUID]) -> list[NDArray[Any] | None]:
        """Return the features of several documents; None for those that are not here under their digest."""
        if not self._parts:
            return [None] * len(doc_ids)
        entries, here = self._find(np.asarray(doc_ids, np.int64))
        here &= (entries["digest"] == PackedDigests.of(digests).array) & (entries["size"] != _NO_FEATURES)
        found: list[NDArray[Any] | None] = [None] * len(doc_ids)
        contents = self._read_all(entries["begin"][here], entries["size"][here])
        for place, content in zip(np.flatnonzero(here).tolist(), contents, strict=True):
            found[place] = np.frombuffer(content, self._dtype)
        return found

    def _read_all(self, begins: Ints, sizes: Ints) -> list[bytes]:
        """Return parts of the file, all of which the system is asked for before the first is read."""
        ranges = list(zip(begins.tolist(), sizes.tolist(), strict=True))
        for begin, size in ranges:
            if size:
                os.posix_fadvise(self.descriptor, begin, size, os.POSIX_FADV_WILLNEED)
        return [os.pread(self.descriptor, size, begin) for begin, size in ranges]

    def create_keys(self, doc_ids: Ints, bands: int) -> SpooledKeys | None:
        """Return a place for the band keys of all heads, which are to be written; None if the disk has no room."""
        size = SpooledKeys.size(len(doc_ids), bands)
        try:
            if size > _PART_BYTES - _KEYS_BEGIN or not self._has_room(size, _LEFT_FREE):
                return None
            os.posix_fallocate(self.descriptor, _KEYS_BEGIN, size)
        except OSError:
            return None
        created = SpooledKeys.mapped(self.descriptor, len(doc_ids), bands, mmap.ACCESS_WRITE)
        created.doc_ids[:] = doc_ids
        return created

    def complete_keys(self, written: SpooledKeys) -> None:
        """Have all processes find the band keys."""
        self._write([np.array([len(written.doc_ids)])], _KEYS_BEGIN)

    def find_keys(self, bands: int) -> SpooledKeys | None:
        """Return the band keys of all heads, if a process has completed them."""
        heads = int.from_bytes(os.pread(self.descriptor, _DOC_ID.itemsize, _KEYS_BEGIN), sys.byteorder)
        return SpooledKeys.mapped(self.descriptor, heads, bands) if heads else None

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
