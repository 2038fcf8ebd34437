"""The text kernels compiled by numba; see `TextKernels`.

Positions are unsigned, because numba checks signed indexes for negative values, which prevents vectorisation and takes
two to five times as long. Signed and unsigned integers are never added: in numba the sum would be a float.
"""

import numpy as np
from numba import uint8, uint32, uint64, uintp

from nearsim_db.similarity.jit import compiled, fmix64, inlined
from nearsim_db.similarity.text.kernels.plain_hashes import (
    BASE,
    SEGMENT_BYTES,
    crc_table,
    inverse_powers,
    powers,
)

_BASE = np.uint64(BASE)
_SEGMENT = np.uintp(SEGMENT_BYTES)
# The sums and powers of this number of windows fit into the first-level cache.
_WINDOWS_AT_ONCE = np.uintp(1024)
# The values of k for `_halved_char_ids`.
_MIN_HALVED_K, _MAX_HALVED_K = np.uintp(4), np.uintp(7)
# Vector instructions scan this number of bytes for digits at once.
_BYTES_AT_ONCE = np.uintp(128)
_POLY64, _CRC32, _DJB2A, _SIGNED_DJB2A = 0, 1, 2, 3
_BASES = {"poly64": _POLY64, "crc32": _CRC32, "djb2a": _DJB2A, "djb2a-signed": _SIGNED_DJB2A}


def char_ids(data, offsets, k, base, single_bytes):
    return _char_ids(data, offsets, np.uintp(k), _BASES[base], single_bytes, *_tables())


def unit_ids(data, offsets, k, base, separator):
    return _unit_ids(data, offsets, np.uintp(k), _BASES[base], np.uint8(separator), *_tables())


def _tables():
    return powers(), inverse_powers(), crc_table()


@compiled
def _prefix_sums(data, begin, length, powers, sums):
    total = uint64(0)
    sums[uintp(0)] = total
    for at in range(length):
        total += uint64(data[begin + at]) * powers[at]
        sums[at + uintp(1)] = total


@compiled
def _polynomial(data, begin, end):
    total, factor = uint64(0), uint64(1)
    for at in range(begin, end):
        total += uint64(data[at]) * factor
        factor *= _BASE
    return total


@compiled
def _direct_hash(data, begin, end, base, crc_entries):
    if base == _CRC32:
        state = uint32(0xFFFFFFFF)
        for at in range(begin, end):
            state = crc_entries[(state ^ uint32(data[at])) & uint32(0xFF)] ^ (state >> uint32(8))
        return uint64(state ^ uint32(0xFFFFFFFF))
    state, sign = uint32(5381), uint32(0x80 if base == _SIGNED_DJB2A else 0)
    for at in range(begin, end):
        # Flipping the sign bit and then subtracting it extends the sign to 32 bits.
        state = uint32(state * uint32(33)) ^ uint32((uint32(data[at]) ^ sign) - sign)
    return uint64(state)


@compiled
def _window_ids(data, starts, units, gap, k, base, powers, inverses, crc_entries, sums, ids, written):
    """Hash the windows of one document. Its unit u is data[starts[u] : starts[u + 1] - gap]."""
    length = min(k, units)
    windows = units - length + uintp(1)
    if base != _POLY64:
        for window in range(windows):
            ids[written + window] = _direct_hash(
                data, starts[window], starts[window + length] - gap, base, crc_entries
            )
        return written + windows

    window = uintp(0)
    while window < windows:
        origin = starts[window]
        if starts[window + length] - gap - origin > _SEGMENT:
            ids[written + window] = fmix64(_polynomial(data, origin, starts[window + length] - gap))
            window += uintp(1)
            continue

        # All windows that end within a segment use the prefix sums of the segment.
        reach = min(starts[units] - gap - origin, _SEGMENT)
        _prefix_sums(data, origin, reach, powers, sums)
        ends = starts[window + length : units + uintp(1)]
        count = uintp(np.searchsorted(ends, origin + reach + gap, side="right"))
        for at in range(count):
            first = starts[window + at] - origin
            last = ends[at] - gap - origin
            ids[written + window + at] = fmix64((sums[last] - sums[first]) * inverses[first])
        window += count
    return written + windows


