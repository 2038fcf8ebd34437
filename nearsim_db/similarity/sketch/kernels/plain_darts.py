"""The kernel of dart_minhash in NumPy. `Darts` describes the random field."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask
from nearsim_db.similarity.mixing import GOLDEN, fmix64
from nearsim_db.similarity.sketch.kernels import Darts

_IDS_AT_ONCE = 1 << 15
_POSITIONS_AT_ONCE = 1 << 14

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_UNIT = 2.0**-32


class _Points(NamedTuple):
    """The ids of several documents."""

    points: Hashes  # hashes of the ids
    weights: Floats
    rows: Ints  # the document of each id
    limits: Floats  # the rank below which darts of its document are searched

    def take(self, chosen: Mask | Ints) -> "_Points":
        return _Points(self.points[chosen], self.weights[chosen], self.rows[chosen], self.limits[chosen])


class _Winners(NamedTuple):
    """The dart of the lowest rank in each position of n documents."""

    ranks: Floats  # (n, k), infinite if the position has no dart
    values: NDArray[np.uint32]  # (n, k)


def dart_minhash(
    ids: Hashes, weights: Floats, offsets: Ints, limits: Floats, darts: Darts, k: int
) -> NDArray[np.uint32]:
    """Return the values of the darts that win the positions, (n, k).

    The dart of the lowest rank wins, and among darts of equal rank the one with the lowest value.

    `limits`, above 0, are the ranks below which to search first; if a position has no dart there, the limit
    is doubled.
    """
    documents = len(offsets) - 1
    sketches = np.zeros((documents, k), np.uint32)
    begin = 0
    while begin < documents:
        within = int(np.searchsorted(offsets, offsets[begin] + _IDS_AT_ONCE, side="right")) - 1
        end = max(begin + 1, min(within, begin + _POSITIONS_AT_ONCE // k, documents))
        part = slice(offsets[begin], offsets[end])
        lengths = np.diff(offsets[begin : end + 1])
        sketches[begin:end] = _throw_all(
            fmix64(ids[part] ^ darts.mask), weights[part], lengths, limits[begin:end], darts.counts, k
        )
        begin = end
    return sketches


def _throw_all(
    points: Hashes, weights: Floats, lengths: Ints, limits: Floats, counts: Hashes, k: int
) -> NDArray[np.uint32]:
    """Return the values of the winning darts, (n, k).

    For documents with an empty position, darts are thrown again below twice the limit.
    """
    values = np.zeros((len(lengths), k), np.uint32)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    unfinished = np.unique(rows)
    while len(unfinished):
        kept = np.isin(rows, unfinished)
        rows_of_kept = np.searchsorted(unfinished, rows[kept])
        thrown = _Points(points[kept], weights[kept], rows_of_kept, limits[rows[kept]])
        shape = len(unfinished), k
        winners = _Winners(np.full(shape, np.inf), np.full(shape, _LOW, np.uint32))
        for a, b, block in _blocks(thrown):
            _throw(block, a, b, counts, winners)

        finished = np.isfinite(winners.ranks).all(axis=1)
        values[unfinished[finished]] = winners.values[finished]
        unfinished, limits = unfinished[~finished], limits * 2
    return values


def _blocks(points: _Points) -> Iterator[tuple[int, int, _Points]]:
    """Yield the blocks (a, b), each with the ids whose weights and limits are above the begin of the block."""
    a = 0
    while len(points.points):
        below_limit, b = points, 0
        while len(below_limit.points):
            yield a, b, below_limit
            b += 1
            below_limit = below_limit.take(2.0**b - 1 < below_limit.limits)
        a += 1
        points = points.take(2.0**a - 1 < points.weights)


def _throw(block: _Points, a: int, b: int, counts: Hashes, winners: _Winners) -> None:
    """Throw the darts of block (a, b) for these ids, and update the winners in place."""
    breadth, height = 2.0**a, 2.0**b
    slices = np.ceil((block.weights - (breadth - 1)) / (breadth / height)).clip(max=height).astype(np.int64)
    layers = np.ceil((block.limits - (height - 1)) / (height / breadth)).clip(max=breadth).astype(np.int64)

    # The hash of a cell gives the number of its darts.
    cells = _ranges(slices * layers)
    slice_, layer = np.divmod(cells.places, layers[cells.owners])
    keys = (slice_ << 24 | layer).view(np.uint64) | np.uint64(a << 56 | b << 48)
    hashes = fmix64(block.points[cells.owners] ^ keys)
    darts = _ranges(np.searchsorted(counts, hashes, side="right"))
    slice_, layer, owners = slice_[darts.owners], layer[darts.owners], cells.owners[darts.owners]

    # The words of a dart give its place in the cell, its position and its value.
    words = hashes[darts.owners] + darts.places.view(np.uint64) * np.uint64(2 * GOLDEN % 2**64)
    within = fmix64(words + np.uint64(GOLDEN))
    at = (breadth - 1) + (slice_ + (within >> _HALF) * _UNIT) * (breadth / height)
    ranks = (height - 1) + (layer + (within & _LOW) * _UNIT) * (height / breadth)
    inside = (at < block.weights[owners]) & (ranks < block.limits[owners])
    chosen = fmix64(words[inside] + np.uint64(2 * GOLDEN % 2**64))

    k = winners.ranks.shape[1]
    positions = ((chosen >> _HALF) * np.uint64(k) >> _HALF).view(np.int64)
    _keep_lowest(block.rows[owners[inside]] * k + positions, ranks[inside], chosen.astype(np.uint32), winners)


class _Ranges(NamedTuple):
    """For several owners, the numbers from 0 to the owner's size - 1, concatenated."""

    places: Ints  # the numbers
    owners: Ints  # the owner of each number


def _ranges(sizes: Ints) -> _Ranges:
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return _Ranges(np.arange(len(owners)) - (np.cumsum(sizes) - sizes)[owners], owners)


def _keep_lowest(places: Ints, ranks: Floats, values: NDArray[np.uint32], winners: _Winners) -> None:
    """Update the winners in place: keep the lowest rank of each place, and for equal ranks the lowest value."""
    lowest_ranks, lowest_values = winners.ranks.reshape(-1), winners.values.reshape(-1)
    before = lowest_ranks[places]
    np.minimum.at(lowest_ranks, places, ranks)
    now = lowest_ranks[places]
    lowest_values[places[now < before]] = _LOW
    winning = ranks == now
    np.minimum.at(lowest_values, places[winning], values[winning])
