"""Find the pairs of encoded records: group twins, link and verify heads in a pool of threads, and sort the pairs."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nearsim_db.deduplication.comparison import Nodes
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.readers.output import full_disk
from nearsim_db.records import Progress
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Keys, Ragged, are_fresh
from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.linked_pairs import FullBuckets, find_full_buckets, linked_pairs
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.recipe_warnings import SAMPLE_SIZE
from nearsim_db.similarity.screening import Screened, are_pairs, screen, verify

_SKETCHES_AT_ONCE = 20_000
_LINKS_AT_ONCE = 1 << 14
_FEATURES_PER_THREAD = 1 << 23
_BLOCKS_WAITING = 8
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


@dataclass(frozen=True, slots=True)
class Twins:
    """Documents grouped by equal features. The first document of a group is its head, the others are its twins."""

    head_of: Ints  # the head of each document, -1 for a document without features
    heads: Ints  # ascending
    sample: Ints  # the heads with the smallest digests, in the order of the digests

    @classmethod
    def of(cls, records: EncodedRecords) -> "Twins":
        """Group the documents by their digests."""
        present = np.flatnonzero(records.counts)
        # Read as big-endian numbers, digests sort like their bytes.
        halves = records.digests[present].view(">u8").astype(np.uint64).reshape(-1, 2)
        # Among equal digests, the document with the smallest number comes first and is the head.
        order = np.lexsort((present, halves[:, 1], halves[:, 0]))
        fresh = are_fresh(*halves[order].T)
        firsts = present[order[fresh]]
        head_of = np.full(len(records), -1, np.int64)
        head_of[present[order]] = firsts[np.cumsum(fresh) - 1]
        return cls(head_of, np.sort(firsts), firsts[:SAMPLE_SIZE].copy())

    def apart(self) -> "Twins":
        """Return every document as its own head, so that documents with the same features are compared, too."""
        has_features = self.head_of >= 0
        heads = np.flatnonzero(has_features)
        return Twins(np.where(has_features, np.arange(len(self.head_of)), -1), heads, self.sample)

    def sizes(self) -> Ints:
        """Return for each document the size of the group that it is the head of, 0 if it is no head."""
        return np.bincount(self.head_of[self.head_of >= 0], minlength=len(self.head_of))


class SortedPairs:
    """Pairs of documents with their scores, in a temporary file; the left document has the smaller number.

    Pairs are added in any order, and sorted by `finish`. `kind` are scores of the same metric, which tell the columns.
    """

    def __init__(self, records: EncodedRecords, kind: Scores) -> None:
        self._file: BinaryIO = records.open_temporary()
        self._sorted: BinaryIO = records.open_temporary()
        self._documents = len(records)
        self._of_left = np.zeros(len(records), np.int32)
        self._count = 0
        self.has_counts: bool = kind.intersection is not None  # pairs have an intersection and a union
        self.has_distances: bool = kind.distance is not None

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

        # Count the pairs of each left document; `finish` divides the pairs by these counts.
        np.add.at(self._of_left, screened.left, 1)
        self._count += len(rows)
        _write_rows(self._file, rows)

    @full_disk()
    def finish(self) -> None:
        """Sort the pairs: divide them by their left documents into parts that fit into memory, and sort each part."""
        ends = np.cumsum(self._of_left, dtype=np.int64)
        # A part has about `_PAIRS_AT_ONCE` pairs, and all pairs of each of its left documents.
        stops = np.unique(ends.searchsorted(np.arange(_PAIRS_AT_ONCE, len(self), _PAIRS_AT_ONCE))) + 1
        bounds = np.concatenate(([0], ends[stops - 1], [len(self)]))
        self._divide(stops, bounds[:-1].copy())
        self._file.close()
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            rows = _read_rows(self._sorted, begin, end)
            _write_rows(self._sorted, rows[np.lexsort((rows["right"], rows["left"]))], begin)
        self._sorted.flush()
        self._of_left = self._of_left[:0]

    def _divide(self, stops: Ints, places: Ints) -> None:
        """Copy the pairs into the sorted file, each into its part.

        Part n has the left documents from stop n - 1 up to stop n. `places` are the rows at which the parts begin.
        """
        self._file.flush()
        for begin in range(0, len(self), _PAIRS_AT_ONCE):
            rows = _read_rows(self._file, begin, min(begin + _PAIRS_AT_ONCE, len(self)))
            part = stops.searchsorted(rows["left"], side="right")
            ordered, sizes = rows[np.argsort(part, kind="stable")], np.bincount(part)
            for number, rows_of_part in enumerate(np.split(ordered, np.cumsum(sizes)[:-1])):
                if len(rows_of_part):
                    _write_rows(self._sorted, rows_of_part, int(places[number]))
            places[: len(sizes)] += sizes
        self._sorted.flush()

    def blocks(self) -> Iterator[PairRows]:
        """Yield all pairs in sorted blocks."""
        for begin in range(0, len(self), _PAIRS_AT_ONCE):
            yield _read_rows(self._sorted, begin, min(begin + _PAIRS_AT_ONCE, len(self)))

    def edges(self) -> Iterator[Ints]:
        """Yield both documents of all pairs, in blocks of (m, 2)."""
        return map(edges_of, self.blocks())

    def ties(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield the documents, (m, 2), and the similarities of the pairs that connect clusters, in blocks.

        A pair that only shares a passage connects no cluster, so no record is removed for it.
        """
        for rows in self.blocks():
            tying = rows[~rows["by_passage"]]
            yield edges_of(tying), tying["similarity"]

    def similarities(self, left: Ints, right: Ints) -> Floats:
        """Return the similarity of each pair of documents, left < right; nan for two documents that are no pair."""
        similarities = np.full(len(left), np.nan)
        order = np.lexsort((right, left))
        # Express each pair as one number, which sorts like the rows.
        sought = (left * self._documents + right)[order]
        for rows in self.blocks():
            keys = rows["left"] * self._documents + rows["right"]
            begin, end = sought.searchsorted((keys[0], keys[-1] + 1))
            # Nothing is sought beyond the last key of the block, so each place is a row of the block.
            places = keys.searchsorted(sought[begin:end])
            here = keys[places] == sought[begin:end]
            similarities[order[begin:end][here]] = rows["similarity"][places[here]]
        return similarities


