"""The kernels of minhash compiled by numba; see `SketchKernels`."""

import numpy as np
from numba import int64, uint32, uint64
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, inlined
from nearsim_db.similarity.sketch.kernels import PRIME, Ids, Offsets

_PRIME = np.uint64(PRIME)
_EMPTY = np.uint64(2**64 - 1)
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_LARGEST = np.int32(2**31 - 1)


def minimum_prime32(
    ids: Ids,
    offsets: Offsets,
    multipliers: NDArray[np.uint32],
    addends: NDArray[np.uint64],
    shift: int,
) -> NDArray[np.uint64]:
    sketches = np.zeros((len(offsets) - 1, len(addends)), np.uint64)
    _minimum_prime32(ids, offsets, multipliers, addends, np.uint64(shift), sketches)
    return sketches


def minimum_java32(
    ids: Ids,
    offsets: Offsets,
    multipliers: NDArray[np.int32],
    addends: NDArray[np.int32],
    shift: int,
) -> NDArray[np.int32]:
    sketches = np.zeros((len(offsets) - 1, len(addends)), np.int32)
    _minimum_java32(
        ids, offsets, multipliers.view(np.uint32), addends.view(np.uint32), np.uint64(shift), sketches
    )
    return sketches


@inlined
def _modulo_prime(value: np.uint64) -> np.uint64:
    """Return value mod (2^32 + 15), for any uint64: twice 2^32 = -15, then one correction."""
    folded = int64(value & _LOW) - int64(15) * int64(value >> _HALF)
    folded = (folded & int64(_LOW)) - int64(15) * (folded >> int64(32))
    return min(uint64(folded), uint64(folded) - _PRIME)


@compiled
def _minimum_prime32(
    ids: Ids,
    offsets: Offsets,
    multipliers: NDArray[np.uint32],
    addends: NDArray[np.uint64],
    shift: np.uint64,
    sketches: NDArray[np.uint64],
) -> None:
    for document in range(len(offsets) - 1):
        begin, last = offsets[document], offsets[document + 1] - 1
        row = sketches[document]
        if begin <= last:
            row[:] = _EMPTY
        # Four ids per step save passes over the row; the last step may repeat an id, which changes no minimum.
        for at in range(begin, last + 1, 4):
            one = uint64(uint32(ids[at] >> shift))
            two = uint64(uint32(ids[min(at + 1, last)] >> shift))
            three = uint64(uint32(ids[min(at + 2, last)] >> shift))
            four = uint64(uint32(ids[min(at + 3, last)] >> shift))
            for function in range(len(multipliers)):
                factor, addend = uint64(multipliers[function]), addends[function]
                least = min(_modulo_prime(factor * one + addend), _modulo_prime(factor * two + addend))
                other = min(_modulo_prime(factor * three + addend), _modulo_prime(factor * four + addend))
                row[function] = min(row[function], min(least, other))


@compiled
def _minimum_java32(
    ids: Ids,
    offsets: Offsets,
    multipliers: NDArray[np.uint32],
    addends: NDArray[np.uint32],
    shift: np.uint64,
    sketches: NDArray[np.int32],
) -> None:
    for document in range(len(offsets) - 1):
        begin, last = offsets[document], offsets[document + 1] - 1
        row = sketches[document]
        if begin <= last:
            row[:] = _LARGEST
        for at in range(begin, last + 1, 4):
            one = uint32(ids[at] >> shift)
            two = uint32(ids[min(at + 1, last)] >> shift)
            three = uint32(ids[min(at + 2, last)] >> shift)
            four = uint32(ids[min(at + 3, last)] >> shift)
            for function in range(len(multipliers)):
                factor, addend = multipliers[function], addends[function]
                least = min(_wrapped(factor, one, addend), _wrapped(factor, two, addend))
                other = min(_wrapped(factor, three, addend), _wrapped(factor, four, addend))
                row[function] = min(row[function], min(least, other))


@inlined
def _wrapped(factor: np.uint32, point: np.uint32, addend: np.uint32) -> np.int32:
    return np.int32(uint32(uint32(factor * point) + addend))
