"""The sketch kernels in NumPy; see `SketchKernels` for what each one does."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.sketch.kernels import (
    PRIME,
    ROUND_MIX,
    Counts,
    Ids,
    KnownPairs,
    Merged,
    Offsets,
    Throws,
)
from nearsim_db.similarity.sketch.kernels.plain_darts import dart_minhash as dart_minhash
from nearsim_db.similarity.sketch.kernels.plain_directions import projections as projections
from nearsim_db.similarity.sketch.mixing import FMIX64_FIRST, fmix64

# Sizes that keep the temporaries of a step within about a megabyte, so in the second-level cache.
_IDS_AT_ONCE = 1 << 15
_POSITIONS_AT_ONCE = 1 << 17
_ROWS_AT_ONCE = 256

_EMPTY = np.uint64(2**64 - 1)
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_PRIME = np.uint64(PRIME)


def fast_similarity(ids: Ids, offsets: Offsets, throws: Throws, mix_ids: bool) -> NDArray[np.uint32]:
    documents, k = len(offsets) - 1, len(throws.forced_addends)
    sketches = np.zeros((documents, k), np.uint32)
    begin = 0
    while begin < documents:
        within = int(np.searchsorted(offsets, offsets[begin] + _IDS_AT_ONCE, side="right")) - 1
        end = max(begin + 1, min(within, begin + _POSITIONS_AT_ONCE // k, documents))
        points = ids[offsets[begin] : offsets[end]]
        lengths = np.diff(offsets[begin : end + 1])
        cells = _throw_all(fmix64(points) if mix_ids else points, lengths, throws)
        rounds = (cells >> _HALF).astype(np.uint32)
        sketches[begin:end] = cells.astype(np.uint32) ^ (rounds * np.uint32(ROUND_MIX))
        begin = end
    return sketches


def _throw_all(points: Ids, lengths: Counts, throws: Throws) -> NDArray[np.uint64]:
    """The winners (documents, k) as round << 32 | value; zeros for documents without ids."""
    k = len(throws.forced_addends)
    cells = np.full((len(lengths), k), _EMPTY)
    cells[lengths == 0] = 0
    first_cell = np.repeat(np.arange(len(lengths)) * k, lengths)
    for round_no in range(len(throws.masks)):
        for at in range(0, len(points), _IDS_AT_ONCE):
            part = slice(at, at + _IDS_AT_ONCE)
            _throw(points[part], first_cell[part], throws, round_no, cells.reshape(-1), k)
        unfinished = (cells == _EMPTY).any(axis=1)
        if not unfinished.any():
            return cells
        kept = np.repeat(unfinished, lengths)
        points, first_cell = points[kept], first_cell[kept]
        lengths = np.where(unfinished, lengths, 0)
    _force(points, lengths, throws, cells)
    return cells


def _throw(
    points: Ids, first_cell: Counts, throws: Throws, round_no: int, cells: NDArray[np.uint64], k: int
) -> None:
    hashes = points ^ throws.masks[round_no]
    hashes *= throws.multipliers[round_no]
    positions = hashes >> _HALF
    hashes ^= positions
    hashes &= _LOW
    hashes |= np.uint64(round_no << 32)
    positions *= np.uint64(k)
    positions >>= _HALF
    np.minimum.at(cells, positions.view(np.int64) + first_cell, hashes)


def _force(points: Ids, lengths: Counts, throws: Throws, cells: NDArray[np.uint64]) -> None:
    """Fill the positions that no throw has reached, in place."""
    documents = np.flatnonzero(lengths)
    starts = np.cumsum(lengths[documents]) - lengths[documents]
    empty = cells[documents] == _EMPTY
    halves = points.astype(np.uint32)
    forced = np.uint64(len(throws.masks) << 32)
    for position in np.flatnonzero(empty.any(axis=0)):
        values = halves * throws.forced_multipliers[position]
        values += throws.forced_addends[position]
        least = np.minimum.reduceat(values, starts)
        here = empty[:, position]
        cells[documents[here], position] = least[here] | forced


def minimum_prime32(
    ids: Ids,
    offsets: Offsets,
    multipliers: NDArray[np.uint32],
    addends: NDArray[np.uint64],
    shift: int,
) -> NDArray[np.uint64]:
    factors = multipliers.astype(np.uint64)

    def hashes(points: Ids, function: int) -> NDArray[np.uint64]:
        # At most (2^32 - 1)^2 + 2^32 + 14, which fits. NumPy divides by a scalar faster than it can fold.
        values: NDArray[np.uint64] = points * factors[function]
        values += addends[function]
        quotients = values // _PRIME
        quotients *= _PRIME
        values -= quotients
        return values

    return _minima(ids, offsets, shift, len(addends), hashes, np.dtype(np.uint64))


def minimum_java32(
    ids: Ids,
    offsets: Offsets,
    multipliers: NDArray[np.int32],
    addends: NDArray[np.int32],
    shift: int,
) -> NDArray[np.int32]:
    def hashes(points: Ids, function: int) -> NDArray[np.int32]:
        values = points.astype(np.int32)
        values *= multipliers[function]
        values += addends[function]
        return values

    return _minima(ids, offsets, shift, len(addends), hashes, np.dtype(np.int32))


def _minima(
    ids: Ids,
    offsets: Offsets,
    shift: int,
    k: int,
    hashes: Callable[[Ids, int], NDArray[Any]],
    dtype: np.dtype[Any],
) -> NDArray[Any]:
    filled = np.flatnonzero(offsets[1:] > offsets[:-1])
    minima = np.full((k, len(filled)), np.iinfo(dtype).max, dtype)
    for begin, end, documents, starts in _stretches(offsets[filled], int(offsets[0]), int(offsets[-1])):
        points = (ids[begin:end] >> np.uint64(shift)) & _LOW
        for function in range(k):
            least = minima[function, documents]
            np.minimum(least, np.minimum.reduceat(hashes(points, function), starts), out=least)
    sketches = np.zeros((len(offsets) - 1, k), dtype)
    sketches[filled] = minima.T
    return sketches


def _stretches(starts: Offsets, begin: int, end: int) -> Iterator[tuple[int, int, slice, Offsets]]:
    """Stretches of ids: begin, end, the documents touched, and where in the stretch each begins."""
    for low in range(begin, end, _IDS_AT_ONCE):
        high = min(low + _IDS_AT_ONCE, end)
        first = int(np.searchsorted(starts, low, side="right")) - 1
        last = int(np.searchsorted(starts, high, side="left"))
        yield low, high, slice(first, last), np.maximum(starts[first:last], low) - low


def mixed_bands(positions: NDArray[Any], bands: int, rows: int, start: int) -> NDArray[np.uint64]:
    table = positions[:, : bands * rows].reshape(len(positions), bands, rows)
    hashes = np.full((len(positions), bands), start, np.uint64)
    for row in range(rows):
        hashes ^= table[:, :, row]
        hashes *= np.uint64(FMIX64_FIRST)
        hashes ^= hashes >> _HALF
    return fmix64(hashes)


def intersections(ids: Ids, offsets: Offsets, left_rows: Offsets, right_rows: Offsets) -> Counts:
    counts = np.zeros(len(left_rows), np.int64)
    order = np.argsort(left_rows, kind="stable")
    changes = np.flatnonzero(np.diff(left_rows[order])) + 1
    for group in np.split(order, changes):
        for at in range(0, len(group), _ROWS_AT_ONCE):
            pairs = group[at : at + _ROWS_AT_ONCE]
            left = left_rows[pairs[0]]
            counts[pairs] = _shared_with(
                ids[offsets[left] : offsets[left + 1]], ids, offsets, right_rows[pairs]
            )
    return counts


def _shared_with(left: Ids, ids: Ids, offsets: Offsets, right_rows: Offsets) -> Counts:
    if not len(left):
        return np.zeros(len(right_rows), np.int64)
    right = np.concatenate([ids[offsets[row] : offsets[row + 1]] for row in right_rows])
    places = np.searchsorted(left, right)
    hits = left[np.minimum(places, len(left) - 1)] == right
    ends = np.cumsum(offsets[right_rows + 1] - offsets[right_rows])
    return np.diff(np.concatenate(([0], np.cumsum(hits)))[ends], prepend=0)


def smallest(points: NDArray[Any], offsets: Offsets, k: int) -> NDArray[Any]:
    sketches = np.zeros((len(offsets) - 1, k), points.dtype)
    for document, (begin, end) in enumerate(pairwise(offsets.tolist())):
        if begin < end:
            least = np.unique(points[begin:end])[:k]
            sketches[document, : len(least)] = least
            sketches[document, len(least) :] = least[-1]
    return sketches


def merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    parts = [
        _merged(left[at : at + _ROWS_AT_ONCE], right[at : at + _ROWS_AT_ONCE], limit)
        for at in range(0, max(len(left), 1), _ROWS_AT_ONCE)
    ]
    return Merged(*(np.concatenate(counts) for counts in zip(*parts, strict=True)))


def _merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    width = left.shape[1]
    rows = np.concatenate((left, right), axis=1)
    own = np.concatenate((_first_of_equals(left), _first_of_equals(right)), axis=1)
    small = ~own[:, width - 1] & ~own[:, -1]
    bound = np.where(small, 2 * width, limit)
    order = np.argsort(rows, axis=1, kind="stable")
    rank = np.cumsum(_first_of_equals(np.take_along_axis(rows, order, axis=1)), axis=1)
    counted = np.take_along_axis(own, order, axis=1) & (rank <= bound[:, None])
    of_left = (counted & (order < width)).sum(axis=1, dtype=np.int64)
    of_right = (counted & (order >= width)).sum(axis=1, dtype=np.int64)
    return Merged(of_left, of_right, of_left + of_right - np.minimum(rank[:, -1], bound))


def _first_of_equals(rows: NDArray[Any]) -> NDArray[np.bool_]:
    first = np.ones(rows.shape, bool)
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return first


def first_similar_sorted(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, needs: Counts, decided: KnownPairs
) -> Counts:
    width = sketches.shape[1]
    own = _first_of_equals(sketches)
    sizes = own.sum(axis=1)
    ids, places = np.unique(sketches, return_inverse=True)
    places, mine = places.reshape(sketches.shape), np.zeros(len(ids), bool)

    def alike(row: int, others: Counts) -> NDArray[np.bool_]:
        small = (sizes[row] < width) & (sizes[others] < width)
        wanted = np.where(small, needs[sizes[row] + sizes[others]], need)
        # Merging is slow: few pairs have enough ids in common at all.
        mine[places[row]] = True
        enough: NDArray[np.bool_] = (mine[places[others]] & own[others]).sum(axis=1) >= wanted
        mine[places[row]] = False
        if enough.any():
            left = np.broadcast_to(sketches[row], (int(enough.sum()), width))
            enough[enough] = merged(left, sketches[others[enough]], width).both >= wanted[enough]
        return enough

    return _first_similar(present, decided, alike)


def first_similar_positions(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, decided: KnownPairs
) -> Counts:
    def alike(row: int, others: Counts) -> NDArray[np.bool_]:
        enough: NDArray[np.bool_] = (sketches[others] == sketches[row]).sum(axis=1) >= need
        return enough

    return _first_similar(present, decided, alike)


def _first_similar(
    present: NDArray[np.bool_], decided: KnownPairs, alike: Callable[[int, Counts], NDArray[np.bool_]]
) -> Counts:
    size = len(present)
    known = dict(zip(decided.pairs.tolist(), decided.alike.tolist(), strict=True))
    first = np.full(size, -1, np.int64)
    for row in range(size):
        staying = np.flatnonzero(first[:row] < 0)
        found = alike(row, staying) & present[staying] & present[row]
        for place, other in enumerate(staying.tolist() if known else ()):
            found[place] = known.get(row * size + other, found[place])
        if found.any():
            first[row] = staying[np.argmax(found)]
    return first
