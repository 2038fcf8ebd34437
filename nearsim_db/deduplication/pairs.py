"""The pairs of encoded records: twins, links, verified pairs."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.deduplication.comparison import Nodes
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.deduplication.sorted_pairs import SortedPairs
from nearsim_db.readers.output import full_disk
from nearsim_db.records import Progress
from nearsim_db.similarity.arrays import Hashes, Ints, Keys, Ragged, are_fresh
from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.candidates import FullBuckets, find_full_buckets, linked_pairs
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.recipe_warnings import SAMPLE_SIZE
from nearsim_db.similarity.screening import Screened, are_pairs, screen, verify

_SKETCHES_AT_ONCE = 20_000
_LINKS_AT_ONCE = 1 << 14
_FEATURES_AT_ONCE = 1 << 23  # in each thread
_BLOCKS_WAITING = 8


@dataclass(frozen=True, slots=True)
class Twins:
    """Documents by head, the first with the same features: `head_of` int64 of n, -1 without any; `heads` ascend.

    `sample` has the heads with the smallest digests, ascending by these.
    """

    head_of: Ints
    heads: Ints
    sample: Ints

    @classmethod
    def of(cls, records: EncodedRecords) -> "Twins":
        """Find the heads by the digests."""
        present = np.flatnonzero(records.counts)
        halves = records.digests[present].view(">u8").astype(np.uint64).reshape(-1, 2)
        order = np.lexsort((present, halves[:, 1], halves[:, 0]))
        fresh = are_fresh(*halves[order].T)
        firsts = present[order[fresh]]
        head_of = np.full(len(records), -1, np.int64)
        head_of[present[order]] = firsts[np.cumsum(fresh) - 1]
        return cls(head_of, np.sort(firsts), firsts[:SAMPLE_SIZE].copy())

    def apart(self) -> "Twins":
        """Return each document as a head of its own, so that those with the same features are compared, too."""
        has_features = self.head_of >= 0
        heads = np.flatnonzero(has_features)
        return Twins(np.where(has_features, np.arange(len(self.head_of)), -1), heads, self.sample)

    def sizes(self) -> Ints:
        """Return the number of documents of each head, by number; 0 for others."""
        return np.bincount(self.head_of[self.head_of >= 0], minlength=len(self.head_of))


def find_pairs(
    records: EncodedRecords, twins: Twins, nodes: Nodes, progress: Progress
) -> tuple[SortedPairs, SortedPairs, FullBuckets]:
    """Verify the candidates among heads that may count; return the pairs, those to be reviewed, and full buckets."""
    encoder = records.encoder
    heads = twins.heads if encoder.has_sketches else twins.heads[:0]
    progress("candidates", 0, len(heads))
    pairs, in_review = SortedPairs(records), SortedPairs(records)

    def add(screened: Screened, scores: Scores) -> None:
        counts = are_pairs(encoder, scores, screened.shared_bands)
        pairs.add(screened.take(counts), scores.take(counts))
        in_review.add(screened.take(~counts), scores.take(~counts))

    add(*_verified(records, heads[:0], heads[:0]))
    full = _verify_links(records, heads, nodes, add)
    progress("candidates", len(heads), len(heads))
    pairs.finish()
    in_review.finish()
    return pairs, in_review, full


def _verify_links(
    records: EncodedRecords, heads: Ints, nodes: Nodes, add: Callable[[Screened, Scores], None]
) -> FullBuckets:
    """Verify the linked pairs of heads on all cores; return the full buckets."""
    keys = _band_keys(records, heads)
    full = find_full_buckets(keys, records.encoder.profile.recipe.match.bucket_limit, records.pool)
    waiting: deque[Future[tuple[Screened, Scores]]] = deque()
    for block in _blocks(keys, full, heads, nodes, records.encoder):
        waiting.append(records.pool.submit(_verified, records, *block))
        if len(waiting) > _BLOCKS_WAITING:
            add(*waiting.popleft().result())
    for one in waiting:
        add(*one.result())
    return full


def _band_keys(records: EncodedRecords, heads: Ints) -> Keys:
    encoder = records.encoder
    parts = [slice(at, at + _SKETCHES_AT_ONCE) for at in range(0, len(heads), _SKETCHES_AT_ONCE)]
    if encoder.family.ordered:
        found = [encoder.ragged_keys(records.read_sketches(heads[rows])) for rows in parts]
        return Ragged.joined([Ragged.of([]), *found])
    shape = (len(heads), encoder.profile.bands)
    if not len(heads):
        return np.zeros(shape, np.uint64)
    file = records.open_temporary()
    with full_disk():  # a page without room would end the process when it is written
        os.posix_fallocate(file.fileno(), 0, shape[0] * shape[1] * np.dtype(np.uint64).itemsize)
    keys: Hashes = np.memmap(file, np.uint64, "w+", shape=shape)

    def fill(rows: slice) -> None:
        keys[rows] = encoder.matrix_keys(records.read_sketches(heads[rows]))

    deque(records.pool.map(fill, parts), maxlen=0)
    return keys


def _blocks(
    keys: Keys, full: FullBuckets, heads: Ints, nodes: Nodes, encoder: Encoder
) -> Iterator[tuple[Ints, Ints]]:
    limit = encoder.profile.recipe.match.bucket_limit
    for one, other in linked_pairs(keys, limit, full, encoder.backend):
        left, right = heads[one], heads[other]
        if not nodes.counts_all:
            counted = nodes.may_count(left, right)
            left, right = left[counted], right[counted]
        for at in range(0, len(left), _LINKS_AT_ONCE):
            chosen = slice(at, at + _LINKS_AT_ONCE)
            yield left[chosen], right[chosen]


def _verified(records: EncodedRecords, left: Ints, right: Ints) -> tuple[Screened, Scores]:
    """Return the pairs among links, and their scores; of long documents only some are read at once."""
    used, half = np.union1d(left, right), len(left) // 2
    if half and records.feature_total(used) > _FEATURES_AT_ONCE:
        parts = [_verified(records, left[rows], right[rows]) for rows in (slice(half), slice(half, None))]
        return Screened.joined([pairs for pairs, _ in parts]), Scores.joined([scores for _, scores in parts])
    signed = Signatures(used, records.read_sketches(used), ())
    one, other = used.searchsorted(left), used.searchsorted(right)
    screened = screen(records.encoder, signed, one, other, review=True, count_late=True)

    def read(rows: Sequence[int]) -> dict[int, NDArray[Any]]:
        return dict(zip(rows, records.read_features(used[rows]), strict=True))

    pairs, scores = verify(records.encoder, screened, read, signed, review=True)
    return replace(pairs, left=used[pairs.left], right=used[pairs.right]), scores