def edges_of(rows: PairRows) -> Ints:
    """Return both documents of pairs, (m, 2)."""
    return np.stack((rows["left"], rows["right"]), axis=1)


def _read_rows(file: BinaryIO, begin: int, end: int) -> PairRows:
    size = _PAIR.itemsize
    return np.frombuffer(os.pread(file.fileno(), (end - begin) * size, begin * size), _PAIR)


@full_disk()
def _write_rows(file: BinaryIO, rows: PairRows, begin: int | None = None) -> None:
    if begin is not None:
        file.seek(begin * _PAIR.itemsize)
    file.write(rows.data)


def find_pairs(
    records: EncodedRecords, twins: Twins, nodes: Nodes, progress: Progress
) -> tuple[SortedPairs, SortedPairs, FullBuckets]:
    """Find candidates among the heads, and verify the candidates that may count.

    Returns the pairs, the pairs to be reviewed, and the buckets that exceed the recipe's limit.
    """
    encoder = records.encoder
    heads = twins.heads if encoder.has_sketches else twins.heads[:0]
    progress("candidates", 0, len(heads))
    keys = _band_keys(records, heads)
    full = find_full_buckets(keys, encoder.profile.recipe.match.bucket_limit, records.pool)

    # Scores of no pairs have the columns that the metric has.
    _, no_scores = _verified(records, heads[:0], heads[:0])
    pairs, in_review = SortedPairs(records, no_scores), SortedPairs(records, no_scores)
    for screened, scores in _verify_all(records, _blocks(keys, full, heads, nodes, encoder)):
        reach_threshold = are_pairs(encoder, scores, screened.shared_bands)
        pairs.add(screened.take(reach_threshold), scores.take(reach_threshold))
        in_review.add(screened.take(~reach_threshold), scores.take(~reach_threshold))
    progress("candidates", len(heads), len(heads))

    pairs.finish()
    in_review.finish()
    return pairs, in_review, full


