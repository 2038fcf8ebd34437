"""The sketch kernels compiled by numba; see `plain` for their types and results.

Each call allocates its own temporary memory, so threads may call them concurrently.
"""

import numpy as np
from numba import int64, uint32, uint64, uintp

from nearsim_db.similarity.jit import compiled, fmix64, inlined
from nearsim_db.similarity.mixing import FMIX64_FIRST, GOLDEN
from nearsim_db.similarity.sketch.kernels import PRIME, ROUND_MIX, Sums
from nearsim_db.similarity.sketch.kernels.compiled_comparison import (
    count_agreements as count_agreements,
)
from nearsim_db.similarity.sketch.kernels.compiled_comparison import (
    first_similar_positions as first_similar_positions,
)
from nearsim_db.similarity.sketch.kernels.compiled_comparison import (
    first_similar_sorted as first_similar_sorted,
)
from nearsim_db.similarity.sketch.kernels.compiled_comparison import longest_runs as longest_runs
from nearsim_db.similarity.sketch.kernels.compiled_comparison import merged as merged
from nearsim_db.similarity.sketch.kernels.compiled_comparison import shared_bits as shared_bits
from nearsim_db.similarity.sketch.kernels.compiled_comparison import smallest as smallest
from nearsim_db.similarity.sketch.kernels.compiled_digests import digests as digests
from nearsim_db.similarity.sketch.kernels.compiled_weighted import dart_minhash as dart_minhash
from nearsim_db.similarity.sketch.kernels.compiled_weighted import projections as projections

_FIRST, _GOLDEN = np.uint64(FMIX64_FIRST), np.uint64(GOLDEN)
_PRIME, _ROUND_MIX = np.uint64(PRIME), np.uint32(ROUND_MIX)
_EMPTY = np.uint64(2**64 - 1)
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_MAX_INT32 = np.int32(2**31 - 1)
_LOW_56 = np.uint64((1 << 56) - 1)
# The hashes of this number of ids fit into the first-level cache.
_IDS_AT_ONCE = np.uintp(1024)


@compiled
def mixed_bands(positions, bands, rows, start):
    hashes = np.empty((len(positions), bands), np.uint64)
    # Process all bands row by row, so that vector instructions hash several bands at once.
    for document in range(len(positions)):
        values, hashed = positions[document], hashes[document]
        hashed[:] = start
        for row in range(uintp(rows)):
            for band in range(uintp(len(hashed))):
                mixed = (hashed[band] ^ uint64(values[band * uintp(rows) + row])) * _FIRST
                hashed[band] = mixed ^ (mixed >> _HALF)
        for band in range(uintp(len(hashed))):
            hashed[band] = fmix64(hashed[band])
    return hashes


@compiled
def intersections(ids, offsets, left_rows, right_rows):
    counts = np.empty(len(left_rows), np.int64)
    for pair in range(len(counts)):
        left, left_end = offsets[left_rows[pair]], offsets[left_rows[pair] + 1]
        right, right_end = offsets[right_rows[pair]], offsets[right_rows[pair] + 1]
        count = int64(0)
        # The loop has no branches on the ids, because they would be unpredictable.
        while left < left_end and right < right_end:
            left_id, right_id = ids[left], ids[right]
            count += int64(left_id == right_id)
            left += int64(left_id <= right_id)
            right += int64(right_id <= left_id)
        counts[pair] = count
    return counts


@compiled
def sums(ids, weights, offsets, left_rows, right_rows):
    totals = np.empty((4, len(left_rows)))
    for pair in range(len(left_rows)):
        left, left_end = offsets[left_rows[pair]], offsets[left_rows[pair] + 1]
        right, right_end = offsets[right_rows[pair]], offsets[right_rows[pair] + 1]
        products = minima = maxima = squares = 0.0
        while left < left_end or right < right_end:
            x = y = 0.0
            has_left, has_right = left < left_end, right < right_end
            if has_left and (not has_right or ids[left] <= ids[right]):
                x = weights[left]
            if has_right and (not has_left or ids[right] <= ids[left]):
                y = weights[right]

            # No weight is 0, so x and y are nonzero exactly if a weight was read.
            left += int64(x != 0.0)
            right += int64(y != 0.0)

            products += x * y
            minima += min(x, y)
            maxima += max(x, y)
            squares += (x - y) * (x - y)
        totals[0, pair], totals[1, pair], totals[2, pair], totals[3, pair] = products, minima, maxima, squares
    return Sums(totals[0], totals[1], totals[2], totals[3])


