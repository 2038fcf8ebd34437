"""The kernel that collapses separators, compiled by numba; see `TextKernels`."""

import numpy as np
from numba import uint8, uint32, uintp

from nearsim_db.similarity.jit import compiled, inlined
from nearsim_db.similarity.text.kernels import Bytes, Offsets


def squeeze(data: Bytes, offsets: Offsets, table: Bytes) -> tuple[Bytes, Offsets]:
    out = np.empty(len(data), np.uint8)
    out_offsets = np.zeros(len(offsets), np.int64)
    _squeeze(data, offsets, table, out, out_offsets)
    return out[: out_offsets[-1]], out_offsets


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
def _squeeze(data, offsets, table, out, out_offsets):
    written = uintp(0)
    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if is_ascii(data, begin, end):
            written = _squeeze_ascii(data, begin, end, table, out, written)
        else:
            written = _squeeze_unicode(data, begin, end, table, out, written)
        out_offsets[document + 1] = written


@compiled
def is_ascii(data, begin, end):
    high = uint8(0)
    for at in range(begin, end):
        high = uint8(high | data[at])
    return high < 128


@compiled
def _squeeze_ascii(data, begin, end, table, out, written):
    """Collapse without branches: each separator is written as a space, and overwritten if one precedes it."""
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
