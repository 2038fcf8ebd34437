"""The sketch kernels compiled by numba; see `SketchKernels` for what each one does.

Scratch memory is made inside each call, so that threads may call them at the same time.
"""

from typing import Any

import numpy as np
from numba import int64, uint32, uint64, uintp
from numpy.typing import NDArray

from nearsim_db.jit import compiled, inlined
from nearsim_db.sketch.kernels import PRIME, ROUND_MIX, Counts, Decided, Ids, Merged, Offsets, Throws
from nearsim_db.sketch.mixing import FMIX64_FIRST, FMIX64_SECOND

_FIRST = np.uint64(FMIX64_FIRST)
_SECOND = np.uint64(FMIX64_SECOND)
_PRIME = np.uint64(PRIME)
_ROUND_MIX = np.uint32(ROUND_MIX)
_EMPTY = np.uint64(2**64 - 1)
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_LARGEST = np.int32(2**31 - 1)
_POSITIONS_AT_ONCE = 64
_IDS_AT_ONCE = np.uintp(1024)  # whose hashes stay in the first-level cache


def fast_similarity(ids: Ids, offsets: Offsets, throws: Throws, mix_ids: bool) -> NDArray[np.uint32]:
    sketches = np.zeros((len(offsets) - 1, len(throws.forced_addends)), np.uint32)
    points = np.empty(len(ids), np.uint64) if mix_ids else ids
    if mix_ids:
        _mix(ids, points)
    _fast_similarity(points, offsets, throws, sketches)
    return sketches


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


def mixed_bands(positions: NDArray[Any], bands: int, rows: int, start: int) -> NDArray[np.uint64]:
    hashes = np.empty((len(positions), bands), np.uint64)
    _mixed_bands(positions, rows, np.uint64(start), hashes)
    return hashes


def intersections(ids: Ids, offsets: Offsets, left_rows: Offsets, right_rows: Offsets) -> Counts:
    counts = np.empty(len(left_rows), np.int64)
    _intersections(ids, offsets, left_rows, right_rows, counts)
    return counts


def smallest(points: NDArray[Any], offsets: Offsets, k: int) -> NDArray[Any]:
    sketches = np.zeros((len(offsets) - 1, k), points.dtype)
    _smallest(points, offsets, points.dtype.type(np.iinfo(points.dtype).max), sketches)
    return sketches


def merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    counts = Merged(*np.empty((3, len(left)), np.int64))
    _merged(np.ascontiguousarray(left), np.ascontiguousarray(right), limit, counts)
    return counts


def first_alike_sorted(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, needs: Counts, decided: Decided
) -> Counts:
    first = np.empty(len(sketches), np.int64)
    _first_alike_sorted(sketches, present, need, needs, decided.pairs, decided.alike, first)
    return first


def first_alike_positions(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, decided: Decided
) -> Counts:
    first = np.empty(len(sketches), np.int64)
    _first_alike_positions(sketches, present, need, decided.pairs, decided.alike, first)
    return first


@inlined
def _fmix64(value: np.uint64) -> np.uint64:
    value = uint64(value)
    value = (value ^ (value >> uint64(33))) * _FIRST
    value = (value ^ (value >> uint64(33))) * _SECOND
    return value ^ (value >> uint64(33))


@compiled
def _mix(ids: Ids, points: Ids) -> None:
    for at in range(len(ids)):
        points[at] = _fmix64(ids[at])


@compiled
def _fast_similarity(points: Ids, offsets: Offsets, throws: Throws, sketches: NDArray[np.uint32]) -> None:
    k = sketches.shape[1]
    rounds = len(throws.masks)
    cells = np.empty(k, np.uint64)
    hashes = np.empty((2, _IDS_AT_ONCE), np.uint64)
    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin == end:
            continue
        cells[:] = _EMPTY
        round_no = 0
        while round_no < rounds and _any_empty(cells):
            mask, multiplier = throws.masks[round_no], throws.multipliers[round_no]
            _throw(
                points, begin, end, mask, multiplier, uint64(round_no) << _HALF, cells, hashes[0], hashes[1]
            )
            round_no += 1
        if _any_empty(cells):
            _force(points[begin:end], throws.forced_multipliers, throws.forced_addends, rounds, cells)
        for position in range(k):
            cell = cells[position]
            sketches[document, position] = uint32(cell) ^ uint32(uint32(cell >> _HALF) * _ROUND_MIX)


