"""dart_minhash in NumPy; see `Darts`."""

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


class _Rows(NamedTuple):
    """Ids of some documents: their hashes, weights, the rows of their documents, and these documents' limits."""

    points: Hashes
    weights: Floats
    rows: Ints
    limits: Floats

    def take(self, chosen: Mask | Ints) -> "_Rows":
        return _Rows(self.points[chosen], self.weights[chosen], self.rows[chosen], self.limits[chosen])


class _Best(NamedTuple):
    """The lowest ranks (n, k), infinite if no dart was thrown, and the values of their darts."""

    ranks: Floats
    values: NDArray[np.uint32]


def dart_minhash(
    ids: Hashes, weights: Floats, offsets: Ints, limits: Floats, darts: Darts, k: int
) -> NDArray[np.uint32]:
    """Return the values (n, k) of the darts of lowest rank; of equal ranks the lowest value.

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
    """Return the winning values (n, k); documents with an empty position are thrown again below twice the limit."""
    values = np.zeros((len(lengths), k), np.uint32)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    unfinished = np.unique(rows)
    while len(unfinished):
        kept = np.isin(rows, unfinished)
        own = _Rows(points[kept], weights[kept], np.searchsorted(unfinished, rows[kept]), limits[rows[kept]])
        shape = len(unfinished), k
        best = _Best(np.full(shape, np.inf), np.full(shape, _LOW, np.uint32))
        for a, b, block in _blocks(own):
            _throw(block, a, b, counts, best)
        finished = np.isfinite(best.ranks).all(axis=1)
        values[unfinished[finished]] = best.values[finished]
        unfinished, limits = unfinished[~finished], limits * 2
    return values


def _blocks(own: _Rows) -> Iterator[tuple[int, int, _Rows]]:
    """Yield the blocks that reach below weights and limits, with the ids for which they do."""
    a = 0
    while len(own.points):
        rest, b = own, 0
        while len(rest.points):
            yield a, b, rest
            b += 1
            rest = rest.take(2.0**b - 1 < rest.limits)
        a += 1
        own = own.take(2.0**a - 1 < own.weights)


def _throw(block: _Rows, a: int, b: int, counts: Hashes, best: _Best) -> None:
    """Throw the darts of block (a, b) for some ids."""
    breadth, height = 2.0**a, 2.0**b
    slices = np.ceil((block.weights - (breadth - 1)) / (breadth / height)).clip(max=height).astype(np.int64)
    layers = np.ceil((block.limits - (height - 1)) / (height / breadth)).clip(max=breadth).astype(np.int64)
    cells = _ranges(slices * layers)
    one, layer = np.divmod(cells.places, layers[cells.owners])
    keys = (one << 24 | layer).view(np.uint64) | np.uint64(a << 56 | b << 48)
    hashes = fmix64(block.points[cells.owners] ^ keys)
    darts = _ranges(np.searchsorted(counts, hashes, side="right"))
    one, layer, owners = one[darts.owners], layer[darts.owners], cells.owners[darts.owners]
    words = hashes[darts.owners] + darts.places.view(np.uint64) * np.uint64(2 * GOLDEN % 2**64)
    within = fmix64(words + np.uint64(GOLDEN))
    at = (breadth - 1) + (one + (within >> _HALF) * _UNIT) * (breadth / height)
    ranks = (height - 1) + (layer + (within & _LOW) * _UNIT) * (height / breadth)
    inside = (at < block.weights[owners]) & (ranks < block.limits[owners])
    chosen = fmix64(words[inside] + np.uint64(2 * GOLDEN % 2**64))
    k = best.ranks.shape[1]
    positions = ((chosen >> _HALF) * np.uint64(k) >> _HALF).view(np.int64)
    _keep_least(block.rows[owners[inside]] * k + positions, ranks[inside], chosen.astype(np.uint32), best)


class _Ranges(NamedTuple):
    """The numbers 0, 1, 2 ... of each of several owners, concatenated, with the owner of each."""

    places: Ints
    owners: Ints


def _ranges(sizes: Ints) -> _Ranges:
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return _Ranges(np.arange(len(owners)) - (np.cumsum(sizes) - sizes)[owners], owners)


def _keep_least(places: Ints, ranks: Floats, values: NDArray[np.uint32], best: _Best) -> None:
    """Keep the lowest rank of each place; of equal ranks the lowest value."""
    least_ranks, least_values = best.ranks.reshape(-1), best.values.reshape(-1)
    before = least_ranks[places]
    np.minimum.at(least_ranks, places, ranks)
    now = least_ranks[places]
    least_values[places[now < before]] = _LOW
    winning = ranks == now
    np.minimum.at(least_values, places[winning], values[winning])
