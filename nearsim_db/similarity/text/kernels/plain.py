"""The text kernels in NumPy; see `TextKernels`."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints, Mask, are_fresh, offsets_of, places_of
from nearsim_db.similarity.mixing import fmix64
from nearsim_db.similarity.text.kernels import Bytes
from nearsim_db.similarity.text.kernels.plain_hashes import (
    HASHES,
    SEGMENT_BYTES,
    inverse_powers,
    poly64_of,
    prefix_sums,
)
from nearsim_db.similarity.text.separators import SEPARATOR

# A character has up to four bytes, and a text of twice this number of characters must fit into a segment.
_CHARACTERS_AT_ONCE = SEGMENT_BYTES // 8


def char_ids(data: Bytes, offsets: Ints, k: int, base: str, single_bytes: bool) -> tuple[Hashes, Ints]:
    if base == "poly64" and single_bytes and k <= _CHARACTERS_AT_ONCE:
        return _char_poly64(data, None, offsets, k)
    begins = np.arange(len(data)) if single_bytes else np.flatnonzero((data & 0xC0) != 0x80)
    bounds = np.append(begins, len(data))
    first_unit = np.searchsorted(bounds, offsets)
    if base == "poly64" and k <= _CHARACTERS_AT_ONCE:
        return _char_poly64(data, bounds, first_unit, k)
    return _ids_of_units(data, bounds[:-1], bounds[1:], first_unit, k, base)


def _char_poly64(data: Bytes, bounds: Ints | None, first_unit: Ints, k: int) -> tuple[Hashes, Ints]:
    """Hash the runs of k characters. Character c is data[bounds[c]:bounds[c + 1]], or byte c if `bounds` is None."""
    units = np.diff(first_unit)
    out = offsets_of(np.maximum(units - k + 1, units > 0))
    within = np.ones(max(int(first_unit[-1]) - k + 1, 0), np.bool_)
    for back in range(1, k):
        # A window that begins at one of these borders ends in another document.
        borders = first_unit[1:-1] - back
        within[borders[(borders >= 0) & (borders < len(within))]] = False

    hashes = _all_windows(data, bounds, len(within), k)[within]
    short = np.flatnonzero((units > 0) & (units < k))
    if not len(short):
        return hashes, out

    starts, ends = first_unit[short], first_unit[short + 1]
    if bounds is not None:
        starts, ends = bounds[starts], bounds[ends]
    # np.insert counts places without the hashes that it inserts before them.
    return np.insert(hashes, out[short] - np.arange(len(short)), poly64_of(data, starts, ends)), out


def _all_windows(data: Bytes, bounds: Ints | None, windows: int, k: int) -> Hashes:
    """Hash every run of k characters, including runs across the border between two documents."""
    hashes = np.empty(windows, np.uint64)
    for begin in range(0, windows, _CHARACTERS_AT_ONCE):
        count = min(_CHARACTERS_AT_ONCE, windows - begin)
        if bounds is None:
            text = data[begin : begin + count + k - 1]
            sums, factors = prefix_sums(text), inverse_powers()[:count]
        else:
            places = bounds[begin : begin + count + k]
            text = data[places[0] : places[-1]]
            places = places - places[0]
            sums, factors = prefix_sums(text)[places], inverse_powers()[places[:count]]

        part = hashes[begin : begin + count]
        np.subtract(sums[k:], sums[:-k], out=part)
        part *= factors
        part[:] = fmix64(part)
    return hashes


def unit_ids(data: Bytes, offsets: Ints, k: int, base: str, separator: int) -> tuple[Hashes, Ints]:
    if not len(data):
        return np.zeros(0, np.uint64), np.zeros(len(offsets), np.int64)
    word = data != separator
    begins = word.copy()
    begins[1:] &= ~word[:-1] | document_starts(offsets, len(data))[1:]
    finishes = word.copy()
    finishes[:-1] &= ~word[1:] | document_starts(offsets, len(data))[1:]
    starts = np.flatnonzero(begins)
    return _ids_of_units(
        data, starts, np.flatnonzero(finishes) + 1, np.searchsorted(starts, offsets), k, base
    )


def _ids_of_units(
    data: Bytes, starts: Ints, ends: Ints, first_unit: Ints, k: int, base: str
) -> tuple[Hashes, Ints]:
    """Hash runs of k units.

    Unit u is data[starts[u]:ends[u]], and document i has the units from first_unit[i] to first_unit[i + 1].
    """
    units = np.diff(first_unit)
    windows = np.maximum(units - k + 1, units > 0)
    first = places_of(first_unit[:-1], windows)
    last = np.minimum(first + k, np.repeat(first_unit[1:], windows)) - 1
    return HASHES[base](data, starts[first], ends[last]), offsets_of(windows)


def number_sums(data: Bytes, offsets: Ints) -> Hashes:
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
    np.add.at(sums, document, poly64_of(data, starts, ends))
    return sums


def distinct(ids: Hashes, offsets: Ints) -> tuple[Hashes, Ints, Ints]:
    ids = ids.copy()
    bounds = offsets.tolist()
    for begin, end in pairwise(bounds):
        ids[begin:end].sort()
    first = are_fresh(ids)
    first[offsets[:-1][np.diff(offsets) > 0]] = True
    counts = np.diff(np.flatnonzero(np.append(first, True)))
    return ids[first], offsets_of(first)[offsets], counts


_SPACE = 32


def squeeze(data: Bytes, offsets: Ints, table: Bytes) -> tuple[Bytes, Ints]:
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


def _squeeze_ascii(data: Bytes, offsets: Ints, table: Bytes) -> tuple[Bytes, Ints]:
    separators = table[:256] == SEPARATOR
    text = data.tobytes()
    separates = np.frombuffer(text.translate(separators.tobytes()), np.bool_)
    written = text.translate(np.where(separators, _SPACE, table[:256]).astype(np.uint8).tobytes())
    keep, kept_offsets = _collapse(separates, offsets)
    return np.frombuffer(written, np.uint8)[keep], kept_offsets


def _collapse(separates: Mask, offsets: Ints) -> tuple[Mask, Ints]:
    """Return which characters are kept, and the offsets of the documents in them.

    A run of separators is reduced to its last one if words of the same document surround it, and dropped otherwise.
    """
    follows = ~separates
    follows &= ~document_starts(offsets, len(separates))
    gaps = separates.copy()
    gaps[:-1] &= follows[1:]
    gaps[-1] = False

    # A run at the beginning of a document has no word before it.
    begins = offsets[:-1][np.diff(offsets) > 0]
    led = begins[separates[begins]]
    if len(led):
        places = np.flatnonzero(gaps)
        first = np.searchsorted(places, led)
        ends = offsets[np.searchsorted(offsets, led, side="right")]
        is_inside = first < len(places)
        is_inside[is_inside] = places[first[is_inside]] < ends[is_inside]
        gaps[places[first[is_inside]]] = False

    keep = gaps | ~separates
    return keep, offsets - np.searchsorted(np.flatnonzero(~keep), offsets)


def document_starts(offsets: Ints, total: int) -> Mask:
    starts = np.zeros(total + 1, bool)
    starts[offsets[:-1]] = True
    return starts[:total]


def _widths(points: NDArray[np.unsignedinteger]) -> Ints:
    return 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