@compiled
def _throw(
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
    """Throw points[begin:end] once; `prefix` is the round in the upper half. Hashing apart, it is vectorised."""
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


@inlined
def _modulo_prime(value: np.uint64) -> np.uint64:
    """value mod (2^32 + 15), for any uint64: twice 2^32 = -15, then one correction."""
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
        # Four ids a step save passes over the row; the last step repeats an id, which changes no minimum.
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


@compiled
def _mixed_bands(positions: NDArray[Any], rows: int, start: np.uint64, hashes: NDArray[np.uint64]) -> None:
    for document in range(hashes.shape[0]):
        for band in range(hashes.shape[1]):
            hashed = start
            for row in range(band * rows, (band + 1) * rows):
                hashed = (hashed ^ uint64(positions[document, row])) * _FIRST
                hashed ^= hashed >> _HALF
            hashes[document, band] = _fmix64(hashed)


@compiled
def _intersections(
    ids: Ids, offsets: Offsets, left_rows: Offsets, right_rows: Offsets, counts: Counts
) -> None:
    for pair in range(len(counts)):
        left, left_end = offsets[left_rows[pair]], offsets[left_rows[pair] + 1]
        right, right_end = offsets[right_rows[pair]], offsets[right_rows[pair] + 1]
        count = int64(0)
        # Without branches on the ids, which no processor can predict.
        while left < left_end and right < right_end:
            ahead, behind = ids[left], ids[right]
            count += int64(ahead == behind)
            left += int64(ahead <= behind)
            right += int64(behind <= ahead)
        counts[pair] = count


@compiled
def _smallest(points: NDArray[Any], offsets: Offsets, largest: Any, sketches: NDArray[Any]) -> None:
    k = sketches.shape[1]
    held = np.empty(2 * k + 256, points.dtype)
    for document in range(len(offsets) - 1):
        if offsets[document] == offsets[document + 1]:
            continue
        count, bound = 0, largest
        for at in range(offsets[document], offsets[document + 1]):
            # What is above the k-th of those seen so far is in no sketch: of many ids few are held at all.
            if points[at] <= bound:
                if count == len(held):
                    count = _sort_distinct(held, count, k)
                    if count == k:
                        bound = held[k - 1]
                held[count] = points[at]
                count += 1
        count = _sort_distinct(held, count, k)
        sketches[document, :count] = held[:count]
        sketches[document, count:] = held[count - 1]


@compiled
def _sort_distinct(held: NDArray[Any], count: int, k: int) -> int:
    """Sort held[:count], leave the k smallest distinct of them in front; returns how many these are."""
    held[:count].sort()
    kept = 1
    for at in range(1, count):
        if kept == k:
            break
        if held[at] != held[kept - 1]:
            held[kept] = held[at]
            kept += 1
    return kept


@inlined
def _length(row: NDArray[Any]) -> int:
    """How many ids a sorted row has: up to the first of those equal to its last."""
    return int(np.searchsorted(row, row[-1])) + 1


@compiled
def _merged(left: NDArray[Any], right: NDArray[Any], limit: int, counts: Merged) -> None:
    width = left.shape[1]
    for pair in range(len(left)):
        one, other = left[pair], right[pair]
        sizes = _length(one), _length(other)
        small = sizes[0] < width and sizes[1] < width
        bound = sizes[0] + sizes[1] if small else limit
        begin = begin_other = both = 0
        while begin < sizes[0] and begin_other < sizes[1] and begin + begin_other - both < bound:
            ahead, behind = one[begin], other[begin_other]
            both += int64(ahead == behind)
            begin += int64(ahead <= behind)
            begin_other += int64(behind <= ahead)
        rest = bound - (begin + begin_other - both)
        more = min(rest, sizes[0] - begin)
        counts.left[pair] = begin + more
        counts.right[pair] = begin_other + min(rest - more, sizes[1] - begin_other)
        counts.both[pair] = both


@compiled
def _first_alike_sorted(
    sketches: NDArray[Any],
    present: NDArray[np.bool_],
    need: int,
    needs: Counts,
    pairs: Counts,
    alike: NDArray[np.bool_],
    first: Counts,
) -> None:
    size = len(sketches)
    lengths, staying = np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for row in range(size):
        lengths[row] = _length(sketches[row])
        first[row] = -1
        for place in range(count):
            other = staying[place]
            known = _decided(pairs, alike, row * size + other)
            if known < 0 and present[row] and present[other]:
                known = _share_enough(
                    sketches[row], sketches[other], lengths[row], lengths[other], need, needs
                )
            if known > 0:
                first[row] = other
                break
        if first[row] < 0:
            staying[count] = row
            count += 1


@inlined
def _decided(pairs: Counts, alike: NDArray[np.bool_], pair: int) -> int:
    """1 for alike, 0 for not, -1 where the sketches decide."""
    if not len(pairs):
        return -1
    place = np.searchsorted(pairs, pair)
    if place == len(pairs) or pairs[place] != pair:
        return -1
    return int(alike[place])


@compiled
def _share_enough(
    left: NDArray[Any], right: NDArray[Any], left_size: int, right_size: int, need: int, needs: Counts
) -> int:
    width = len(left)
    unshared = 2 * width
    if left_size < width and right_size < width:
        need = needs[left_size + right_size]
    else:
        unshared = width - need
    begin = end = both = 0
    # What each side can do without; below 0 at once where a set is too small. So no end is ever run over.
    spare_left, spare_right = left_size - need, right_size - need
    while begin - both <= spare_left and end - both <= spare_right and begin + end - 2 * both <= unshared:
        ahead, behind = left[begin], right[end]
        both += int64(ahead == behind)
        begin += int64(ahead <= behind)
        end += int64(behind <= ahead)
        if both == need:
            return 1
    return 0


@compiled
def _first_alike_positions(
    sketches: NDArray[Any],
    present: NDArray[np.bool_],
    need: int,
    pairs: Counts,
    alike: NDArray[np.bool_],
    first: Counts,
) -> None:
    size = len(sketches)
    staying = np.empty(size, np.int64)
    count = 0
    for row in range(size):
        first[row] = -1
        for place in range(count):
            other = staying[place]
            known = _decided(pairs, alike, row * size + other)
            if known < 0 and present[row] and present[other]:
                known = _agree_enough(sketches[row], sketches[other], need)
            if known > 0:
                first[row] = other
                break
        if first[row] < 0:
            staying[count] = row
            count += 1


@compiled
def _agree_enough(left: NDArray[Any], right: NDArray[Any], need: int) -> int:
    width = len(left)
    equal, begin = int64(0), 0
    # A stretch of constant length is compared by vector instructions: six times faster.
    while begin + _POSITIONS_AT_ONCE <= width:
        part = uint32(0)
        for position in range(_POSITIONS_AT_ONCE):
            part += uint32(left[begin + position] == right[begin + position])
        equal += int64(part)
        begin += _POSITIONS_AT_ONCE
        if equal >= need:
            return 1
        if equal + width - begin < need:
            return 0
    for position in range(begin, width):
        equal += int64(left[position] == right[position])
    return int(equal >= need)
