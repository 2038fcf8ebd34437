"""Hashes of many windows of a text in NumPy: poly64, CRC-32 and djb2a.

poly64 of a byte string c is fmix64(sum of c[j] * BASE^j mod 2^64). The sum of a window is the difference of two prefix
sums, divided by the power of BASE at the beginning of the window, so its cost does not depend on the window's length.
"""

import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints
from nearsim_db.similarity.mixing import fmix64
from nearsim_db.similarity.text.kernels import Bytes

BASE = 0x9E3779B97F4A7C15
INVERSE = pow(BASE, -1, 1 << 64)
# The number of bytes for which powers are precomputed.
SEGMENT_BYTES = 1 << 16


@cache
def powers() -> Hashes:
    """Return BASE^0 .. BASE^(SEGMENT_BYTES-1), uint64."""
    return _powers_of(BASE)


@cache
def inverse_powers() -> Hashes:
    """Return BASE^-0 .. BASE^-(SEGMENT_BYTES-1), uint64."""
    return _powers_of(INVERSE)


def _powers_of(base: int) -> Hashes:
    factors = np.full(SEGMENT_BYTES, base, np.uint64)
    factors[0] = 1
    table: Hashes = np.multiply.accumulate(factors)
    table.flags.writeable = False
    return table


# Longer windows are hashed one by one, because stepping through all windows at once costs a NumPy call per byte.
_LONG_WINDOW_BYTES = 4096
_DJB2A_START = 5381


def prefix_sums(text: Bytes) -> Hashes:
    sums = np.zeros(len(text) + 1, np.uint64)
    np.multiply(text, powers()[: len(text)], out=sums[1:])
    return np.cumsum(sums, out=sums)


def poly64_of(data: Bytes, starts: Ints, ends: Ints) -> Hashes:
    """Hash windows by segments of the text. Windows are sorted by their starts and by their ends."""
    sums = np.empty(len(starts), np.uint64)
    done = 0
    while done < len(starts):
        origin = starts[done]
        upto = int(np.searchsorted(ends, origin + SEGMENT_BYTES, side="right"))
        if upto <= done:
            sums[done] = _long_polynomial(data[origin : ends[done]])
            done += 1
            continue

        text = data[origin : ends[upto - 1]]
        prefix = prefix_sums(text)
        first = starts[done:upto] - origin
        # The last window starts before the end of the segment, so the table of powers has an entry for it.
        sums[done:upto] = (prefix[ends[done:upto] - origin] - prefix[first]) * inverse_powers()[first]
        done = upto
    return fmix64(sums)


def _long_polynomial(text: Bytes) -> int:
    total, factor = 0, 1
    step = pow(BASE, SEGMENT_BYTES, 1 << 64)
    for at in range(0, len(text), SEGMENT_BYTES):
        part = text[at : at + SEGMENT_BYTES]
        total += int((part * powers()[: len(part)]).sum(dtype=np.uint64)) * factor
        factor = factor * step & 0xFFFFFFFFFFFFFFFF
    return total & 0xFFFFFFFFFFFFFFFF


@cache
def crc_table() -> NDArray[np.uint32]:
    """Return the 256 entries of the IEEE CRC-32 (reflected polynomial 0xEDB88320), uint32."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return table


def _crc32(data: Bytes, starts: Ints, ends: Ints) -> Hashes:
    def step(state: NDArray[np.uint32], byte: Bytes) -> NDArray[np.uint32]:
        entries: NDArray[np.uint32] = crc_table()[(state ^ byte) & 0xFF]
        return entries ^ (state >> np.uint32(8))

    hashes = _stepwise(data, starts, ends, 0xFFFFFFFF, step)
    hashes ^= np.uint32(0xFFFFFFFF)
    for window in np.flatnonzero(ends - starts > _LONG_WINDOW_BYTES):
        hashes[window] = zlib.crc32(data[starts[window] : ends[window]].tobytes())
    return hashes.astype(np.uint64)


def _djb2a(data: Bytes, starts: Ints, ends: Ints) -> Hashes:
    return _djb2a_of(data, starts, ends, np.dtype(np.uint8))


def _signed_djb2a(data: Bytes, starts: Ints, ends: Ints) -> Hashes:
    return _djb2a_of(data, starts, ends, np.dtype(np.int8))


def _djb2a_of(data: Bytes, starts: Ints, ends: Ints, of_byte: np.dtype[np.integer]) -> Hashes:
    """Hash windows, reading their bytes as `of_byte`: int8 is extended to 32 bits with its sign, as the JVM does."""

    def step(state: NDArray[np.uint32], byte: Bytes) -> NDArray[np.uint32]:
        return (state * np.uint32(33)) ^ byte.view(of_byte).astype(np.uint32)

    hashes = _stepwise(data, starts, ends, _DJB2A_START, step)
    for window in np.flatnonzero(ends - starts > _LONG_WINDOW_BYTES):
        state = _DJB2A_START
        for byte in data[starts[window] : ends[window]].view(of_byte).tolist():
            state = (state * 33 ^ byte) & 0xFFFFFFFF
        hashes[window] = state
    return hashes.astype(np.uint64)


def _stepwise(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    initial: int,
    step: Callable[[NDArray[np.uint32], Bytes], NDArray[np.uint32]],
) -> NDArray[np.uint32]:
    """Hash all windows in parallel, a byte at a time. They are sorted by length, so unfinished windows come first."""
    lengths = ends - starts
    lengths = np.where(lengths > _LONG_WINDOW_BYTES, 0, lengths)
    order = np.argsort(-lengths, kind="stable")
    at = starts[order]
    state = np.full(len(starts), initial, np.uint32)
    open_windows = len(lengths) - np.searchsorted(
        np.sort(lengths), np.arange(lengths.max(initial=0)), "right"
    )
    for position, count in enumerate(open_windows.tolist()):
        state[:count] = step(state[:count], data[at[:count] + position])
    hashes = np.empty(len(starts), np.uint32)
    hashes[order] = state
    return hashes


HASHES: dict[str, Callable[[Bytes, Ints, Ints], Hashes]] = {
    "poly64": poly64_of,
    "crc32": _crc32,
    "djb2a": _djb2a,
    "djb2a-signed": _signed_djb2a,
}
