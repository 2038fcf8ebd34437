"""The kernel that collapses separators, compiled by numba; see `TextKernels`."""

import numpy as np
from numba import uint8, uint32, uint64, uintp

from nearsim_db.similarity.jit import compiled, inlined

_BYTES_AT_ONCE = np.uintp(2048)  # with their classes they fit the first-level cache
_WORD = np.uintp(8)
_MOST_RANGES = 8


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
    lows, spans = np.empty(_MOST_RANGES, np.uint8), np.empty(_MOST_RANGES, np.uint8)
    ranges = _kept_ranges(table, lows, spans)
    scratch = np.zeros((3, _BYTES_AT_ONCE), np.uint8)
    written = uintp(0)
    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if not is_ascii(data, begin, end):
            written = _squeeze_unicode(data, begin, end, table, out, written)
        elif ranges == 0:
            written = _squeeze_ascii(data, begin, end, table, out, written)
        else:
            case = uint8(table[uintp(65)] == 97) << uint8(5)
            written = _squeeze_ranges(
                data, begin, end, lows[:ranges], spans[:ranges], uint8(case), out, written, scratch
            )
        out_offsets[document + 1] = written
    return out[: out_offsets[-1]], out_offsets


@compiled
def _kept_ranges(table, lows, spans):
    """Find the ranges of ASCII that a table keeps as they are, or all capitals of them in lower case.

    Returns their number, with the first byte of each and the distance to its last; 0 for any other table.
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
    """Collapse in loops without dependencies, which are vectorised, and copy the runs between dropped separators."""
    first = written
    kept, mapped, dropped = scratch[0], scratch[1], scratch[2]
    before = uint8(0)
    at = begin
    while at < end:
        count = min(end - at, _BYTES_AT_ONCE)
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
    """Set `kept` to 1 for bytes in a range, and `mapped` to what is written: such bytes in lower case, or a space."""
    for place in range(count):
        kept[place] = uint8(0)
    for one in range(uintp(len(lows))):
        low, span = lows[one], spans[one]
        for place in range(count):
            kept[place] |= uint8(uint8(data[at + place] - low) <= span)
    for place in range(count):
        byte = data[at + place]
        capital = uint8(uint8(byte - uint8(65)) <= uint8(25))
        mapped[place] = uint8(byte + uint8(capital * case)) if kept[place] else uint8(32)


@compiled
def _copy_runs(mapped, dropped, count, out, written):
    start = uintp(0)
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
    """Collapse by any table without branches: each separator is written as a space, and overwritten if one precedes
    it.
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
