"""The loops over bytes, in plain NumPy and compiled by numba, bit-identical."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints

Bytes = NDArray[np.uint8]


class TextKernels(Protocol):
    """The kernels that a back end implements. Offsets are int64 of n + 1: into bytes for input, into ids for
    results.

    A unit is a code point (`char_ids`) or a run between single `separator` bytes, none at the ends
    (`unit_ids`). `k` consecutive units make a shingle; a document of fewer units, but at least one, is one
    shingle. `base` is poly64, crc32, djb2a or djb2a-signed. With `single_bytes` every byte is a character.
    """

    def squeeze(self, data: Bytes, offsets: Ints, table: Bytes) -> tuple[Bytes, Ints]:
        """Collapse runs of separators to one space, strip them at the ends, replace bytes below 128 by their table
        entry.
        """

    def char_ids(
        self, data: Bytes, offsets: Ints, k: int, base: str, single_bytes: bool
    ) -> tuple[Hashes, Ints]:
        """Return the ids of each document's k-character shingles in order, with repetitions: uint64, ragged."""

    def unit_ids(self, data: Bytes, offsets: Ints, k: int, base: str, separator: int) -> tuple[Hashes, Ints]:
        """Return the ids of each document's k-unit shingles in order, with repetitions: uint64, ragged."""

    def number_sums(self, data: Bytes, offsets: Ints) -> Hashes:
        """Return per document the sum mod 2^64 of poly64 over its runs of ASCII digits: uint64 of n, 0 for none."""

    def distinct(self, ids: Hashes, offsets: Ints) -> tuple[Hashes, Ints, Ints]:
        """Return the distinct ids of each document, sorted, their offsets, and the number of times each occurs."""
