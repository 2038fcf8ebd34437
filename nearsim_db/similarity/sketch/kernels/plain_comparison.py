"""Sketch kernels in NumPy that make sorted sketches, and that compare sketches."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints, Mask
from nearsim_db.similarity.sketch.kernels import BITS_PER_MAP, KnownPairs, Merged

_PAIRS_AT_ONCE = 4_096


def first_similar_sorted(
    sketches: NDArray[Any], present: Mask, need: int, needs: Ints, decided: KnownPairs
) -> Ints:
    """Implement `Family.first_similar` for sketches made by `smallest`.

    Two rows are similar if they share `need` of the k smallest ids of their union. If both have fewer than k ids, a and
    b, they are similar if they share needs[a + b] ids.
    """
    width = sketches.shape[1]
    is_distinct = first_of_equals(sketches)
    sizes = is_distinct.sum(axis=1)
    spare = sizes - _least_shared(sizes, width, need, needs)
    first_ids = _FirstIds(sketches, (np.arange(width) <= spare[:, None]) & present[:, None])
    ids, indexes = _numbered(sketches, first_ids.is_repeated)
    in_row = np.zeros(ids, bool)

    def share_enough(row: int, kept_rows: Ints) -> Mask:
        in_row[indexes[row]] = True
        shared = in_row.take(indexes[kept_rows])
        shared &= is_distinct[kept_rows]
        in_row[indexes[row]] = False

        small = (sizes[row] < width) & (sizes[kept_rows] < width)
        enough: Mask = np.count_nonzero(shared, axis=1) >= np.where(
            small, needs[sizes[row] + sizes[kept_rows]], need
        )
        # For larger sets, only the k smallest ids of the union count.
        if (large := enough & ~small).any():
            place = (shared[large].cumsum(axis=1) < need).sum(axis=1)
            before = np.searchsorted(sketches[row], sketches[kept_rows[large], place])
            enough[large] = before + place + 2 - need <= width
        return enough

    def alike(row: int, kept_rows: Ints) -> Ints:
        places = first_ids.places_in_common(row, kept_rows)
        return places[share_enough(row, kept_rows[places])] if len(places) else places

    return _first_similar(len(sketches), decided, alike)


def _least_shared(sizes: Ints, width: int, need: int, needs: Ints) -> Ints:
    """Return for each row the least number of ids that it shares with a similar row, whatever the other row's size."""
    min_shared = np.full(width + 1, need, np.int64)
    other_sizes = np.arange(1, width)
    for size in np.unique(sizes[sizes < width]).tolist():
        shared = needs[size + other_sizes]
        min_shared[size] = min(need, shared[shared <= np.minimum(size, other_sizes)].min())
    return min_shared[sizes]


def _numbered(sketches: NDArray[Any], rows: Mask) -> tuple[int, Ints]:
    """Number the distinct ids of `rows` from 0. Return how many there are, and the number of each id, (n, k)."""
    numbers = np.zeros(sketches.shape, np.int64)
    ids, inverse = np.unique(sketches[rows], return_inverse=True)
    numbers[rows] = inverse.reshape(-1, sketches.shape[1])
    return len(ids), numbers


class _FirstIds:
    """The first ids of each row. Two similar rows have at least one of their first ids in common.

    If r of the a ids of a row are shared, only a - r are not, so at least one of its first a - r + 1 ids is shared. The
    least shared id of two rows is therefore among the first ids of both (prefix filtering: Chaudhuri, Ganti and Kaushik
    2006).
    """

    def __init__(self, sketches: NDArray[Any], are_first: Mask) -> None:
        rows, ids = np.nonzero(are_first)[0], sketches[are_first]
        order = np.argsort(ids)
        equal = ids[order[1:]] == ids[order[:-1]]
        is_repeated = np.zeros(len(order), bool)
        is_repeated[1:] |= equal
        is_repeated[:-1] |= equal
        repeated = order[is_repeated]

        # Only rows that have a first id in common with another row can be similar to it.
        self.is_repeated = np.zeros(len(sketches), bool)
        self.is_repeated[rows[repeated]] = True
        self._ids: dict[int, list[int]] = {}
        for row, id in zip(rows[repeated].tolist(), ids[repeated].tolist(), strict=True):
            self._ids.setdefault(row, []).append(id)
        self._places: dict[int, list[int]] = {}
        self._indexed = 0

    def places_in_common(self, row: int, kept_rows: Ints) -> Ints:
        """Return the places in `kept_rows` of rows that may have a first id in common with a row, ascending.

        Each call must have the same `kept_rows` as the call before, or append rows to them.
        """
        for place in range(self._indexed, len(kept_rows)):
            for id in self._ids.get(int(kept_rows[place]), ()):
                self._places.setdefault(id, []).append(place)
        self._indexed = len(kept_rows)

        places = [self._places[id] for id in self._ids.get(row, ()) if id in self._places]
        # If the lists are long, skip merging them, and return every row that shares a first id with any row.
        if sum(map(len, places)) > len(kept_rows):
            return np.flatnonzero(self.is_repeated[kept_rows])
        return np.array(sorted(set().union(*places)), np.int64)


