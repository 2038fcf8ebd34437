"""The text kernels in NumPy; see `TextKernels` for what each one does."""

import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.text import poly64
from nearsim_db.similarity.text.classes import SEPARATOR
from nearsim_db.similarity.text.kernels import Bytes, Ids, Offsets

Positions = NDArray[np.int64]

_LONG_WINDOW = 4096  # bytes; stepping through longer ones costs a NumPy call a byte
_CHARACTERS_AT_ONCE = (
    poly64.SEGMENT // 8
)  # so that twice as many, of four bytes each, have their powers at hand
_DJB2A_START = 5381
_SPACE = 32


def squeeze(data: Bytes, offsets: Offsets, table: Bytes) -> tuple[Bytes, Offsets]:
    if not len(data):
        return data, offsets
    if data.max() < 128:
        return _squeeze_ascii(data, offsets, table)
    points = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-32-le"), "<u4")
    starts = np.concatenate(([0], np.cumsum(_widths(points))))
    classes = table[points]
    separates = classes == SEPARATOR
    written = np.where(points < 128, classes, points)
    written[separates] = _SPACE
    keep, kept_offsets = _collapse(separates, np.searchsorted(starts, offsets))
    kept = written[keep]
    out = np.frombuffer(kept.astype("<u4").tobytes().decode("utf-32-le").encode("utf-8"), np.uint8)
    return out, np.concatenate(([0], np.cumsum(_widths(kept))))[kept_offsets]


def _squeeze_ascii(data: Bytes, offsets: Offsets, table: Bytes) -> tuple[Bytes, Offsets]:
    separators = table[:256] == SEPARATOR
    text = data.tobytes()
    separates = np.frombuffer(text.translate(separators.tobytes()), np.bool_)
    written = text.translate(np.where(separators, _SPACE, table[:256]).astype(np.uint8).tobytes())
    keep, kept_offsets = _collapse(separates, offsets)
    return np.frombuffer(written, np.uint8)[keep], kept_offsets


def _collapse(separates: NDArray[np.bool_], offsets: Offsets) -> tuple[NDArray[np.bool_], Offsets]:
    """What stays: of a run of separators the last, where a word of the same document stands on either side."""
    follows = ~separates
    follows &= ~_document_starts(offsets, len(separates))
    gaps = separates.copy()
    gaps[:-1] &= follows[1:]
    gaps[-1] = False
    begins = offsets[:-1][np.diff(offsets) > 0]
    led = begins[separates[begins]]
    if len(led):
        places = np.flatnonzero(gaps)
        first = np.searchsorted(places, led)
        ends = offsets[np.searchsorted(offsets, led, side="right")]
        found = first < len(places)
        found[found] = places[first[found]] < ends[found]
        gaps[places[first[found]]] = False
    keep = gaps | ~separates
    return keep, offsets - np.searchsorted(np.flatnonzero(~keep), offsets)


def _document_starts(offsets: Offsets, total: int) -> NDArray[np.bool_]:
    starts = np.zeros(total + 1, bool)
    starts[offsets[:-1]] = True
    return starts[:total]


def _widths(points: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    return 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)


def char_ids(data: Bytes, offsets: Offsets, k: int, base: str, ascii: bool) -> tuple[Ids, Offsets]:
    if base == "poly64" and ascii and k <= _CHARACTERS_AT_ONCE:
        return _char_poly64(data, None, offsets, k)
    bounds = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))
    first_unit = np.searchsorted(bounds, offsets)
    if base == "poly64" and k <= _CHARACTERS_AT_ONCE:
        return _char_poly64(data, bounds, first_unit, k)
    return _ids_of_units(data, bounds[:-1], bounds[1:], first_unit, k, base)