@compiled
def _ascii_char_ids(data, begin, end, k, powers, inverses, sums, ids, written):
    """Compute poly64 of the k-byte windows of a document in which every byte is a character."""
    length = min(k, end - begin)
    windows = end - begin - length + uintp(1)
    done = uintp(0)
    while done < windows:
        origin = begin + done
        reach = min(end - origin, min(length + _WINDOWS_AT_ONCE, _SEGMENT))
        _prefix_sums(data, origin, reach, powers, sums)
        count = reach - length + uintp(1)
        for at in range(count):
            ids[written + done + at] = fmix64((sums[at + length] - sums[at]) * inverses[at])
        done += count
    return written + windows


@compiled
def _halved_char_ids(data, begin, end, k, powers, halves, ids, written):
    """Compute the same as `_ascii_char_ids` for k of 4 to 7, by adding the sums of two windows of half the length.

    Unlike prefix sums, these do not depend on each other, so the loop is vectorised.
    """
    windows, half, is_odd = end - begin - k + uintp(1), k // uintp(2), k % uintp(2)

    done = uintp(0)
    while done < windows:
        count = min(windows - done, _WINDOWS_AT_ONCE)
        _half_sums(data, begin + done, count + half, half, powers, halves)
        first, second = begin + done, written + done
        if is_odd:
            for at in range(count):
                total = halves[at] + halves[at + half] * powers[half]
                last = uint64(data[first + at + half + half]) * powers[half + half]
                ids[second + at] = fmix64(total + last)
        else:
            for at in range(count):
                ids[second + at] = fmix64(halves[at] + halves[at + half] * powers[half])
        done += count
    return written + windows


@compiled
def _half_sums(data, begin, count, half, powers, halves):
    if half == 2:
        for at in range(count):
            halves[at] = uint64(data[begin + at]) + uint64(data[begin + at + uintp(1)]) * powers[uintp(1)]
    else:
        for at in range(count):
            two = uint64(data[begin + at]) + uint64(data[begin + at + uintp(1)]) * powers[uintp(1)]
            halves[at] = two + uint64(data[begin + at + uintp(2)]) * powers[uintp(2)]


@compiled
def _longest(offsets):
    longest = uintp(0)
    for document in range(len(offsets) - 1):
        longest = max(longest, uintp(offsets[document + 1] - offsets[document]))
    return longest


@compiled
def _char_ids(data, offsets, k, base, single_bytes, powers, inverses, crc_entries):
    ids, out = np.empty(len(data), np.uint64), np.zeros(len(offsets), np.int64)
    longest = _longest(offsets)
    sums = np.empty(min(longest, _SEGMENT) + uintp(1), np.uint64)
    halves = np.empty(_WINDOWS_AT_ONCE + _MAX_HALVED_K, np.uint64)
    starts = np.empty(0, np.uintp)
    written = uintp(0)

    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin == end:
            out[document + 1] = written
            continue
        if base == _POLY64 and k <= _SEGMENT and (single_bytes or is_ascii(data, begin, end)):
            if k >= _MIN_HALVED_K and k <= _MAX_HALVED_K and end - begin >= k:
                written = _halved_char_ids(data, begin, end, k, powers, halves, ids, written)
            else:
                written = _ascii_char_ids(data, begin, end, k, powers, inverses, sums, ids, written)
        else:
            # This array is needed only for non-ASCII texts, other base hashes, and very long windows.
            if len(starts) == 0:
                starts = np.empty(longest + uintp(1), np.uintp)
            units = uintp(0)
            for at in range(begin, end):
                starts[units] = at
                units += uintp(single_bytes or data[at] & 0xC0 != 0x80)
            starts[units] = end
            written = _window_ids(
                data, starts, units, uintp(0), k, base, powers, inverses, crc_entries, sums, ids, written
            )
        out[document + 1] = written
    return ids[: out[-1]], out


