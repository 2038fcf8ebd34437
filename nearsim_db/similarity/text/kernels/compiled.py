"""The text kernels compiled by numba; see `TextKernels`.

Positions are unsigned: numba checks signed indexes for negative values, which prevents vectorisation and takes
two to five times as long. A sum of a signed and an unsigned integer would be a float.
"""

import numpy as np
from numba import uint8, uint32, uint64, uintp

from nearsim_db.similarity.jit import compiled, fmix64
from nearsim_db.similarity.text.kernels.compiled_distinct import distinct as distinct
from nearsim_db.similarity.text.kernels.compiled_squeeze import is_ascii
from nearsim_db.similarity.text.kernels.compiled_squeeze import squeeze as squeeze
from nearsim_db.similarity.text.kernels.plain_hashes import BASE, SEGMENT, crc_table, inverse_powers, powers

_BASE = np.uint64(BASE)
_SEGMENT = np.uintp(SEGMENT)
_WINDOWS_AT_ONCE = np.uintp(1024)  # their sums and powers fit the first-level cache
_LEAST_HALVED, _MOST_HALVED = np.uintp(4), np.uintp(7)
_BYTES_AT_ONCE = np.uintp(128)  # scanned for digits by vector instructions
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
        # Flipping the sign bit and subtracting it extends it to 32 bits.
        state = uint32(state * uint32(33)) ^ uint32((uint32(data[at]) ^ sign) - sign)
    return uint64(state)


@compiled
def _window_ids(data, starts, units, gap, k, base, powers, inverses, crc_entries, sums, ids, written):
    """Hash the windows of one document whose unit u is data[starts[u] : starts[u + 1] - gap]."""
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
    """poly64 of the k-byte windows of a document in which every byte is a character."""
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
    """Compute as `_ascii_char_ids` for k of 4 to 7, without its serial sums: add up two windows of half the length."""
    windows, half, rest = end - begin - k + uintp(1), k // uintp(2), k % uintp(2)
    done = uintp(0)
    while done < windows:
        count = min(windows - done, _WINDOWS_AT_ONCE)
        _half_sums(data, begin + done, count + half, half, powers, halves)
        first, second = begin + done, written + done
        if rest:
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
    halves = np.empty(_WINDOWS_AT_ONCE + _MOST_HALVED, np.uint64)
    starts = np.empty(0, np.uintp)
    written = uintp(0)
    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin == end:
            out[document + 1] = written
            continue
        if base == _POLY64 and k <= _SEGMENT and (single_bytes or is_ascii(data, begin, end)):
            if k >= _LEAST_HALVED and k <= _MOST_HALVED and end - begin >= k:
                written = _halved_char_ids(data, begin, end, k, powers, halves, ids, written)
            else:
                written = _ascii_char_ids(data, begin, end, k, powers, inverses, sums, ids, written)
        else:
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
        if inside:
            total += fmix64(value)
        sums[document] = total
    return sums


@compiled
def _has_digit(data, begin, end):
    found = uint8(0)
    for at in range(begin, end):
        found |= uint8(uint8(data[at] - uint8(48)) <= uint8(9))
    return found != 0
