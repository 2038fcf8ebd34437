"""Sketch kernels compiled by numba that make sorted sketches, and that compare sketches; see `plain_comparison`."""

import numpy as np
from numba import int64, uint32, uint64

from nearsim_db.similarity.jit import compiled, inlined
from nearsim_db.similarity.sketch.kernels import BITS_PER_MAP, Merged

_POSITIONS_AT_ONCE = 64
_WORDS = BITS_PER_MAP // 64
_ONE, _TWO, _SIX, _LOW_SIX = np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(63)
_BIT_MASK = np.uint64(BITS_PER_MAP - 1)
# Masks to count the bits of a word in parallel, by pairs, fours and eights of bits.
_PAIRS, _FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_EIGHTS, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


def smallest(points, offsets, k):
    return _smallest(points, offsets, points.dtype.type(np.iinfo(points.dtype).max), k)


@compiled
def _smallest(points, offsets, largest, k):
    sketches = np.zeros((len(offsets) - 1, k), points.dtype)
    buffer = np.empty(2 * k + 256, points.dtype)
    for document in range(len(offsets) - 1):
        if offsets[document] == offsets[document + 1]:
            continue

        count, bound = int64(0), largest
        for at in range(offsets[document], offsets[document + 1]):
            # An id above the k-th smallest so far cannot be in the sketch, so only few of many ids are buffered.
            if points[at] <= bound:
                if count == len(buffer):
                    count = _sort_distinct(buffer, count, k)
                    if count == k:
                        bound = buffer[k - 1]
                buffer[count] = points[at]
                count += 1

        count = _sort_distinct(buffer, count, k)
        for place in range(k):
            sketches[document, place] = buffer[min(place, count - 1)]
    return sketches


@compiled
def _sort_distinct(buffer, count, k):
    """Sort buffer[:count], and move its k smallest distinct values to the front. Return their number."""
    buffer[:count].sort()
    kept = 1
    for at in range(1, count):
        if kept == k:
            break
        if buffer[at] != buffer[kept - 1]:
            buffer[kept] = buffer[at]
            kept += 1
    return kept


@inlined
def _distinct_length(row):
    """Return the number of ids in a sorted row, which is padded with its last id."""
    return int(np.searchsorted(row, row[-1])) + 1


def merged(left, right, limit):
    return Merged(*_merged(np.ascontiguousarray(left), np.ascontiguousarray(right), limit))


@compiled
def _merged(left, right, limit):
    width, counts = left.shape[1], np.empty((3, len(left)), np.int64)
    for pair in range(len(left)):
        left_ids, right_ids = left[pair], right[pair]
        left_size, right_size = _distinct_length(left_ids), _distinct_length(right_ids)
        small = left_size < width and right_size < width
        bound = left_size + right_size if small else limit

        at_left = at_right = both = 0
        while at_left < left_size and at_right < right_size and at_left + at_right - both < bound:
            left_id, right_id = left_ids[at_left], right_ids[at_right]
            both += int64(left_id == right_id)
            at_left += int64(left_id <= right_id)
            at_right += int64(right_id <= left_id)

        # At the end of one side, the remaining ids up to the bound come from the other side.
        remaining = bound - (at_left + at_right - both)
        remaining_left = min(remaining, left_size - at_left)
        counts[0, pair] = at_left + remaining_left
        counts[1, pair] = at_right + min(remaining - remaining_left, right_size - at_right)
        counts[2, pair] = both
    return counts


@compiled
def first_similar_sorted(sketches, present, need, needs, decided):
    size = len(sketches)
    first, kept, lengths = np.full(size, -1), np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for row in range(size):
        lengths[row] = _distinct_length(sketches[row])
        for place in range(count):
            other = kept[place]
            is_similar = _decided(decided, row * size + other)
            if is_similar < 0 and present[row] and present[other]:
                is_similar = _share_enough(
                    sketches[row], sketches[other], lengths[row], lengths[other], need, needs
                )
            if is_similar > 0:
                first[row] = other
                break

        if first[row] < 0:
            kept[count] = row
            count += 1
    return first


@compiled
def first_similar_positions(sketches, present, need, decided):
    size = len(sketches)
    first, kept = np.full(size, -1), np.empty(size, np.int64)
    count = 0
    for row in range(size):
        for place in range(count):
            other = kept[place]
            is_similar = _decided(decided, row * size + other)
            if is_similar < 0 and present[row] and present[other]:
                is_similar = _agree_enough(sketches[row], sketches[other], need)
            if is_similar > 0:
                first[row] = other
                break

        if first[row] < 0:
            kept[count] = row
            count += 1
    return first


@inlined
def _decided(decided, pair):
    """Return 1 if the pair is decided to be similar, 0 if it is decided not to be, and -1 if it is not decided."""
    if not len(decided.pairs):
        return -1
    place = np.searchsorted(decided.pairs, pair)
    if place == len(decided.pairs) or decided.pairs[place] != pair:
        return -1
    return int(decided.alike[place])