@compiled
def first_links(keys, by_band, buckets, left, right, full):
    first = np.empty(len(buckets), np.bool_)
    for link in range(len(buckets)):
        left_keys, right_keys, place = keys[left[link]], keys[right[link]], _place(buckets[link])
        if by_band:
            first[link] = _is_first_by_band(left_keys, right_keys, place, left[link], full)
        else:
            first[link] = _is_first_sorted(left_keys, right_keys, place, left[link], full)
    return first


@compiled
def first_ragged_links(keys, offsets, buckets, left, right, full):
    first = np.empty(len(buckets), np.bool_)
    for link in range(len(buckets)):
        left_keys = keys[offsets[left[link]] : offsets[left[link] + 1]].view(np.int64)
        right_keys = keys[offsets[right[link]] : offsets[right[link] + 1]].view(np.int64)
        first[link] = _is_first_sorted(left_keys, right_keys, _place(buckets[link]), left[link], full)
    return first


@compiled
def window_minima(points, offsets, windows):
    minima, ends = np.empty(len(points), np.uint64), np.zeros(len(offsets), np.int64)
    written = 0
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        first, least, window = written, begin - 1, windows[document]

        # A window adds its least point only if the previous window has another one.
        for last in range(max(begin, begin + min(window, end - begin) - 1), end):
            low = max(begin, last - window + 1)
            if least < low:
                least = low
                for at in range(low + 1, last + 1):
                    if points[at] <= points[least]:
                        least = at
            elif points[last] <= points[least]:
                least = last
            else:
                continue
            minima[written] = points[least] & _LOW_56
            written += 1

        # Sort the points of the document, and keep each once.
        ascending = np.sort(minima[first:written])
        written = first
        for at in range(len(ascending)):
            if at == 0 or ascending[at] != ascending[at - 1]:
                minima[written] = ascending[at]
                written += 1
        ends[document + 1] = written
    return minima[:written], ends


@inlined
def _place(bucket):
    """Return the place of a bucket in the order of `plain.first_links`."""
    return np.uint64(bucket) * _GOLDEN


@inlined
def _links(key, left, full):
    """Whether the bucket with this key links the row `left` to later rows: the row is an anchor of the bucket."""
    low, high = 0, len(full.keys)
    while low < high:
        middle = (low + high) // 2
        if full.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low == len(full.keys) or full.keys[low] != key or left < full.ends[low]


@compiled
def _is_first_by_band(left_keys, right_keys, place, left, full):
    for band in range(len(left_keys)):
        key = left_keys[band]
        if key == right_keys[band] and _place(key) < place and _links(key, left, full):
            return False
    return True


@compiled
def _is_first_sorted(left_keys, right_keys, place, left, full):
    at_left, at_right = 0, 0
    while at_left < len(left_keys) and at_right < len(right_keys):
        left_key, right_key = left_keys[at_left], right_keys[at_right]
        if left_key == right_key and _place(left_key) < place and _links(left_key, left, full):
            return False
        # The steps have no branches on the keys, because they would be unpredictable.
        at_left += int64(left_key <= right_key)
        at_right += int64(right_key <= left_key)
    return True


@inlined
def _modulo_prime(value):
    """Return value mod (2^32 + 15) for any uint64.

    2^32 is congruent to -15. The upper half is folded in twice, and the result is corrected once.
    """
    folded = int64(value & _LOW) - int64(15) * int64(value >> _HALF)
    folded = (folded & int64(_LOW)) - int64(15) * (folded >> int64(32))
    return min(uint64(folded), uint64(folded) - _PRIME)


@compiled
def minimum_prime32(ids, offsets, multipliers, addends, shift):
    sketches, shift = np.zeros((len(offsets) - 1, len(addends)), np.uint64), uint64(shift)
    for document in range(len(offsets) - 1):
        begin, last = offsets[document], offsets[document + 1] - 1
        row = sketches[document]
        if begin <= last:
            row[:] = _EMPTY

        # Four ids per step save passes over the row. The last step may repeat an id, which does not change a minimum.
        for at in range(begin, last + 1, 4):
            x0 = uint64(uint32(ids[at] >> shift))
            x1 = uint64(uint32(ids[min(at + 1, last)] >> shift))
            x2 = uint64(uint32(ids[min(at + 2, last)] >> shift))
            x3 = uint64(uint32(ids[min(at + 3, last)] >> shift))
            for function in range(len(multipliers)):
                factor, addend = uint64(multipliers[function]), addends[function]
                least01 = min(_modulo_prime(factor * x0 + addend), _modulo_prime(factor * x1 + addend))
                least23 = min(_modulo_prime(factor * x2 + addend), _modulo_prime(factor * x3 + addend))
                row[function] = min(row[function], min(least01, least23))
    return sketches


