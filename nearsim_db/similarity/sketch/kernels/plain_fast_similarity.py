"""The kernel of fast_similarity in NumPy; see `SketchKernels` and `HashRounds`."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.mixing import fmix64
from nearsim_db.similarity.sketch.kernels import (
    ROUND_MIX,
    Counts,
    HashRounds,
    Ids,
    Offsets,
)

# Sizes that keep the temporaries of a step within about a megabyte, so in the second-level cache.
_IDS_AT_ONCE = 1 << 15
_POSITIONS_AT_ONCE = 1 << 17
_EMPTY = np.uint64(2**64 - 1)
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def fast_similarity(ids: Ids, offsets: Offsets, hash_rounds: HashRounds, mix_ids: bool) -> NDArray[np.uint32]:
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


def _hash_all(points: Ids, lengths: Counts, hash_rounds: HashRounds) -> NDArray[np.uint64]:
    """Return the winners (documents, k) as round << 32 | value; zeros for documents without ids."""
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
        kept = np.repeat(unfinished, lengths)
        points, first_cell = points[kept], first_cell[kept]
        lengths = np.where(unfinished, lengths, 0)
    _force(points, lengths, hash_rounds, cells)
    return cells


def _hash(
    points: Ids, first_cell: Counts, hash_rounds: HashRounds, round_no: int, cells: NDArray[np.uint64], k: int
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


def _force(points: Ids, lengths: Counts, hash_rounds: HashRounds, cells: NDArray[np.uint64]) -> None:
    """Fill the positions that no throw has reached, in place."""
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