@compiled
def _share_enough(left, right, left_size, right_size, need, needs):
    width = len(left)
    unshared = 2 * width
    if left_size < width and right_size < width:
        need = needs[left_size + right_size]
    else:
        unshared = width - need

    at_left = at_right = both = 0
    # The number of ids of each side that need no partner. It is negative if a set is too small, so the loop does not
    # start, and no index exceeds the row.
    spare_left, spare_right = left_size - need, right_size - need
    while (
        at_left - both <= spare_left
        and at_right - both <= spare_right
        and at_left + at_right - 2 * both <= unshared
    ):
        left_id, right_id = left[at_left], right[at_right]
        both += int64(left_id == right_id)
        at_left += int64(left_id <= right_id)
        at_right += int64(right_id <= left_id)
        if both == need:
            return 1
    return 0


@compiled
def _agree_enough(left, right, need):
    width = len(left)
    equal, begin = int64(0), 0

    # Vector instructions compare blocks of constant length, which is six times faster.
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


@compiled
def count_agreements(sketches, left, right, bands, rows):
    equal, runs = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    for pair in range(len(left)):
        left_sketch, right_sketch = sketches[left[pair]], sketches[right[pair]]
        positions, matched = int64(0), int64(0)
        for position in range(len(left_sketch)):
            positions += int64(left_sketch[position] == right_sketch[position])
        for band in range(bands):
            run = int64(1)
            for position in range(band * rows, (band + 1) * rows):
                run &= int64(left_sketch[position] == right_sketch[position])
            matched += run
        equal[pair], runs[pair] = positions, matched
    return equal, runs


# After this number of comparisons for each id of a pair, the pair is left to `runs.longest_run`.
_MAX_COMPARISONS_PER_ID = 64


@compiled
def shared_bits(ids, offsets, left_rows, right_rows):
    maps = np.zeros((len(offsets) - 1, _WORDS), np.uint64)
    for document in range(len(maps)):
        for at in range(offsets[document], offsets[document + 1]):
            bit = ids[at] & _BIT_MASK
            maps[document, bit >> _SIX] |= _ONE << (bit & _LOW_SIX)
    counts, shared = np.zeros(len(maps), np.int64), np.empty(len(left_rows), np.int64)
    for document in range(len(maps)):
        counts[document] = _bits_of_both(maps[document], maps[document])
    for pair in range(len(shared)):
        shared[pair] = _bits_of_both(maps[left_rows[pair]], maps[right_rows[pair]])
    return counts, shared


@inlined
def _bits_of_both(left_map, right_map):
    count = int64(0)
    for word in range(_WORDS):
        bits = left_map[word] & right_map[word]
        bits -= (bits >> _ONE) & _PAIRS
        bits = (bits & _FOURS) + ((bits >> _TWO) & _FOURS)
        count += int64((((bits + (bits >> uint64(4))) & _EIGHTS) * _BYTES) >> uint64(56))
    return count


@compiled
def longest_runs(ids, order, offsets, left_rows, right_rows):
    longest = np.empty(len(left_rows), np.int64)
    for pair in range(len(longest)):
        left, left_end = offsets[left_rows[pair]], offsets[left_rows[pair] + 1]
        right, right_end = offsets[right_rows[pair]], offsets[right_rows[pair] + 1]
        longest[pair] = _longest_run(ids, order, left, left_end, right, right_end)
    return longest


@compiled
def _longest_run(ids, order, left, left_end, right, right_end):
    """Return the length of the longest run of two documents, or -1 after too many comparisons.

    Each maximal run is walked along from its beginning: two places of the same id, before which the ids differ.
    """
    left_begin, right_begin = left, right
    comparisons_left = _MAX_COMPARISONS_PER_ID * (left_end - left + right_end - right)
    longest = int64(0)
    while left < left_end and right < right_end:
        id, right_id = ids[order[left]], ids[order[right]]
        if id != right_id:
            left += int64(id < right_id)
            right += int64(right_id < id)
            continue

        # Compare each place of the id in the left document with each place in the right one.
        right_last = right
        while right_last < right_end and ids[order[right_last]] == id:
            right_last += 1
        while left < left_end and ids[order[left]] == id:
            for at in range(right, right_last):
                i, j = order[left], order[at]
                comparisons_left -= 1
                if i > left_begin and j > right_begin and ids[i - 1] == ids[j - 1]:
                    continue
                run = int64(1)
                while i + run < left_end and j + run < right_end and ids[i + run] == ids[j + run]:
                    run += 1
                comparisons_left -= run
                longest = max(longest, run)
                if comparisons_left < 0:
                    return int64(-1)
            left += 1
        right = right_last
    return longest
