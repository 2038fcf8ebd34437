"""The loops over ids, twice: plain NumPy and compiled by numba, equal to the last bit."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.backend import Backend

Ids = NDArray[np.uint64]
Offsets = NDArray[np.int64]
Counts = NDArray[np.int64]

PRIME = 4294967311  # the least prime above 2^32
ROUND_MIX = 0x9E3779B1  # spreads the round over the 32 bits of a fast_similarity position


class Throws(NamedTuple):
    """The random parameters of fast_similarity.

    Round r throws an id x by h = (x ^ masks[r]) * multipliers[r] mod 2^64: the upper half of h chooses the
    position, the exclusive or of both halves is the value. The forced round gives position j the least
    forced_multipliers[j] * x + forced_addends[j] mod 2^32.
    """

    masks: NDArray[np.uint64]
    multipliers: NDArray[np.uint64]
    forced_multipliers: NDArray[np.uint32]
    forced_addends: NDArray[np.uint32]


class SketchKernels(Protocol):
    """What a back end offers; in sketches the row of a document without ids is all zeros."""

    def fast_similarity(
        self, ids: Ids, offsets: Offsets, throws: Throws, mix_ids: bool
    ) -> NDArray[np.uint32]:
        """The positions (n, k): the value, exclusive-or'd with the round times ROUND_MIX."""

    def minimum_prime32(
        self,
        ids: Ids,
        offsets: Offsets,
        multipliers: NDArray[np.uint32],
        addends: NDArray[np.uint64],
        shift: int,
    ) -> NDArray[np.uint64]:
        """The least (a x + b) mod PRIME of each document and function, x = the low 32 bits of id >> shift."""

    def minimum_java32(
        self,
        ids: Ids,
        offsets: Offsets,
        multipliers: NDArray[np.int32],
        addends: NDArray[np.int32],
        shift: int,
    ) -> NDArray[np.int32]:
        """The least a x + b, wrapped to int32, of each document and function, x as for prime32."""

    def mixed_bands(self, positions: NDArray[Any], bands: int, rows: int, start: int) -> NDArray[np.uint64]:
        """A 64-bit hash of each band (n, bands) of positions (n, k), uint32 or uint64; `start` seeds it."""

    def intersections(self, ids: Ids, offsets: Offsets, left_rows: Offsets, right_rows: Offsets) -> Counts:
        """The ids that document left_rows[i] and document right_rows[i] share; ids sorted and distinct."""


def sketch_kernels(backend: Backend) -> SketchKernels:
    """The kernels of a back end; numba is imported here and not before."""
    if backend == "numba":
        from nearsim_db.sketch.kernels import compiled

        return compiled
    from nearsim_db.sketch.kernels import plain

    return plain
