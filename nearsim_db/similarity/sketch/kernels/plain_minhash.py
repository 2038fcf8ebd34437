"""The kernels of minhash and fast_similarity in NumPy. `HashRounds` describes the hashes of fast_similarity."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints
from nearsim_db.similarity.mixing import fmix64
from nearsim_db.similarity.sketch.kernels import PRIME, ROUND_MIX, HashRounds

# This limit and _POSITIONS_AT_ONCE keep the temporary arrays of a step within about a megabyte, so that they stay in
# the second-level cache.
_IDS_AT_ONCE = 1 << 15
_LOW = np.uint64(2**32 - 1)
_PRIME = np.uint64(PRIME)


def minimum_prime32(
    ids: Hashes, offsets: Ints, multipliers: NDArray[np.uint32], addends: Hashes, shift: int
) -> Hashes:
    """Return the least (a x + b) mod PRIME for each document and hash function.

    x is the low 32 bits of id >> shift.
    """
    factors = multipliers.astype(np.uint64)

    def hashes(points: Hashes, function: int) -> Hashes:
        # A value is at most (2^32 - 1)^2 + 2^32 + 14, which fits into 64 bits. In NumPy, division by a scalar is
        # faster than folding.
        values: Hashes = points * factors[function]
        values += addends[function]
        quotients = values // _PRIME
        quotients *= _PRIME
        values -= quotients
        return values

    return _minima(ids, offsets, shift, len(addends), hashes, np.dtype(np.uint64))


def minimum_java32(
    ids: Hashes, offsets: Ints, multipliers: NDArray[np.int32], addends: NDArray[np.int32], shift: int
) -> NDArray[np.int32]:
    """Return the least a x + b, wrapped to int32, for each document and hash function.

    x is the low 32 bits of id >> shift.
    """

    def hashes(points: Hashes, function: int) -> NDArray[np.int32]:
        values = points.astype(np.int32)
        values *= multipliers[function]
        values += addends[function]
        return values

    return _minima(ids, offsets, shift, len(addends), hashes, np.dtype(np.int32))


def _minima(
    ids: Hashes,
    offsets: Ints,
    shift: int,
    k: int,
    hashes: Callable[[Hashes, int], NDArray[Any]],
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


def _stretches(starts: Ints, begin: int, end: int) -> Iterator[tuple[int, int, slice, Ints]]:
    """Cut the ids from `begin` to `end` into stretches.

    Yields the begin and the end of each stretch, the documents that have ids in it, and the place in the stretch where
    each of these documents begins.
    """
    for low in range(begin, end, _IDS_AT_ONCE):
        high = min(low + _IDS_AT_ONCE, end)
        first = int(np.searchsorted(starts, low, side="right")) - 1
        last = int(np.searchsorted(starts, high, side="left"))
        yield low, high, slice(first, last), np.maximum(starts[first:last], low) - low


_POSITIONS_AT_ONCE = 1 << 17
_EMPTY = np.uint64(2**64 - 1)
_HALF = np.uint64(32)


def fast_similarity(ids: Hashes, offsets: Ints, hash_rounds: HashRounds, mix_ids: bool) -> NDArray[np.uint32]:
    """Return the sketches (n, k). A position is the exclusive or of the value and ROUND_MIX times the round."""
    documents, k = len(offsets) - 1, len(hash_rounds.forced_addends)
    sketches = np.zeros((documents, k), np.uint32)
    begin = 0
    while begin < documents:
        within = int(np.searchsorted(offsets, offsets[begin] + _IDS_AT_ONCE, side="right")) - 1
        end = max(begin + 1, min(within, begin + _POSITIONS_AT_ONCE // k, documents))
        points = ids[offsets[begin] : offsets[end]]
        lengths = np.diff(offsets[begin : end + 1])
        cells = _hash_all(fmix64(points) if mix_ids else points, lengths, hash_rounds)
        rounds = (cells >> _HALF).astype(np.uint32)
        sketches[begin:end] = cells.astype(np.uint32) ^ (rounds * np.uint32(ROUND_MIX))
        begin = end
    return sketches


def _hash_all(points: Hashes, lengths: Ints, hash_rounds: HashRounds) -> Hashes:
    """Return the winner of each position as round << 32 | value: (documents, k), zeros for documents without ids."""
    k = len(hash_rounds.forced_addends)
    cells = np.full((len(lengths), k), _EMPTY)
    cells[lengths == 0] = 0
    first_cell = np.repeat(np.arange(len(lengths)) * k, lengths)

    for round_no in range(len(hash_rounds.masks)):
        for at in range(0, len(points), _IDS_AT_ONCE):
            part = slice(at, at + _IDS_AT_ONCE)
            _hash(points[part], first_cell[part], hash_rounds, round_no, cells.reshape(-1), k)
        unfinished = (cells == _EMPTY).any(axis=1)
        if not unfinished.any():
            return cells

        # Only the ids of documents with empty positions are thrown again.
        kept = np.repeat(unfinished, lengths)
        points, first_cell = points[kept], first_cell[kept]
        lengths = np.where(unfinished, lengths, 0)
    _force(points, lengths, hash_rounds, cells)
    return cells


def _hash(
    points: Hashes, first_cell: Ints, hash_rounds: HashRounds, round_no: int, cells: Hashes, k: int
) -> None:
    hashes = points ^ hash_rounds.masks[round_no]
    hashes *= hash_rounds.multipliers[round_no]
    positions = hashes >> _HALF
    hashes ^= positions
    hashes &= _LOW
    hashes |= np.uint64(round_no << 32)
    positions *= np.uint64(k)
    positions >>= _HALF
    np.minimum.at(cells, positions.view(np.int64) + first_cell, hashes)


def _force(points: Hashes, lengths: Ints, hash_rounds: HashRounds, cells: Hashes) -> None:
    """Fill the positions that are empty after all rounds, in place."""
    documents = np.flatnonzero(lengths)
    starts = np.cumsum(lengths[documents]) - lengths[documents]
    empty = cells[documents] == _EMPTY
    halves = points.astype(np.uint32)
    forced = np.uint64(len(hash_rounds.masks) << 32)
    for position in np.flatnonzero(empty.any(axis=0)):
        values = halves * hash_rounds.forced_multipliers[position]
        values += hash_rounds.forced_addends[position]
        least = np.minimum.reduceat(values, starts)
        here = empty[:, position]
        cells[documents[here], position] = least[here] | forced