def _char_poly64(data: Bytes, bounds: Positions | None, first_unit: Positions, k: int) -> tuple[Ids, Offsets]:
    """poly64 of k characters, character c being data[bounds[c]:bounds[c + 1]]; without `bounds` each is a byte."""
    units = np.diff(first_unit)
    out = np.zeros(len(first_unit), np.int64)
    np.cumsum(np.maximum(units - k + 1, units > 0), out=out[1:])
    within = np.ones(max(int(first_unit[-1]) - k + 1, 0), np.bool_)
    for back in range(1, k):
        # A window that begins here would end in another document, whichever document this is.
        borders = first_unit[1:-1] - back
        within[borders[(borders >= 0) & (borders < len(within))]] = False
    hashes = _all_windows(data, bounds, len(within), k)[within]
    short = np.flatnonzero((units > 0) & (units < k))
    if not len(short):
        return hashes, out
    starts, ends = first_unit[short], first_unit[short + 1]
    if bounds is not None:
        starts, ends = bounds[starts], bounds[ends]
    return np.insert(hashes, out[short] - np.arange(len(short)), _poly64(data, starts, ends)), out


def _all_windows(data: Bytes, bounds: Positions | None, windows: int, k: int) -> Ids:
    """poly64 of every k characters in a row, over the borders of documents too."""
    hashes = np.empty(windows, np.uint64)
    for begin in range(0, windows, _CHARACTERS_AT_ONCE):
        count = min(_CHARACTERS_AT_ONCE, windows - begin)
        if bounds is None:
            text = data[begin : begin + count + k - 1]
            sums, factors = _prefix_sums(text), poly64.inverse_powers()[:count]
        else:
            places = bounds[begin : begin + count + k]
            text = data[places[0] : places[-1]]
            places = places - places[0]
            sums, factors = _prefix_sums(text)[places], poly64.inverse_powers()[places[:count]]
        part = hashes[begin : begin + count]
        np.subtract(sums[k:], sums[:-k], out=part)
        part *= factors
        part[:] = _fmix64(part)
    return hashes


def _prefix_sums(text: Bytes) -> Ids:
    sums = np.zeros(len(text) + 1, np.uint64)
    np.multiply(text, poly64.powers()[: len(text)], out=sums[1:])
    return np.cumsum(sums, out=sums)


def unit_ids(data: Bytes, offsets: Offsets, k: int, base: str, separator: int) -> tuple[Ids, Offsets]:
    if not len(data):
        return np.zeros(0, np.uint64), np.zeros(len(offsets), np.int64)
    word = data != separator
    begins = word.copy()
    begins[1:] &= ~word[:-1] | _document_starts(offsets, len(data))[1:]
    finishes = word.copy()
    finishes[:-1] &= ~word[1:] | _document_starts(offsets, len(data))[1:]
    starts = np.flatnonzero(begins)
    return _ids_of_units(
        data, starts, np.flatnonzero(finishes) + 1, np.searchsorted(starts, offsets), k, base
    )


def _ids_of_units(
    data: Bytes, starts: Positions, ends: Positions, first_unit: Positions, k: int, base: str
) -> tuple[Ids, Offsets]:
    """Ids of k-unit windows, given each unit's byte range and each document's first unit (n + 1)."""
    units = np.diff(first_unit)
    windows = np.maximum(units - k + 1, units > 0)
    out = np.zeros(len(windows) + 1, np.int64)
    np.cumsum(windows, out=out[1:])
    first = np.arange(out[-1]) + np.repeat(first_unit[:-1] - out[:-1], windows)
    last = np.minimum(first + k, np.repeat(first_unit[1:], windows)) - 1
    return _HASHES[base](data, starts[first], ends[last]), out


def number_sums(data: Bytes, offsets: Offsets) -> Ids:
    digit = np.zeros(len(data) + 2, bool)
    digit[1:-1] = (data >= 48) & (data <= 57)
    sums = np.zeros(len(offsets) - 1, np.uint64)
    if not digit.any():
        return sums
    breaks = np.zeros(len(data) + 1, bool)
    breaks[offsets] = True
    starts = np.flatnonzero(digit[1:-1] & (~digit[:-2] | breaks[:-1]))
    ends = np.flatnonzero(digit[1:-1] & (~digit[2:] | breaks[1:])) + 1
    document = np.searchsorted(offsets, starts, side="right") - 1
    np.add.at(sums, document, _poly64(data, starts, ends))
    return sums


