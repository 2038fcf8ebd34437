"""The text kernels compiled by numba; see `TextKernels` for what each one does."""

import numpy as np
from numba import int64, uint8, uint32, uint64

from nearsim_db.jit import compiled, inlined
from nearsim_db.text import poly64
from nearsim_db.text.kernels import Bytes, Ids, Offsets
from nearsim_db.text.kernels.plain import crc_table

_BASE = np.uint64(poly64.BASE)
_FIRST = np.uint64(poly64.MIX_FIRST)
_SECOND = np.uint64(poly64.MIX_SECOND)
_SEGMENT = poly64.SEGMENT
_POLY64, _CRC32, _DJB2A = 0, 1, 2
_BASES = {"poly64": _POLY64, "crc32": _CRC32, "djb2a": _DJB2A}


def squeeze(data: Bytes, offsets: Offsets, table: Bytes) -> tuple[Bytes, Offsets]:
    out = np.empty(len(data), np.uint8)
    out_offsets = np.zeros(len(offsets), np.int64)
    _squeeze(data, offsets, table, out, out_offsets)
    return out[: out_offsets[-1]], out_offsets


def char_ids(data: Bytes, offsets: Offsets, k: int, base: str, ascii: bool) -> tuple[Ids, Offsets]:
    ids, out = np.empty(len(data), np.uint64), np.zeros(len(offsets), np.int64)
    _char_ids(data, offsets, k, _BASES[base], poly64.powers(), poly64.inverse_powers(), crc_table(), ids, out)
    return ids[: out[-1]], out