@compiled
def _unit_ids(data, offsets, k, base, separator, powers, inverses, crc_entries):
    # Each unit takes at least two bytes, its own and a separator, except the last unit of a document.
    ids, out = np.empty(len(data) // 2 + len(offsets), np.uint64), np.zeros(len(offsets), np.int64)
    longest = _longest(offsets)
    sums = np.empty(min(longest, _SEGMENT) + uintp(1), np.uint64)
    starts = np.empty(longest // uintp(2) + uintp(3), np.uintp)
    written = uintp(0)

    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin < end:
            units = uintp(1)
            starts[uintp(0)] = begin
            for at in range(begin, end):
                starts[units] = at + uintp(1)
                units += uintp(data[at] == separator)
            starts[units] = end + uintp(1)
            written = _window_ids(
                data, starts, units, uintp(1), k, base, powers, inverses, crc_entries, sums, ids, written
            )
        out[document + 1] = written
    return ids[: out[-1]], out


@compiled
def number_sums(data, offsets):
    sums = np.zeros(len(offsets) - 1, np.uint64)
    for document in range(len(offsets) - 1):
        at, end = uintp(offsets[document]), uintp(offsets[document + 1])
        value, factor, inside = uint64(0), uint64(1), False
        total = uint64(0)

        while at < end:
            stop = min(at + _BYTES_AT_ONCE, end)
            if not inside and not _has_digit(data, at, stop):
                at = stop
            while at < stop:
                byte = data[at]
                if byte >= 48 and byte <= 57:
                    value += uint64(byte) * factor
                    factor *= _BASE
                    inside = True
                elif inside:
                    total += fmix64(value)
                    value, factor, inside = uint64(0), uint64(1), False
                at += uintp(1)
        # The document may end with a number.
        if inside:
            total += fmix64(value)
        sums[document] = total
    return sums


@compiled
def _has_digit(data, begin, end):
    has_digit = uint8(0)
    for at in range(begin, end):
        has_digit |= uint8(uint8(data[at] - uint8(48)) <= uint8(9))
    return has_digit != 0


# This number of bytes, with the three scratch arrays for them, fits into the first-level cache.
_SQUEEZED_AT_ONCE = np.uintp(2048)
_WORD = np.uintp(8)
_MAX_RANGES = 8


@inlined
def _code_point(data, at, byte):
    """Return the multi-byte code point that begins at `at` with `byte`, and its width in bytes."""
    second = uint32(data[at + uintp(1)] & 0x3F)
    if byte < 0xE0:
        return (uint32(byte & 0x1F) << uint32(6)) | second, uintp(2)
    third = uint32(data[at + uintp(2)] & 0x3F)
    if byte < 0xF0:
        return (uint32(byte & 0x0F) << uint32(12)) | (second << uint32(6)) | third, uintp(3)
    fourth = uint32(data[at + uintp(3)] & 0x3F)
    point = (uint32(byte & 0x07) << uint32(18)) | (second << uint32(12)) | (third << uint32(6)) | fourth
    return point, uintp(4)


@compiled
def squeeze(data, offsets, table):
    out, out_offsets = np.empty(len(data), np.uint8), np.zeros(len(offsets), np.int64)
    lows, spans = np.empty(_MAX_RANGES, np.uint8), np.empty(_MAX_RANGES, np.uint8)
    ranges = _kept_ranges(table, lows, spans)
    scratch = np.zeros((3, _SQUEEZED_AT_ONCE), np.uint8)
    written = uintp(0)

    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if not is_ascii(data, begin, end):
            written = _squeeze_unicode(data, begin, end, table, out, written)
        elif ranges == 0:
            written = _squeeze_ascii(data, begin, end, table, out, written)
        else:
            # The bit by which small letters differ from capitals if the table folds capitals, otherwise 0.
            case = uint8(table[uintp(65)] == 97) << uint8(5)
            written = _squeeze_ranges(
                data, begin, end, lows[:ranges], spans[:ranges], uint8(case), out, written, scratch
            )
        out_offsets[document + 1] = written
    return out[: out_offsets[-1]], out_offsets


@compiled
def _kept_ranges(table, lows, spans):
    """Find the ranges of ASCII characters that a table keeps, either unchanged or with all capitals in lower case.

    Writes the first byte of each range to `lows`, and the distance to its last byte to `spans`. Returns the number of
    ranges, or 0 if the table does anything else.
    """
    ranges, inside = uintp(0), False
    folded = table[uintp(65)] == 97
    if table[uintp(0)] != 0:
        return uintp(0)

    for code in range(uintp(1), uintp(128)):
        kept = uintp(table[code])
        if kept != 0:
            capital = folded and code >= 65 and code <= 90
            if kept != (code + uintp(32) if capital else code):
                return uintp(0)
            if not inside:
                if ranges == len(lows):
                    return uintp(0)
                lows[ranges] = code
                ranges += uintp(1)
            spans[ranges - uintp(1)] = uint8(code - uintp(lows[ranges - uintp(1)]))
        inside = kept != 0
    return ranges


@compiled
def is_ascii(data, begin, end):
    high = uint8(0)
    for at in range(begin, end):
        high = uint8(high | data[at])
    return high < 128


@compiled
def _squeeze_ranges(data, begin, end, lows, spans, case, out, written, scratch):
    """Collapse separators: mark the bytes to drop in vectorised loops, and copy the runs between these bytes."""
    first = written
    kept, mapped, dropped = scratch[0], scratch[1], scratch[2]
    before = uint8(0)
    at = begin
    while at < end:
        count = min(end - at, _SQUEEZED_AT_ONCE)
        _classify(data, at, count, lows, spans, case, kept, mapped)
        dropped[uintp(0)] = uint8((kept[uintp(0)] | before) == 0)
        for place in range(uintp(1), count):
            dropped[place] = uint8((kept[place] | kept[place - uintp(1)]) == 0)
        before = kept[count - uintp(1)]
        written = _copy_runs(mapped, dropped, count, out, written)
        at += count
    return written - uintp(1) if before == 0 and written > first else written


@compiled
def _classify(data, at, count, lows, spans, case, kept, mapped):
    """Set `kept` to 1 for each byte in a range. Set `mapped` to such a byte in lower case, or else to a space."""
    for place in range(count):
        kept[place] = uint8(0)
    for row in range(uintp(len(lows))):
        low, span = lows[row], spans[row]
        for place in range(count):
            kept[place] |= uint8(uint8(data[at + place] - low) <= span)
    for place in range(count):
        byte = data[at + place]
        capital = uint8(uint8(byte - uint8(65)) <= uint8(25))
        mapped[place] = uint8(byte + uint8(capital * case)) if kept[place] else uint8(32)


@compiled
def _copy_runs(mapped, dropped, count, out, written):
    start = uintp(0)
    # Check eight bytes at a time, because in most cases none of them is dropped.
    words = dropped.view(np.uint64)
    for word in range((count + _WORD - uintp(1)) // _WORD):
        if words[word] != uint64(0):
            for place in range(word * _WORD, min((word + uintp(1)) * _WORD, count)):
                if dropped[place]:
                    written = _copy(mapped, start, place, out, written)
                    start = place + uintp(1)
    return _copy(mapped, start, count, out, written)


@compiled
def _copy(mapped, begin, end, out, written):
    for place in range(end - begin):
        out[written + place] = mapped[begin + place]
    return written + (end - begin)


@compiled
def _squeeze_ascii(data, begin, end, table, out, written):
    """Collapse separators by any table, without branches.

    Each separator is written as a space. A space after a space is overwritten by the next character.
    """
    first = written
    after_space = True
    for at in range(begin, end):
        kept = table[uintp(data[at])]
        separates = kept == 0
        out[written] = uint8(32) if separates else kept
        written += uintp(0 if separates and after_space else 1)
        after_space = separates
    return written - uintp(1) if after_space and written > first else written


@compiled
def _squeeze_unicode(data, begin, end, table, out, written):
    first = written
    after_space = True
    at = begin

    while at < end:
        byte = data[at]
        if byte < 128:
            kept = table[uintp(byte)]
            separates = kept == 0
            out[written] = uint8(32) if separates else kept
            written += uintp(0 if separates and after_space else 1)
            at += uintp(1)
        else:
            point, width = _code_point(data, at, byte)
            separates = table[uintp(point)] == 0
            if not separates:
                for byte_of_point in range(width):
                    out[written + byte_of_point] = data[at + byte_of_point]
                written += width
            elif not after_space:
                out[written] = uint8(32)
                written += uintp(1)
            at += width
        after_space = separates
    return written - uintp(1) if after_space and written > first else written


_MAX_BUCKETS = np.uintp(1 << 14)
# A fuller bucket takes more time to sort by insertion than by radix sort.
_MAX_INSERTION_SORTED = np.uint32(64)
_DIGITS = np.uintp(8)
_DIGIT_BITS = np.uintp(8)
_DIGIT_VALUES = np.uintp(256)


@compiled
def distinct(ids, offsets):
    distinct_ids, counts = np.empty(len(ids), np.uint64), np.empty(len(ids), np.int64)
    out_offsets = np.zeros(len(offsets), np.int64)
    longest = uintp(0)
    for document in range(len(offsets) - 1):
        longest = max(longest, uintp(offsets[document + 1] - offsets[document]))
    ends = np.empty(min(longest + longest, _MAX_BUCKETS) + uintp(1), np.uint32)
    spare = np.empty(0, np.uint64)

    written = uintp(0)
    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin < end:
            if not _bucket_sort(ids, begin, end, ends, distinct_ids, written):
                if len(spare) == 0:
                    spare = np.empty(longest, np.uint64)
                _radix_sort(ids, begin, end, distinct_ids, written, spare)
            written = _compact(distinct_ids, written, end - begin, counts)
        out_offsets[document + 1] = written
    return distinct_ids[: out_offsets[-1]], out_offsets, counts[: out_offsets[-1]]


@compiled
def _bucket_sort(ids, begin, end, ends, target, first):
    """Sort ids[begin:end] into `target` from `first` on, by buckets of their top bits with about one id in each.

    Returns False without sorting if the ids are far from uniformly distributed.
    """
    # The highest bit that any id has decides how far to shift.
    united = uint64(0)
    for at in range(begin, end):
        united |= ids[at]
    shift, buckets = uint64(0), uintp(1)
    while united >> shift > uint64(1) and shift < uint64(63):
        shift += uint64(1)
    shift += uint64(1)
    while buckets < end - begin and buckets < _MAX_BUCKETS and shift > uint64(0):
        buckets += buckets
        shift -= uint64(1)
    ends[: buckets + uintp(1)] = uint32(0)

    # Shift in two steps, because a single shift must be less than 64 bits.
    half = shift >> uint64(1)
    other_half = shift - half
    for at in range(begin, end):
        ends[uintp((ids[at] >> half) >> other_half) + uintp(1)] += uint32(1)
    fullest = uint32(0)
    for bucket in range(buckets):
        fullest = max(fullest, ends[bucket + uintp(1)])
        ends[bucket + uintp(1)] += ends[bucket]

    if fullest > _MAX_INSERTION_SORTED:
        return False
    for at in range(begin, end):
        bucket = uintp((ids[at] >> half) >> other_half)
        target[first + uintp(ends[bucket])] = ids[at]
        ends[bucket] += uint32(1)
    _insertion_sort(target, first, first + end - begin)
    return True


@compiled
def _insertion_sort(ids, begin, end):
    for at in range(begin + uintp(1), end):
        id, place = ids[at], at
        while place > begin and ids[place - uintp(1)] > id:
            ids[place] = ids[place - uintp(1)]
            place -= uintp(1)
        ids[place] = id


@compiled
def _radix_sort(ids, begin, end, target, first, spare):
    """Sort ids[begin:end] into `target` from `first` on. The distribution of the ids does not matter."""
    starts = np.empty(_DIGIT_VALUES + uintp(1), np.uintp)
    source, destination = target[first : first + end - begin], spare[: end - begin]

    # A slice assignment would make numba compile its error for unequal lengths, which adds 4 s to the first call.
    for at in range(uintp(len(source))):
        source[at] = ids[begin + at]

    # The number of passes is even, so the last pass writes to the target.
    for digit in range(_DIGITS):
        shift = uint64(digit * _DIGIT_BITS)
        starts[:] = uintp(0)
        for at in range(uintp(len(source))):
            starts[uintp((source[at] >> shift) & uint64(0xFF)) + uintp(1)] += uintp(1)
        for value in range(_DIGIT_VALUES):
            starts[value + uintp(1)] += starts[value]
        for at in range(uintp(len(source))):
            value = uintp((source[at] >> shift) & uint64(0xFF))
            destination[starts[value]] = source[at]
            starts[value] += uintp(1)
        source, destination = destination, source


@compiled
def _compact(ids, first, count, counts):
    """Move the distinct ids among sorted ids to the front, and count each. Returns the end of the distinct ids."""
    kept = first
    counts[kept] = 1
    for at in range(first + uintp(1), first + count):
        repeated = ids[at] == ids[kept]
        kept += uintp(not repeated)
        ids[kept] = ids[at]
        counts[kept] = counts[kept] + 1 if repeated else 1
    return kept + uintp(1)