@compiled
def minimum_java32(ids, offsets, multipliers, addends, shift):
    sketches, shift = np.zeros((len(offsets) - 1, len(addends)), np.int32), uint64(shift)
    for document in range(len(offsets) - 1):
        begin, last = offsets[document], offsets[document + 1] - 1
        row = sketches[document]
        if begin <= last:
            row[:] = _MAX_INT32

        # Process four ids per step, as in minimum_prime32.
        for at in range(begin, last + 1, 4):
            x0 = uint32(ids[at] >> shift)
            x1 = uint32(ids[min(at + 1, last)] >> shift)
            x2 = uint32(ids[min(at + 2, last)] >> shift)
            x3 = uint32(ids[min(at + 3, last)] >> shift)
            for function in range(len(multipliers)):
                factor, addend = uint32(multipliers[function]), uint32(addends[function])
                least01 = min(_wrapped(factor, x0, addend), _wrapped(factor, x1, addend))
                least23 = min(_wrapped(factor, x2, addend), _wrapped(factor, x3, addend))
                row[function] = min(row[function], min(least01, least23))
    return sketches


@inlined
def _wrapped(factor, point, addend):
    return np.int32(uint32(uint32(factor * point) + addend))


def fast_similarity(ids, offsets, hash_rounds, mix_ids):
    return _fast_similarity(_mixed(ids) if mix_ids else ids, offsets, hash_rounds)


@compiled
def _mixed(ids):
    points = np.empty(len(ids), np.uint64)
    for at in range(len(ids)):
        points[at] = fmix64(ids[at])
    return points


@compiled
def _fast_similarity(points, offsets, hash_rounds):
    k, rounds = len(hash_rounds.forced_addends), len(hash_rounds.masks)
    sketches = np.zeros((len(offsets) - 1, k), np.uint32)
    cells = np.empty(k, np.uint64)
    hashes = np.empty((2, _IDS_AT_ONCE), np.uint64)
    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin == end:
            continue

        # Throw all ids, round by round, until every position is filled.
        cells[:] = _EMPTY
        round_no = 0
        while round_no < rounds and _any_empty(cells):
            mask, multiplier = hash_rounds.masks[round_no], hash_rounds.multipliers[round_no]
            prefix = uint64(round_no) << _HALF
            _hash(points, begin, end, mask, multiplier, prefix, cells, hashes[0], hashes[1])
            round_no += 1
        if _any_empty(cells):
            _force(
                points[begin:end], hash_rounds.forced_multipliers, hash_rounds.forced_addends, rounds, cells
            )

        for position in range(k):
            cell = cells[position]
            sketches[document, position] = uint32(cell) ^ uint32(uint32(cell >> _HALF) * _ROUND_MIX)
    return sketches


@compiled
def _hash(points, begin, end, mask, multiplier, prefix, cells, positions, values):
    """Throw points[begin:end] once. `prefix` has the number of the round in its upper half."""
    # A factor that the compiler knows to be below 2^32 takes one vector multiplication instead of three.
    k = uint64(uint32(len(cells)))
    while begin < end:
        count = min(end - begin, _IDS_AT_ONCE)
        # This loop only hashes, so it is vectorised.
        for at in range(count):
            hashed = (points[begin + at] ^ mask) * multiplier
            positions[at] = ((hashed >> _HALF) * k) >> _HALF
            values[at] = prefix | ((hashed ^ (hashed >> _HALF)) & _LOW)
        for at in range(count):
            position = uintp(positions[at])
            cells[position] = min(cells[position], values[at])
        begin += count


@compiled
def _any_empty(cells):
    empty = False
    for position in range(len(cells)):
        empty |= cells[position] == _EMPTY
    return empty


@compiled
def _force(points, multipliers, addends, rounds, cells):
    """Fill the positions that are empty after all rounds."""
    for position in range(len(cells)):
        if cells[position] != _EMPTY:
            continue
        multiplier, addend = multipliers[position], addends[position]
        least = uint32(_LOW)
        for at in range(len(points)):
            least = min(least, uint32(uint32(multiplier * uint32(points[at])) + addend))
        cells[position] = (uint64(rounds) << _HALF) | uint64(least)