def unit_ids(data: Bytes, offsets: Offsets, k: int, base: str, separator: int) -> tuple[Ids, Offsets]:
    ids, out = np.empty(len(data) // 2 + len(offsets), np.uint64), np.zeros(len(offsets), np.int64)
    _unit_ids(
        data,
        offsets,
        k,
        _BASES[base],
        np.uint8(separator),
        poly64.powers(),
        poly64.inverse_powers(),
        crc_table(),
        ids,
        out,
    )
    return ids[: out[-1]], out


def number_sums(data: Bytes, offsets: Offsets) -> Ids:
    sums = np.zeros(len(offsets) - 1, np.uint64)
    _number_sums(data, offsets, sums)
    return sums


@inlined
def _fmix64(value):  # type: ignore[no-untyped-def]
    value = uint64(value)
    value = (value ^ (value >> uint64(33))) * _FIRST
    value = (value ^ (value >> uint64(33))) * _SECOND
    return value ^ (value >> uint64(33))


@compiled
def _squeeze(data, offsets, table, out, out_offsets):  # type: ignore[no-untyped-def]
    written = 0
    for document in range(len(offsets) - 1):
        begin = written
        gap = False
        at = offsets[document]
        end = offsets[document + 1]
        while at < end:
            byte = data[at]
            width = 1
            kept = table[byte]
            if byte >= 128:
                if byte < 0xE0:
                    width = 2
                    point = (uint32(byte & 0x1F) << uint32(6)) | uint32(data[at + 1] & 0x3F)
                elif byte < 0xF0:
                    width = 3
                    point = (
                        (uint32(byte & 0x0F) << uint32(12))
                        | (uint32(data[at + 1] & 0x3F) << uint32(6))
                        | uint32(data[at + 2] & 0x3F)
                    )
                else:
                    width = 4
                    point = (
                        (uint32(byte & 0x07) << uint32(18))
                        | (uint32(data[at + 1] & 0x3F) << uint32(12))
                        | (uint32(data[at + 2] & 0x3F) << uint32(6))
                        | uint32(data[at + 3] & 0x3F)
                    )
                kept = table[point]
            if kept == 0:
                gap = True
                at += width
                continue
            if gap and written > begin:
                out[written] = uint8(32)
                written += 1
            gap = False
            if width == 1:
                out[written] = kept
                written += 1
            else:
                for byte_of_point in range(width):
                    out[written + byte_of_point] = data[at + byte_of_point]
                written += width
            at += width
        out_offsets[document + 1] = written


@compiled
def _prefix_sums(data, begin, length, powers, sums):  # type: ignore[no-untyped-def]
    total = uint64(0)
    sums[0] = total
    for at in range(length):
        total += uint64(data[begin + at]) * powers[at]
        sums[at + 1] = total


@compiled
def _polynomial(data, begin, end):  # type: ignore[no-untyped-def]
    total, factor = uint64(0), uint64(1)
    for at in range(begin, end):
        total += uint64(data[at]) * factor
        factor *= _BASE
    return total


@compiled
def _direct_hash(data, begin, end, base, crc_entries):  # type: ignore[no-untyped-def]
    if base == _CRC32:
        state = uint32(0xFFFFFFFF)
        for at in range(begin, end):
            state = crc_entries[(state ^ uint32(data[at])) & uint32(0xFF)] ^ (state >> uint32(8))
        return uint64(state ^ uint32(0xFFFFFFFF))
    state = uint32(5381)
    for at in range(begin, end):
        state = uint32(state * uint32(33)) ^ uint32(data[at])
    return uint64(state)


@compiled
def _window_ids(  # type: ignore[no-untyped-def]
    data, starts, units, gap, k, base, powers, inverses, crc_entries, sums, ids, written
):
    """Ids of the windows of one document whose unit u is data[starts[u] : starts[u + 1] - gap]."""
    length = min(k, units)
    windows = units - length + 1
    if base != _POLY64:
        for window in range(windows):
            ids[written + window] = _direct_hash(
                data, starts[window], starts[window + length] - gap, base, crc_entries
            )
        return written + windows
    window = 0
    while window < windows:
        origin = starts[window]
        if starts[window + length] - gap - origin > _SEGMENT:
            ids[written + window] = _fmix64(_polynomial(data, origin, starts[window + length] - gap))
            window += 1
            continue
        reach = min(starts[units] - gap - origin, _SEGMENT)
        _prefix_sums(data, origin, reach, powers, sums)
        while window < windows:
            first = starts[window] - origin
            last = starts[window + length] - gap - origin
            if last > reach:
                break
            ids[written + window] = _fmix64((sums[last] - sums[first]) * inverses[first])
            window += 1
    return written + windows


@compiled
def _ascii_char_ids(data, begin, end, k, powers, inverses, sums, ids, written):  # type: ignore[no-untyped-def]
    """poly64 of the k-byte windows of a document in which every byte is a character."""
    length = min(k, end - begin)
    windows = end - begin - length + 1
    done = 0
    while done < windows:
        origin = begin + done
        reach = min(end - origin, _SEGMENT)
        _prefix_sums(data, origin, reach, powers, sums)
        count = reach - length + 1
        for at in range(count):
            ids[written + done + at] = _fmix64((sums[at + length] - sums[at]) * inverses[at])
        done += count
    return written + windows


@compiled
def _char_ids(data, offsets, k, base, powers, inverses, crc_entries, ids, out):  # type: ignore[no-untyped-def]
    longest = 0
    for document in range(len(offsets) - 1):
        longest = max(longest, offsets[document + 1] - offsets[document])
    sums = np.empty(min(longest, _SEGMENT) + 1, np.uint64)
    starts = np.empty(0, np.int64)
    written = int64(0)
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        high = uint8(0)
        for at in range(begin, end):
            high |= data[at]
        if begin == end:
            out[document + 1] = written
            continue
        if high < 128 and base == _POLY64 and k <= _SEGMENT:
            written = _ascii_char_ids(data, begin, end, k, powers, inverses, sums, ids, written)
        else:
            if len(starts) == 0:
                starts = np.empty(longest + 1, np.int64)
            units = 0
            for at in range(begin, end):
                if data[at] & 0xC0 != 0x80:
                    starts[units] = at
                    units += 1
            starts[units] = end
            written = _window_ids(
                data, starts, units, 0, k, base, powers, inverses, crc_entries, sums, ids, written
            )
        out[document + 1] = written


@compiled
def _unit_ids(data, offsets, k, base, separator, powers, inverses, crc_entries, ids, out):  # type: ignore[no-untyped-def]
    longest = 0
    for document in range(len(offsets) - 1):
        longest = max(longest, offsets[document + 1] - offsets[document])
    sums = np.empty(min(longest, _SEGMENT) + 1, np.uint64)
    starts = np.empty(longest // 2 + 2, np.int64)
    written = int64(0)
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        if begin < end:
            units = 1
            starts[0] = begin
            for at in range(begin, end):
                if data[at] == separator:
                    starts[units] = at + 1
                    units += 1
            starts[units] = end + 1
            written = _window_ids(
                data, starts, units, 1, k, base, powers, inverses, crc_entries, sums, ids, written
            )
        out[document + 1] = written


@compiled
def _number_sums(data, offsets, sums):  # type: ignore[no-untyped-def]
    for document in range(len(offsets) - 1):
        value, factor, inside = uint64(0), uint64(1), False
        total = uint64(0)
        for at in range(offsets[document], offsets[document + 1]):
            byte = data[at]
            if byte >= 48 and byte <= 57:
                value += uint64(byte) * factor
                factor *= _BASE
                inside = True
            elif inside:
                total += _fmix64(value)
                value, factor, inside = uint64(0), uint64(1), False
        if inside:
            total += _fmix64(value)
        sums[document] = total