def _fmix64(values: Ids) -> Ids:
    values = values ^ (values >> np.uint64(33))
    values *= np.uint64(poly64.MIX_FIRST)
    values ^= values >> np.uint64(33)
    values *= np.uint64(poly64.MIX_SECOND)
    values ^= values >> np.uint64(33)
    return values


def _poly64(data: Bytes, starts: Positions, ends: Positions) -> Ids:
    """poly64 of windows in order of their starts and ends, a segment of the text at a time."""
    sums = np.empty(len(starts), np.uint64)
    done = 0
    while done < len(starts):
        origin = starts[done]
        upto = int(np.searchsorted(ends, origin + poly64.SEGMENT, side="right"))
        if upto <= done:
            sums[done] = _long_polynomial(data[origin : ends[done]])
            done += 1
            continue
        text = data[origin : ends[upto - 1]]
        prefix = _prefix_sums(text)
        first = starts[done:upto] - origin
        sums[done:upto] = (prefix[ends[done:upto] - origin] - prefix[first]) * _inverse_power(first)
        done = upto
    return _fmix64(sums)


def _inverse_power(exponents: Positions) -> Ids:
    # A window starts at most at the segment's length minus one, so the table always reaches.
    return poly64.inverse_powers()[exponents]


def _long_polynomial(text: Bytes) -> int:
    total, factor = 0, 1
    step = pow(poly64.BASE, poly64.SEGMENT, 1 << 64)
    for at in range(0, len(text), poly64.SEGMENT):
        part = text[at : at + poly64.SEGMENT]
        total += int((part * poly64.powers()[: len(part)]).sum(dtype=np.uint64)) * factor
        factor = factor * step & 0xFFFFFFFFFFFFFFFF
    return total & 0xFFFFFFFFFFFFFFFF


@cache
def crc_table() -> NDArray[np.uint32]:
    """The 256 entries of the IEEE CRC-32 (reflected polynomial 0xEDB88320), uint32."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return table


def _crc32(data: Bytes, starts: Positions, ends: Positions) -> Ids:
    def step(state: NDArray[np.uint32], byte: Bytes) -> NDArray[np.uint32]:
        entries: NDArray[np.uint32] = crc_table()[(state ^ byte) & 0xFF]
        return entries ^ (state >> np.uint32(8))

    hashes = _stepwise(data, starts, ends, 0xFFFFFFFF, step)
    hashes ^= np.uint32(0xFFFFFFFF)
    for window in np.flatnonzero(ends - starts > _LONG_WINDOW):
        hashes[window] = zlib.crc32(data[starts[window] : ends[window]].tobytes())
    return hashes.astype(np.uint64)


def _djb2a(data: Bytes, starts: Positions, ends: Positions) -> Ids:
    def step(state: NDArray[np.uint32], byte: Bytes) -> NDArray[np.uint32]:
        return (state * np.uint32(33)) ^ byte

    hashes = _stepwise(data, starts, ends, _DJB2A_START, step)
    for window in np.flatnonzero(ends - starts > _LONG_WINDOW):
        state = _DJB2A_START
        for byte in data[starts[window] : ends[window]].tobytes():
            state = (state * 33 ^ byte) & 0xFFFFFFFF
        hashes[window] = state
    return hashes.astype(np.uint64)


def _stepwise(
    data: Bytes,
    starts: Positions,
    ends: Positions,
    initial: int,
    step: Callable[[NDArray[np.uint32], Bytes], NDArray[np.uint32]],
) -> NDArray[np.uint32]:
    """Feed all windows a byte at a time, the longest first so that those still open are a prefix."""
    lengths = ends - starts
    lengths = np.where(lengths > _LONG_WINDOW, 0, lengths)
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


_HASHES: dict[str, Callable[[Bytes, Positions, Positions], Ids]] = {
    "poly64": _poly64,
    "crc32": _crc32,
    "djb2a": _djb2a,
}
