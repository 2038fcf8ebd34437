"""The kernels of minhash and fast_similarity compiled by numba; see `SketchKernels` and `HashRounds`."""

import numpy as np
from numba import int64, uint32, uint64, uintp
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, fmix64, inlined
from nearsim_db.similarity.sketch.kernels import PRIME, ROUND_MIX, HashRounds, Ids, Offsets

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


_ROUND_MIX = np.uint32(ROUND_MIX)
_IDS_AT_ONCE = np.uintp(1024)  # their hashes fit the first-level cache


def fast_similarity(ids: Ids, offsets: Offsets, hash_rounds: HashRounds, mix_ids: bool) -> NDArray[np.uint32]:
    sketches = np.zeros((len(offsets) - 1, len(hash_rounds.forced_addends)), np.uint32)
    points = np.empty(len(ids), np.uint64) if mix_ids else ids
    if mix_ids:
        _mix(ids, points)
    _fast_similarity(points, offsets, hash_rounds, sketches)
    return sketches


@compiled
def _mix(ids: Ids, points: Ids) -> None:
    for at in range(len(ids)):
        points[at] = fmix64(ids[at])


@compiled
def _fast_similarity(
    points: Ids, offsets: Offsets, hash_rounds: HashRounds, sketches: NDArray[np.uint32]
) -> None:
    k = sketches.shape[1]
    rounds = len(hash_rounds.masks)
    cells = np.empty(k, np.uint64)
    hashes = np.empty((2, _IDS_AT_ONCE), np.uint64)
    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin == end:
            continue
        cells[:] = _EMPTY
        round_no = 0
        while round_no < rounds and _any_empty(cells):
            mask, multiplier = hash_rounds.masks[round_no], hash_rounds.multipliers[round_no]
            _hash(
                points, begin, end, mask, multiplier, uint64(round_no) << _HALF, cells, hashes[0], hashes[1]
            )
            round_no += 1
        if _any_empty(cells):
            _force(
                points[begin:end], hash_rounds.forced_multipliers, hash_rounds.forced_addends, rounds, cells
            )
        for position in range(k):
            cell = cells[position]
            sketches[document, position] = uint32(cell) ^ uint32(uint32(cell >> _HALF) * _ROUND_MIX)


@compiled
def _hash(
    points: Ids,
    begin: np.uintp,
    end: np.uintp,
    mask: np.uint64,
    multiplier: np.uint64,
    prefix: np.uint64,
    cells: NDArray[np.uint64],
    positions: NDArray[np.uint64],
    values: NDArray[np.uint64],
) -> None:
    """Throw points[begin:end] once; `prefix` is the round in the upper half. Hashing in a loop of its own is
    vectorised.
    """
    k = uint64(
        uint32(len(cells))
    )  # a factor known to be below 2^32 takes one vector multiplication, not three
    while begin < end:
        count = min(end - begin, _IDS_AT_ONCE)
        for at in range(count):
            hashed = (points[begin + at] ^ mask) * multiplier
            positions[at] = ((hashed >> _HALF) * k) >> _HALF
            values[at] = prefix | ((hashed ^ (hashed >> _HALF)) & _LOW)
        for at in range(count):
            position = uintp(positions[at])
            cells[position] = min(cells[position], values[at])
        begin += count


@compiled
def _any_empty(cells: NDArray[np.uint64]) -> bool:
    empty = False
    for position in range(len(cells)):
        empty |= cells[position] == _EMPTY
    return empty


@compiled
def _force(
    points: Ids,
    multipliers: NDArray[np.uint32],
    addends: NDArray[np.uint32],
    rounds: int,
    cells: NDArray[np.uint64],
) -> None:
    for position in range(len(cells)):
        if cells[position] != _EMPTY:
            continue
        multiplier, addend = multipliers[position], addends[position]
        least = uint32(_LOW)
        for at in range(len(points)):
            least = min(least, uint32(uint32(multiplier * uint32(points[at])) + addend))
        cells[position] = (uint64(rounds) << _HALF) | uint64(least)
