"""Features and sketches of documents in a temporary file, from their signing to the end of the build."""

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

from nearsim_db.errors import NearsimError
from nearsim_db.similarity.batches import PackedDigests, SignatureRows, Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import FEATURE

_MOST_BYTES = 512 << 20
_MOST_DOCUMENTS = 1_000_000
_PART_BYTES = 1 << 33  # of a sparse file, for each process that writes
_ARRAYS_AT_ONCE = 1_000  # systems take 1,024
_ENTRY = np.dtype(
    [("doc_id", np.int64), ("begin", np.int64), ("size", np.int64), ("sketch", np.int64), ("digest", "V16")]
)


@dataclass(frozen=True, slots=True)
class SpoolPlace:
    """Where a process writes to the file of a spool, in a temporary folder: at the first byte of its own part."""

    descriptor: int
    folder: str
    begin: int = 0


@dataclass(frozen=True, slots=True)
class SpoolHandle:
    """What a process that has the file needs to read a finished spool: the place of its directory, and its length."""

    place: SpoolPlace
    documents: int


class FeatureSpool:
    """Features and sketches of about up to _MOST_DOCUMENTS documents, in up to _MOST_BYTES on disk.

    The file has no name, so it ends with the processes that have opened it, however they end. Several processes may
    write to parts of it, and one reads their directories. An entry is only valid for its digest. One thread may add
    documents, until `finish`; threads may share it then.
    """

    def __init__(self, encoder: Encoder, place: SpoolPlace) -> None:
        self._dtype = FEATURE if encoder.metric.weighted else np.dtype(np.uint64)
        self._family = encoder.family
        self._place = place
        self.descriptor = place.descriptor
        self._parts: list[NDArray[np.void]] = []
        self._entries = np.zeros(0, _ENTRY)
        self._bytes = self._documents = 0
        self._is_open = True
        self._is_needed = False
        self.close = finalize(self, os.close, place.descriptor)

    @classmethod
    def create(cls, encoder: Encoder) -> Self | None:
        """Create an empty spool in the temporary folder; None if there is none, or if features are not compared."""
        if encoder.profile.recipe.match.verify == "estimate":
            return None
        try:
            with tempfile.TemporaryFile(prefix="nearsim-") as file:
                return cls(encoder, SpoolPlace(os.dup(file.fileno()), tempfile.gettempdir()))
        except OSError:
            return None

    @classmethod
    def inherited(cls, encoder: Encoder, handle: SpoolHandle) -> Self:
        """Open the finished spool of a parent process."""
        spool = cls(encoder, handle.place)
        spool.load(handle)
        return spool

    def place_for(self, process: int) -> SpoolPlace:
        """Return the part of the file for another process: the first, second and so on."""
        return replace(self._place, begin=process * _PART_BYTES)

    def merge(self, handle: SpoolHandle) -> None:
        """Add the directory of a finished spool in the same file, before this one is finished."""
        content = os.pread(self.descriptor, handle.documents * _ENTRY.itemsize, handle.place.begin)
        self._parts.append(np.frombuffer(content, _ENTRY))
        self._documents += handle.documents

    def load(self, handle: SpoolHandle) -> None:
        """Have all that another process has finished, in the same file, instead of what was added here."""
        self._parts, self._documents = [], 0
        self.merge(handle)
        self.finish()

    @property
    def is_open(self) -> bool:
        """Whether documents can be added."""
        return self._is_open

    def add(self, rows: SignatureRows, features: Sequence[NDArray[Any]], *, is_needed: bool = False) -> bool:
        """Add documents; return False, and stay closed, once they exceed the disk or the bounds.

        Needed ones, which cannot be computed from stored texts, may be the last to exceed the bounds. Raises
        NearsimError if there is no disk space for them.
        """
        self._is_needed |= is_needed
        sizes = np.array([one.nbytes for one in features], np.int64)
        begin = self._place.begin + self._bytes
        sketches = begin + int(sizes.sum()) + np.arange(len(sizes)) * self._sketch_bytes
        added = int(sizes.sum()) + rows.sketches.nbytes
        fits = self._bytes + added <= _MOST_BYTES and self._documents + len(sizes) <= _MOST_DOCUMENTS
        if not (is_needed or (self._is_open and fits)) or not self._write(
            [*features, np.ascontiguousarray(rows.sketches)]
        ):
            self._is_open = False
            return False
        part = np.empty(len(sizes), _ENTRY)
        part["doc_id"], part["digest"], part["sketch"] = rows.doc_ids, rows.digests, sketches
        part["size"], part["begin"] = sizes, begin + np.cumsum(sizes) - sizes
        self._parts.append(part)
        self._bytes += added
        self._documents += len(sizes)
        self._is_open &= fits
        return True

    def stop(self) -> None:
        """Take no documents any more that are not needed."""
        self._is_open = False

    def finish(self) -> None:
        """Complete the spool, so that it can be read."""
        self.stop()
        if self._parts:
            entries = np.concatenate(self._parts)
            self._entries, self._parts = entries[np.argsort(entries["doc_id"], kind="stable")], []

    def __len__(self) -> int:
        return self._documents

    def handle(self) -> SpoolHandle | None:
        """Save the directory of a finished spool for child processes; None if the disk is full, or NearsimError."""
        if not self._write([self._entries]):
            return None
        return SpoolHandle(replace(self._place, begin=self._place.begin + self._bytes), len(self._entries))

    @property
    def _sketch_bytes(self) -> int:
        return self._family.k * self._family.dtype.itemsize

    def stream_signatures(self, heads: NDArray[np.void]) -> Iterator[Signatures] | None:
        """Return the signatures of heads in order, in batches; None if one is not here under its digest.

        `heads` have `doc_id` and `digest`, in order.
        """
        places = np.searchsorted(self._entries["doc_id"], heads["doc_id"]).clip(max=len(self._entries) - 1)
        found = self._entries[places] if len(self._entries) else self._entries
        if any(
            len(found) != len(heads) or (found[name] != heads[name]).any() for name in ("doc_id", "digest")
        ):
            return None
        is_head = np.zeros(len(self._entries), bool)
        is_head[places] = True
        return self._stream(is_head)

    def _stream(self, is_head: NDArray[np.bool_]) -> Iterator[Signatures]:
        steps = np.diff(self._entries["sketch"]) != self._sketch_bytes
        for low, high in pairwise(sorted({0, *(np.flatnonzero(steps) + 1).tolist(), len(is_head)})):
            part, chosen = self._entries[low:high], is_head[low:high]
            content = os.pread(self.descriptor, len(part) * self._sketch_bytes, int(part["sketch"][0]))
            sketches = np.frombuffer(content, self._family.dtype).reshape(len(part), -1)[chosen]
            yield Signatures(part["doc_id"][chosen], sketches, PackedDigests(part["digest"][chosen]))

    def get_all(self, doc_ids: Sequence[int], digests: Sequence[UUID]) -> list[NDArray[Any] | None]:
        """Return the features of several documents; None for those that are not here under their digest."""
        if not len(self._entries):
            return [None] * len(doc_ids)
        places = np.searchsorted(self._entries["doc_id"], doc_ids).clip(max=len(self._entries) - 1)
        entries = self._entries[places]
        found = (entries["doc_id"] == doc_ids) & (entries["digest"] == PackedDigests.of(digests).array)
        ranges = zip(entries["begin"].tolist(), entries["size"].tolist(), found.tolist(), strict=True)
        return [
            np.frombuffer(os.pread(self.descriptor, size, begin), self._dtype) if is_here else None
            for begin, size, is_here in ranges
        ]

    def _write(self, content: Sequence[NDArray[Any]]) -> bool:
        """Write after the features; if the disk is full, return False, or raise NearsimError if they are needed."""
        is_written = self._is_written(content)
        if is_written or not self._is_needed:
            return is_written
        raise NearsimError(
            f"cannot write to {self._place.folder}, where there is no space; set TMPDIR to a folder with room"
        )

    def _is_written(self, content: Sequence[NDArray[Any]]) -> bool:
        at = self._place.begin + self._bytes
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
