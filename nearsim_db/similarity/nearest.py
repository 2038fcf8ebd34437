"""Nearest neighbours: the most similar documents of each document, without a threshold.

Candidates are found by a join on rare features, and are compared exactly. A k-nearest-neighbour join of records finds
matches that no threshold finds (Papadakis, Fisichella, Schoger, Mandilaras, Augsten, Nejdl: Benchmarking Filtering
Techniques for Entity Resolution, ICDE 2023).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nearsim_db.similarity.arrays import Floats, Ints, Ragged, offsets_of
from nearsim_db.similarity.backend import resolve, sketch_kernels
from nearsim_db.similarity.batches import ColumnBatch

Weights = Literal["idf", "none"]

# The largest number of rare features by which a document searches for others.
MAX_KEYS = 24
# The largest number of documents that these features may find together. If the rarest feature alone finds more, only
# the first so many of these are compared.
MAX_LINKS = 400
_LINKS_AT_ONCE = 1 << 20
_VERIFIED_PER_MATCH = 10
_MIN_VERIFIED = 50


@dataclass(frozen=True, slots=True)
class NearestPairs(ColumnBatch):
    """m pairs of a query and one of its nearest targets.

    They are sorted by query, then by similarity with the highest first, then by target.
    """

    query: Ints  # row of the query
    target: Ints  # row of the target
    similarity: Floats  # in 0..1

    def mutual(self, reverse: "NearestPairs") -> "NearestPairs":
        """Keep the pairs in which the query is also among the nearest documents of the target.

        `reverse` are the pairs that were found by a search for the targets.
        """
        span = np.int64(1 + max(self.query.max(initial=0), reverse.target.max(initial=0)))
        kept = np.isin(self.target * span + self.query, reverse.query * span + reverse.target)
        return self.take(kept)

    def clear(self, max_matches: int, margin: float) -> "NearestPairs":
        """Keep up to `max_matches` pairs of each query that are clearly better than the next best pair.

        The next best pair is the first after `max_matches` pairs. A pair is dropped if its similarity, reduced by the
        fraction `margin`, is below the similarity of the next best pair.
        """
        rank = np.arange(len(self.query)) - np.searchsorted(self.query, self.query)
        after = np.zeros(1 + self.query.max(initial=0))
        after[self.query[rank == max_matches]] = self.similarity[rank == max_matches]
        return self.take((rank < max_matches) & (self.similarity * (1 - margin) >= after[self.query]))


class NearestJoin:
    """Finds the nearest targets of each query. Without `targets`, finds the nearest other queries of each query.

    Documents are rows of sorted distinct feature ids. With the weights idf, the similarity is the cosine of vectors of
    weights ln(1 + n / df), where df of all n documents have the feature. Without weights it is the Jaccard similarity.

    A query is compared with the documents that share one of its `MAX_KEYS` rarest keys, at most `MAX_LINKS` in all.
    `left_out` is the number of queries whose rarest key alone has more documents. `keys` are the ids by which documents
    are found, as rows of the queries and rows of the targets; by default they are the features.

    `differing` and `agreeing` have a number for each query and for each target, int64. In a pair the numbers of
    `differing` must differ, and those of `agreeing` must be equal.
    """

    def __init__(
        self,
        queries: Ragged,
        targets: Ragged | None,
        *,
        weights: Weights = "idf",
        keys: tuple[Ragged, Ragged | None] | None = None,
        differing: tuple[Ints, Ints] | None = None,
        agreeing: tuple[Ints, Ints] | None = None,
        backend: str | None = None,
    ) -> None:
        self._is_self_join = targets is None
        self._first = 0 if targets is None else len(queries)
        all_sets = queries if targets is None else Ragged.joined([queries, targets])

        _, terms, frequency = np.unique(all_sets.values, return_inverse=True, return_counts=True)
        self._differing, self._agreeing, self._is_idf = differing, agreeing, weights == "idf"
        weight = np.log1p(len(all_sets) / frequency) if self._is_idf else np.ones(len(frequency))
        self._offsets, self._terms, self._weights = all_sets.offsets, terms.view(np.uint64), weight[terms]
        squares = np.concatenate((np.zeros(1), np.cumsum(self._weights**2)))[all_sets.offsets]
        self._lengths = np.sqrt(np.diff(squares))
        self._kernels = sketch_kernels(resolve(backend))

        query_keys, target_keys = keys or (queries, targets)
        all_keys = query_keys if target_keys is None else Ragged.joined([query_keys, target_keys])
        _, numbers, shared_by = np.unique(all_keys.values, return_inverse=True, return_counts=True)
        self._gain = np.log1p(len(all_keys) / shared_by) ** 2
        begin, sizes = all_keys.offsets[self._first], np.diff(all_keys.offsets[self._first :])
        self._postings(numbers[begin:], sizes, len(shared_by))
        self._choose_keys(numbers[: query_keys.offsets[-1]], np.diff(query_keys.offsets))

    def _postings(self, terms: Ints, sizes: Ints, count: int) -> None:
        """List the targets that have each key."""
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self._targets = owners[np.argsort(terms, kind="stable")]
        self._begins = offsets_of(np.bincount(terms, minlength=count))

    def _choose_keys(self, terms: Ints, sizes: Ints) -> None:
        """Choose the rarest keys of each query, by the number of targets that have them.

        Keys that no other document has are left out.
        """
        owners = np.repeat(np.arange(len(sizes)), sizes)
        counts = np.diff(self._begins)[terms]
        is_shared = counts > self._is_self_join
        owners, terms, counts = owners[is_shared], terms[is_shared], counts[is_shared]
        order = np.lexsort((terms, counts, owners))
        begins = np.searchsorted(owners, np.arange(len(sizes)))
        rank = np.arange(len(order)) - begins[owners]

        ends = np.cumsum(counts[order])
        links = ends - np.concatenate((np.zeros(1, np.int64), ends))[begins][owners]
        chosen = order[(rank < MAX_KEYS) & ((links <= MAX_LINKS) | (rank == 0))]
        self._owners, self._keys = owners[chosen], terms[chosen]
        self.left_out: int = int((counts[chosen] > MAX_LINKS).sum())
        self._counts = np.minimum(counts[chosen], MAX_LINKS)

    def search(self, max_matches: int, min_similarity: float) -> Iterator[NearestPairs]:
        """Yield up to `max_matches` nearest targets of each query, in blocks of queries.

        Only pairs with a similarity of at least `min_similarity` are returned.
        """
        ends = np.cumsum(self._counts)
        begin = 0
        while begin < len(self._keys):
            before = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, before + _LINKS_AT_ONCE, side="right"))
            # A query must not be divided between blocks.
            end = int(np.searchsorted(self._owners, self._owners[max(end - 1, begin)], side="right"))
            yield self._nearest(slice(begin, end), max_matches, min_similarity)
            begin = end

    def _nearest(self, part: slice, max_matches: int, min_similarity: float) -> NearestPairs:
        query, target, gain = self._linked(part)
        target = target + self._first
        closeness = gain / self._lengths[target]
        max_verified = max(_MIN_VERIFIED, max_matches * _VERIFIED_PER_MATCH)
        verified = _best(query, target, closeness, max_verified)
        query, target = query[verified], target[verified]
        similarity = self._similarity(query, target)
        near = similarity >= min_similarity
        query, target, similarity = query[near], target[near], similarity[near]
        best = _best(query, target, similarity, max_matches)
        return NearestPairs(query[best], target[best] - self._first, similarity[best])

    def _linked(self, part: slice) -> tuple[Ints, Ints, Floats]:
        """Return the queries and the targets that share keys, each pair once, with a gain.

        The gain of a pair is the sum of the squared weights of its shared keys.
        """
        counts, keys = self._counts[part], self._keys[part]
        starts = np.repeat(self._begins[keys] - np.cumsum(counts) + counts, counts)
        target = self._targets[starts + np.arange(len(starts))].astype(np.int64)
        query = np.repeat(self._owners[part], counts)
        counted = query != target if self._is_self_join else np.ones(len(query), bool)
        if self._differing is not None:
            counted &= self._differing[0][query] != self._differing[1][target]
        if self._agreeing is not None:
            counted &= self._agreeing[0][query] == self._agreeing[1][target]
        span = len(self._offsets)
        pairs, place = np.unique(query[counted] * span + target[counted], return_inverse=True)
        weights = np.repeat(self._gain[keys], counts)[counted]
        gain: Floats = np.bincount(place, weights, len(pairs)).astype(np.float64)
        return pairs // span, pairs % span, gain

    def _similarity(self, query: Ints, target: Ints) -> Floats:
        sums = self._kernels.sums(self._terms, self._weights, self._offsets, query, target)
        if not self._is_idf:
            return sums.minima / sums.maxima
        cosine: Floats = np.minimum(sums.products / (self._lengths[query] * self._lengths[target]), 1.0)
        return cosine


def _best(query: Ints, target: Ints, value: Floats, count: int) -> Ints:
    """Return the places of the `count` pairs with the largest values of each query, in the order of `NearestPairs`."""
    order = np.lexsort((target, -value, query))
    ordered = query[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return order[rank < count]
