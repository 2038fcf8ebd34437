"""Verified pairs of records in temporary files, sorted by both ends; few are in memory at once."""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.readers.output import full_disk
from nearsim_db.similarity.arrays import Floats, Ints
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import Screened

PairRows = NDArray[np.void]
_PAIR = np.dtype(
    [
        ("left", np.int64),
        ("right", np.int64),
        ("similarity", np.float64),
        ("distance", np.float64),
        ("estimate", np.float32),
        ("shared_bands", np.int32),
        ("intersection", np.int32),
        ("union", np.int32),
        ("by_passage", np.bool_),
    ],
    align=True,
)
_PAIRS_AT_ONCE = 1 << 19


class SortedPairs:
    """Pairs of documents by number, left < right, with their scores.

    They are added in any order; after `finish` they are sorted. `has_counts` says whether their intersections and
    unions are counted, `has_distances` whether distances are measured.
    """

    def __init__(self, records: EncodedRecords) -> None:
        self._file: BinaryIO = records.open_temporary()
        self._sorted: BinaryIO = records.open_temporary()
        self._documents = len(records)
        self._of_left = np.zeros(len(records), np.int32)
        self._count = 0
        self.has_counts: bool = False
        self.has_distances: bool = False

    def __len__(self) -> int:
        return self._count

    def add(self, screened: Screened, scores: Scores) -> None:
        """Add pairs that passed screening. Raises NearsimError if the disk is full."""
        rows = np.zeros(len(screened.left), _PAIR)
        columns: dict[str, NDArray[Any] | None] = {
            "left": screened.left,
            "right": screened.right,
            "similarity": scores.similarity,
            "distance": scores.distance,
            "estimate": screened.estimate,
            "shared_bands": screened.shared_bands,
            "intersection": scores.intersection,
            "union": scores.union,
            "by_passage": scores.by_passage,
        }
        for name, column in columns.items():
            if column is not None:
                rows[name] = column
        self.has_counts |= scores.intersection is not None
        self.has_distances |= scores.distance is not None
        np.add.at(self._of_left, screened.left, 1)
        self._count += len(rows)
        _write(self._file, rows)

    @full_disk()
    def finish(self) -> None:
        """Sort the pairs: divide them by their left ends into parts that fit into memory, and sort each of these."""
        ends = np.cumsum(self._of_left, dtype=np.int64)
        stops = np.unique(ends.searchsorted(np.arange(_PAIRS_AT_ONCE, len(self), _PAIRS_AT_ONCE))) + 1
        bounds = np.concatenate(([0], ends[stops - 1], [len(self)]))
        self._divide(stops, bounds[:-1].copy())
        self._file.close()
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            rows = _read(self._sorted, begin, end)
            _write(self._sorted, rows[np.lexsort((rows["right"], rows["left"]))], begin)
        self._sorted.flush()
        self._of_left = self._of_left[:0]

    def _divide(self, stops: Ints, places: Ints) -> None:
        """Copy the pairs to their parts, which begin at these places; part n has left ends from stop n - 1 to n."""
        self._file.flush()
        for begin in range(0, len(self), _PAIRS_AT_ONCE):
            rows = _read(self._file, begin, min(begin + _PAIRS_AT_ONCE, len(self)))
            part = stops.searchsorted(rows["left"], side="right")
            ordered, sizes = rows[np.argsort(part, kind="stable")], np.bincount(part)
            for one, own in enumerate(np.split(ordered, np.cumsum(sizes)[:-1])):
                if len(own):
                    _write(self._sorted, own, int(places[one]))
            places[: len(sizes)] += sizes
        self._sorted.flush()

    def blocks(self) -> Iterator[PairRows]:
        """Yield the pairs, many at once."""
        for begin in range(0, len(self), _PAIRS_AT_ONCE):
            yield _read(self._sorted, begin, min(begin + _PAIRS_AT_ONCE, len(self)))

    def edges(self) -> Iterator[Ints]:
        """Yield both ends of the pairs, (m, 2), many at once."""
        return map(edges_of, self.blocks())

    def ties(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield both ends and the similarities of those for which a record may be removed, many at once.

        It may not if only a passage makes them a pair.
        """
        for rows in self.blocks():
            tying = rows[~rows["by_passage"]]
            yield edges_of(tying), tying["similarity"]

    def similarities(self, left: Ints, right: Ints) -> Floats:
        """Return the similarity of m pairs, left < right; nan for those that are none."""
        found = np.full(len(left), np.nan)
        order = np.lexsort((right, left))
        sought = (left * self._documents + right)[order]
        for rows in self.blocks():
            keys = rows["left"] * self._documents + rows["right"]
            begin, end = sought.searchsorted((keys[0], keys[-1] + 1))
            places = keys.searchsorted(sought[begin:end])
            here = keys[places] == sought[begin:end]
            found[order[begin:end][here]] = rows["similarity"][places[here]]
        return found


def edges_of(rows: PairRows) -> Ints:
    """Return both ends of pairs, (m, 2)."""
    return np.stack((rows["left"], rows["right"]), axis=1)


def _read(file: BinaryIO, begin: int, end: int) -> PairRows:
    size = _PAIR.itemsize
    return np.frombuffer(os.pread(file.fileno(), (end - begin) * size, begin * size), _PAIR)


@full_disk()
def _write(file: BinaryIO, rows: PairRows, begin: int | None = None) -> None:
    if begin is not None:
        file.seek(begin * _PAIR.itemsize)
    file.write(rows.data)
