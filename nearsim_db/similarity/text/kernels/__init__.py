"""Text kernels: the loops over bytes, once in plain NumPy and once compiled by numba, with identical results."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints

Bytes = NDArray[np.uint8]


class TextKernels(Protocol):
    """The kernels that a back end implements.

    Offsets are int64 of n + 1. Those of arguments count bytes; those of results count bytes or ids. A unit is a code
    point in `char_ids`, and a run of bytes between single `separator` bytes in `unit_ids`, whose texts neither begin
    nor end with a separator. `k` consecutive units make a shingle; one to k - 1 units make a single shingle. `base` is
    poly64, crc32, djb2a or djb2a-signed. With `single_bytes` every byte is a character.
    """

    def squeeze(self, data: Bytes, offsets: Ints, table: Bytes) -> tuple[Bytes, Ints]:
        """Collapse runs of separators to one space, and strip separators at both ends of a text.

        Bytes below 128 are replaced by their entries in the table.
        """

    def char_ids(
        self, data: Bytes, offsets: Ints, k: int, base: str, single_bytes: bool
    ) -> tuple[Hashes, Ints]:
        """Return the ids of the k-character shingles of each document, in order and with repetitions, and offsets."""

    def unit_ids(self, data: Bytes, offsets: Ints, k: int, base: str, separator: int) -> tuple[Hashes, Ints]:
        """Return the ids of the k-unit shingles of each document, in order and with repetitions, and offsets."""

    def number_sums(self, data: Bytes, offsets: Ints) -> Hashes:
        """Return for each document the sum mod 2^64 of poly64 of its runs of ASCII digits; 0 if it has none."""

    def distinct(self, ids: Hashes, offsets: Ints) -> tuple[Hashes, Ints, Ints]:
        """Return the sorted distinct ids of each document, their offsets, and how often each id occurs."""
