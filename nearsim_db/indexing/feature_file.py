"""Sketches and features of documents in temporary files, written while documents are read, then read to verify pairs.

Both `dedupe` and builds use them. The files have no names, so they disappear with the process, however it ends.
"""

import mmap
import os
from array import array
from contextlib import ExitStack
from io import RawIOBase
from itertools import pairwise, repeat
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Ints, Sketches, offsets_of
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import FEATURE

_MAX_MAPPED_BYTES = 1 << 28


class FeatureFile:
    """Sketches and features of documents, which are numbered from 0 in the order in which they are added.

    One thread at a time may add documents; any number may read them after `finish`. Sketches that differ in size are
    kept in memory. Raises OSError if there is no temporary folder, or no room in it.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._family = encoder.family
        self._has_sketches = encoder.has_sketches
        self._temporary = ExitStack()
        self._sketches = _ValueFile(self.open_temporary(), encoder.family.dtype)
        self._features = _ValueFile(
            self.open_temporary(), FEATURE if encoder.metric.weighted else np.dtype(np.uint64)
        )
        self._sizes = array("q")  # the number of features of each document
        self._uneven_sketches: list[NDArray[Any]] = []

    @property
    def size_bytes(self) -> int:
        """The number of bytes written so far."""
        return self._sketches.size_bytes + self._features.size_bytes

    def open_temporary(self) -> RawIOBase:
        """Return an unbuffered temporary file that `close` closes."""
        return self._temporary.enter_context(TemporaryFile(prefix="nearsim-", buffering=0))

    def add(self, sketches: Sketches, items: NDArray[Any], sizes: Ints) -> None:
        """Add n documents.

        `sketches`: (n, k), or n arrays of different sizes. `items`: the features of all documents, one document after
        the other. `sizes`: (n,) int64, the number of features of each document.
        """
        if self._has_sketches and self._family.ordered:
            self._uneven_sketches.append(sketches)
        elif self._has_sketches:
            self._sketches.write(sketches)
        self._features.write(items)
        self._sizes.frombytes(sizes.astype(np.int64).tobytes())

    def finish(self) -> None:
        """Prepare for reading; no documents can be added afterwards."""
        self._sketches.finish()
        self._features.finish()
        self._begins = offsets_of(np.frombuffer(self._sizes, np.int64))
        self._sizes = array("q")
        if self._family.ordered:
            no_sketches = np.zeros((0, self._family.k), self._family.dtype)
            self._uneven: NDArray[Any] = np.concatenate([no_sketches, *self._uneven_sketches])
            self._uneven_sketches = []

    def read_sketches(self, numbers: Ints) -> Sketches:
        """Return the sketches of some documents."""
        if self._family.ordered:
            return self._uneven[numbers]
        begins = numbers * self._family.k
        return self._sketches.read(begins, begins + self._family.k).reshape(len(numbers), self._family.k)

    def read_features(self, numbers: Ints) -> list[NDArray[Any]]:
        """Return the features of some documents."""
        features, offsets = self.read_flat_features(numbers)
        return [features[low:high] for low, high in pairwise(offsets.tolist())]

    def read_flat_features(self, numbers: Ints) -> tuple[NDArray[Any], Ints]:
        """Return the features of n documents one after the other, and where each document begins: (n + 1,) int64."""
        begins, ends = self._begins[numbers], self._begins[numbers + 1]
        return self._features.read(begins, ends), offsets_of(ends - begins)

    def count_features(self, numbers: Ints) -> int:
        """Return the number of features of several documents together."""
        return int((self._begins[numbers + 1] - self._begins[numbers]).sum())

    def close(self) -> None:
        """Free the disk space."""
        self._temporary.close()


class _ValueFile:
    """Values in a temporary file, written one after the other, then read in ranges.

    A large file is read by system calls: if it were mapped, the system would load some 64 KB around each value.
    """

    def __init__(self, file: RawIOBase, dtype: np.dtype[Any]) -> None:
        self.dtype: np.dtype[Any] = dtype
        self.size_bytes: int = 0
        self._file = file
        self._mapped: NDArray[Any] | None = None

    def write(self, values: NDArray[Any]) -> None:
        content = memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
        self.size_bytes += len(content)
        while len(content):
            content = content[self._file.write(content) :]

    def finish(self) -> None:
        if 0 < self.size_bytes <= _MAX_MAPPED_BYTES:
            self._mapped = np.frombuffer(
                mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self.dtype
            )

    def read(self, begins: Ints, ends: Ints) -> NDArray[Any]:
        """Return the values of ranges, one after the other."""
        # Ranges that are adjacent are read at once.
        apart, count = begins[1:] != ends[:-1], len(begins)
        firsts, lasts = begins[np.append(True, apart)[:count]], ends[np.append(apart, True)[:count]]

        if self._mapped is not None:
            parts = map(slice, firsts.tolist(), lasts.tolist())
            return np.concatenate([self._mapped[:0], *(self._mapped[part] for part in parts)])

        size, descriptor = self.dtype.itemsize, self._file.fileno()
        lengths, offsets = ((lasts - firsts) * size).tolist(), (firsts * size).tolist()
        # Let the system load all ranges in parallel while the first ones are read.
        for length, offset in zip(lengths, offsets, strict=True):
            os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_WILLNEED)
        contents = map(os.pread, repeat(descriptor), lengths, offsets)
        return np.frombuffer(b"".join(contents), self.dtype)