def first_similar_positions(sketches: NDArray[Any], present: Mask, need: int, decided: KnownPairs) -> Ints:
    """Implement `Family.first_similar` for sketches that are similar if at least `need` positions are equal."""

    def alike(row: int, kept_rows: Ints) -> Ints:
        enough = (sketches[kept_rows] == sketches[row]).sum(axis=1) >= need
        return np.flatnonzero(enough & present[kept_rows] & present[row])

    return _first_similar(len(sketches), decided, alike)


def _first_similar(size: int, decided: KnownPairs, alike: Callable[[int, Ints], Ints]) -> Ints:
    """Compare each row with the rows kept before it. `alike` returns the places of similar rows among these."""
    decisions = dict(zip(decided.pairs.tolist(), decided.alike.tolist(), strict=True))
    first, kept = np.full(size, -1, np.int64), np.empty(size, np.int64)
    count = 0
    for row in range(size):
        similar = alike(row, kept[:count]).tolist()
        if decisions:
            pairs = [(place, row * size + other) for place, other in enumerate(kept[:count].tolist())]
            similar = [place for place, pair in pairs if decisions.get(pair, place in similar)]
        if similar:
            first[row] = kept[similar[0]]
        else:
            kept[count] = row
            count += 1
    return first


_SKETCH_BYTES_AT_ONCE = 1 << 24


def count_agreements(
    sketches: NDArray[Any], left: Ints, right: Ints, bands: int, rows: int
) -> tuple[Ints, Ints]:
    """Return for m pairs of sketches the number of equal positions and the number of equal bands.

    `left` and `right` are rows of `sketches`, (n, k). Band i has the positions from i * rows to (i + 1) * rows.
    """
    equal, runs = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    step = max(1, _SKETCH_BYTES_AT_ONCE // max(1, sketches[:1].nbytes))
    for at in range(0, len(left), step):
        part = slice(at, at + step)
        same = sketches[left[part]] == sketches[right[part]]
        equal[part] = same.sum(axis=1, dtype=np.int64)
        table = same[:, : bands * rows].reshape(len(same), bands, rows)
        runs[part] = table.all(axis=2).sum(axis=1, dtype=np.int64)
    return equal, runs


_ROWS_AT_ONCE = 256


def smallest(points: NDArray[Any], offsets: Ints, k: int) -> NDArray[Any]:
    """Return the k smallest distinct points of each document, ascending: (n, k) of the type of `points`.

    `points` is uint32 or uint64. If a document has fewer than k points, its largest point fills the other places.
    """
    sketches = np.zeros((len(offsets) - 1, k), points.dtype)
    for document, (begin, end) in enumerate(pairwise(offsets.tolist())):
        if begin < end:
            least = np.unique(points[begin:end])[:k]
            sketches[document, : len(least)] = least
            sketches[document, len(least) :] = least[-1]
    return sketches


def merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    """Merge pairs of rows, (m, k) as made by `smallest`, up to `limit` distinct ids, and count the merged ids.

    Two rows that both have fewer than k ids are merged completely.
    """
    parts = [
        _merged(left[at : at + _ROWS_AT_ONCE], right[at : at + _ROWS_AT_ONCE], limit)
        for at in range(0, max(len(left), 1), _ROWS_AT_ONCE)
    ]
    return Merged(*(np.concatenate(counts) for counts in zip(*parts, strict=True)))


def _merged(left: NDArray[Any], right: NDArray[Any], limit: int) -> Merged:
    width = left.shape[1]
    rows = np.concatenate((left, right), axis=1)
    is_distinct = np.concatenate((first_of_equals(left), first_of_equals(right)), axis=1)
    # In a row of fewer than k ids the last two values are equal.
    small = ~is_distinct[:, width - 1] & ~is_distinct[:, -1]
    bound = np.where(small, 2 * width, limit)
    order = np.argsort(rows, axis=1, kind="stable")
    rank = np.cumsum(first_of_equals(np.take_along_axis(rows, order, axis=1)), axis=1)
    is_counted = np.take_along_axis(is_distinct, order, axis=1) & (rank <= bound[:, None])
    of_left = (is_counted & (order < width)).sum(axis=1, dtype=np.int64)
    of_right = (is_counted & (order >= width)).sum(axis=1, dtype=np.int64)
    return Merged(of_left, of_right, of_left + of_right - np.minimum(rank[:, -1], bound))


def first_of_equals(rows: NDArray[Any]) -> Mask:
    """Return which values of sorted rows differ from the value before: bool of the same shape."""
    first = np.ones(rows.shape, bool)
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return first


def shared_bits(ids: Hashes, offsets: Ints, left_rows: Ints, right_rows: Ints) -> tuple[Ints, Ints]:
    """Count the bits of each document, and the bits that documents left_rows[i] and right_rows[i] share.

    Each document has a bitmap of BITS_PER_MAP bits, in which an id sets the bit id mod BITS_PER_MAP.
    """
    bits = np.zeros((len(offsets) - 1, BITS_PER_MAP), np.bool_)
    bits[np.repeat(np.arange(len(bits)), np.diff(offsets)), ids & np.uint64(BITS_PER_MAP - 1)] = True
    maps = np.packbits(bits, axis=1).view(np.uint64)
    shared = np.empty(len(left_rows), np.int64)
    for at in range(0, len(shared), _PAIRS_AT_ONCE):
        rows = slice(at, at + _PAIRS_AT_ONCE)
        shared[rows] = np.bitwise_count(maps[left_rows[rows]] & maps[right_rows[rows]]).sum(axis=1)
    return bits.sum(axis=1), shared
