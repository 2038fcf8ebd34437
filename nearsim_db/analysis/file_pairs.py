"""The pairs and clusters of encoded records: link, verify, cluster."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, fields
from functools import partial
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.encoded_records import EncodedRecords
from nearsim_db.records import Progress
from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.candidates import FullBuckets, Keys, find_full_buckets, linked_pairs
from nearsim_db.similarity.clustering import choose_survivors, connected_components, star_clusters
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import Screened, screen, verify

Ids = NDArray[np.int64]

_SKETCHES_AT_ONCE = 20_000
_LINKS_AT_ONCE = 1 << 15
_BLOCKS_WAITING = 8


@dataclass(frozen=True, slots=True)
class Twins:
    """Documents by head, the first with the same features: `head_of` int64 of n, -1 without any; `heads` ascend."""

    head_of: Ids
    heads: Ids

    @classmethod
    def of(cls, records: EncodedRecords) -> "Twins":
        """Find the heads by the digests."""
        present = np.flatnonzero(records.counts)
        halves = records.digests[present].view(np.uint64).reshape(-1, 2)
        order = np.lexsort((present, halves[:, 1], halves[:, 0]))
        ordered = halves[order]
        fresh = np.ones(len(order), bool)
        fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        firsts = present[order[fresh]]
        head_of = np.full(len(records), -1, np.int64)
        head_of[present[order]] = firsts[np.cumsum(fresh) - 1]
        return cls(head_of, np.sort(firsts))

    @property
    def edges(self) -> Ids:
        """Head and twin, (t, 2)."""
        twins = np.flatnonzero((self.head_of >= 0) & (self.head_of != np.arange(len(self.head_of))))
        return np.stack((self.head_of[twins], twins), axis=1)

    def sizes(self) -> Ids:
        """Return the number of documents of each head, by number; 0 for others."""
        return np.bincount(self.head_of[self.head_of >= 0], minlength=len(self.head_of))


@dataclass(frozen=True, slots=True)
class HeadPairs(Screened):
    """Pairs of heads by number, left < right, sorted, with their scores."""

    scores: Scores
    full: FullBuckets

    @property
    def edges(self) -> Ids:
        """Both ends, (m, 2)."""
        return np.stack((self.left, self.right), axis=1)

    def count(self, twins: Twins) -> int:
        """Return the number of pairs of documents, copies included."""
        sizes = twins.sizes()
        return int((sizes[self.left] * sizes[self.right]).sum() + (sizes * (sizes - 1) // 2).sum())


def find_pairs(
    encoder: Encoder, records: EncodedRecords, twins: Twins, pool: Executor, progress: Progress
) -> HeadPairs:
    """Verify the candidates among heads."""
    check = partial(_verified, encoder, records)
    found = [check((twins.heads[:0], twins.heads[:0]))]
    with TemporaryFile(prefix="nearsim-") as file:
        keys = _band_keys(encoder, records, twins.heads, file)
        full = find_full_buckets(keys, encoder.profile.recipe.match.bucket_limit)
        blocks = _blocks(keys, full, twins.heads, encoder)
        waiting: deque[Future[tuple[Screened, Scores]]] = deque()
        for block in blocks:
            waiting.append(pool.submit(check, block))
            if len(waiting) > _BLOCKS_WAITING:
                found.append(waiting.popleft().result())
        found += [one.result() for one in waiting]
    progress("candidates", len(twins.heads), len(twins.heads))
    screened, scores = Screened.joined([one for one, _ in found]), Scores.joined([one for _, one in found])
    order = np.lexsort((screened.right, screened.left))
    ordered = screened.take(order)
    fields_of = {one.name: getattr(ordered, one.name) for one in fields(Screened)}
    return HeadPairs(**fields_of, scores=scores.take(order), full=full)


def _band_keys(encoder: Encoder, records: EncodedRecords, heads: Ids, file: object) -> Keys:
    shape = (len(heads), encoder.profile.bands)
    if not len(heads):
        return np.zeros(shape, np.uint64)
    keys: Keys = np.memmap(file, np.uint64, "w+", shape=shape)  # type: ignore[call-overload]
    for at in range(0, len(heads), _SKETCHES_AT_ONCE):
        rows = slice(at, at + _SKETCHES_AT_ONCE)
        keys[rows] = encoder.band_keys(records.sketches[heads[rows]])
    return keys


def _blocks(keys: Keys, full: FullBuckets, heads: Ids, encoder: Encoder) -> Iterator[tuple[Ids, Ids]]:
    limit = encoder.profile.recipe.match.bucket_limit
    for left, right in linked_pairs(keys, limit, full, encoder.backend):
        for at in range(0, len(left), _LINKS_AT_ONCE):
            chosen = slice(at, at + _LINKS_AT_ONCE)
            yield heads[left[chosen]], heads[right[chosen]]


def _verified(encoder: Encoder, records: EncodedRecords, link: tuple[Ids, Ids]) -> tuple[Screened, Scores]:
    signed = Signatures(np.zeros(0, np.int64), records.sketches, ())
    return verify(encoder, screen(encoder, signed, *link), records.read_features)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Documents of clusters, ascending: numbers, the smallest number of the cluster, whether it survives."""

    numbers: Ids
    cluster_ids: Ids
    survives: NDArray[np.bool_]


def cluster(encoder: Encoder, records: EncodedRecords, twins: Twins, pairs: HeadPairs) -> Clusters:
    """Cluster pairs and twins by the recipe's linkage, and choose the survivors."""
    rules = encoder.profile.recipe.cluster
    edges, twin_edges = pairs.edges, twins.edges
    if rules.numbers_differ == "keep-apart":
        edges, twin_edges = _of_same_numbers(edges, twins, records.numbers)
    both = np.concatenate((edges, twin_edges))
    if rules.linkage == "representative":
        numbers, cluster_ids = star_clusters(edges, twin_edges, records.ranks.order(np.unique(both)))
    else:
        numbers, cluster_ids = connected_components(both)
    _, which, sizes = np.unique(cluster_ids, return_inverse=True, return_counts=True)
    shared = sizes[which] > 1
    numbers, cluster_ids = numbers[shared], cluster_ids[shared]
    return Clusters(
        numbers, cluster_ids, choose_survivors(numbers, cluster_ids, records.ranks.order(numbers))
    )


def _of_same_numbers(edges: Ids, twins: Twins, digests: NDArray[np.uint64]) -> tuple[Ids, Ids]:
    """Return ties of documents with equal numbers: of the first twins of each number, and of these with the others."""
    firsts: dict[int, dict[int, int]] = {}
    tied = []
    for number in np.flatnonzero(twins.head_of >= 0).tolist():
        own = firsts.setdefault(int(twins.head_of[number]), {})
        first = own.setdefault(int(digests[number]), number)
        if first != number:
            tied.append((first, number))
    pairs = [
        (first, firsts[right][digest])
        for left, right in edges.tolist()
        for digest, first in firsts[left].items()
        if digest in firsts[right]
    ]
    return np.array(pairs, np.int64).reshape(-1, 2), np.array(tied, np.int64).reshape(-1, 2)