def _verify_all(
    records: EncodedRecords, blocks: Iterator[tuple[Ints, Ints]]
) -> Iterator[tuple[Screened, Scores]]:
    """Verify blocks of linked heads in the pool of threads, and yield their pairs in the order of the blocks."""
    waiting: deque[Future[tuple[Screened, Scores]]] = deque()
    for block in blocks:
        waiting.append(records.pool.submit(_verified, records, *block))
        if len(waiting) > _BLOCKS_WAITING:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _band_keys(records: EncodedRecords, heads: Ints) -> Keys:
    """Return the band keys of heads. If all heads have the same number of keys, the matrix is in a temporary file."""
    encoder = records.encoder
    parts = [slice(at, at + _SKETCHES_AT_ONCE) for at in range(0, len(heads), _SKETCHES_AT_ONCE)]
    if encoder.family.ordered:
        keys_of_parts = [encoder.ragged_keys(records.read_sketches(heads[rows])) for rows in parts]
        return Ragged.joined([Ragged.of([]), *keys_of_parts])
    shape = (len(heads), encoder.profile.bands)
    if not len(heads):
        return np.zeros(shape, np.uint64)

    file = records.open_temporary()
    with full_disk():  # reserve the space now: on a full disk, writing to the map would kill the process
        os.posix_fallocate(file.fileno(), 0, shape[0] * shape[1] * np.dtype(np.uint64).itemsize)
    keys: Hashes = np.memmap(file, np.uint64, "w+", shape=shape)

    def fill(rows: slice) -> None:
        keys[rows] = encoder.matrix_keys(records.read_sketches(heads[rows]))

    # Wait for all parts, and raise an error of any of them.
    deque(records.pool.map(fill, parts), maxlen=0)
    return keys


def _blocks(
    keys: Keys, full: FullBuckets, heads: Ints, nodes: Nodes, encoder: Encoder
) -> Iterator[tuple[Ints, Ints]]:
    """Yield linked heads whose pair may count, in blocks of left and right heads."""
    limit = encoder.profile.recipe.match.bucket_limit
    for left_rows, right_rows in linked_pairs(keys, limit, full, encoder.backend):
        left, right = heads[left_rows], heads[right_rows]
        if not nodes.counts_all:
            counted = nodes.may_count(left, right)
            left, right = left[counted], right[counted]
        for at in range(0, len(left), _LINKS_AT_ONCE):
            chosen = slice(at, at + _LINKS_AT_ONCE)
            yield left[chosen], right[chosen]


def _verified(records: EncodedRecords, left: Ints, right: Ints) -> tuple[Screened, Scores]:
    """Return the pairs among linked heads, and their scores; halve a block whose features would take much memory."""
    used, half = np.union1d(left, right), len(left) // 2
    if half and records.feature_total(used) > _FEATURES_PER_THREAD:
        parts = [_verified(records, left[rows], right[rows]) for rows in (slice(half), slice(half, None))]
        return Screened.joined([pairs for pairs, _ in parts]), Scores.joined([scores for _, scores in parts])

    signed = Signatures(used, records.read_sketches(used), ())
    ends = used.searchsorted(left), used.searchsorted(right)
    screened = screen(records.encoder, signed, *ends, review=True, count_late=True)

    def read(rows: Sequence[int]) -> dict[int, NDArray[Any]]:
        return dict(zip(rows, records.read_features(used[rows]), strict=True))

    pairs, scores = verify(records.encoder, screened, read, signed, review=True)
    return replace(pairs, left=used[pairs.left], right=used[pairs.right]), scores
