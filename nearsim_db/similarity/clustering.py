"""Clusters: what pairs and twins tie together, and which document of each stays. All ids are int64, 1 or more."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
NOTHING: Ids = np.zeros((0, 2), np.int64)

_EDGES_AT_ONCE = 1 << 20


def connected_components(edges: Ids) -> tuple[Ids, Ids]:
    """The documents on any edge, sorted, and for each the smallest document it is connected with.

    `edges` is (m, 2). They are taken a slice at a time, each with the forest that stands for the slices before, so
    that the memory needed beside them is that of the documents and one slice.
    """
    forest = np.zeros((0, 2), np.int64)
    for at in range(0, len(edges), _EDGES_AT_ONCE):
        documents, smallest = _components(np.concatenate((forest, edges[at : at + _EDGES_AT_ONCE])))
        forest = np.stack((documents, smallest), axis=1)
    return forest[:, 0], forest[:, 1]


def _components(edges: Ids) -> tuple[Ids, Ids]:
    """Labels are hooked to the smaller of each edge's and then shortened by pointer jumping until nothing changes
    (Shiloach and Vishkin 1982, in whole-array steps)."""
    documents = np.unique(edges)
    left, right = np.searchsorted(documents, edges.T)
    labels = np.arange(len(documents))
    while len(left):
        hooked = labels.copy()
        np.minimum.at(hooked, labels[left], labels[right])
        np.minimum.at(hooked, labels[right], labels[left])
        while not np.array_equal(hooked, shorter := hooked[hooked]):
            hooked = shorter
        labels = hooked
        apart = labels[left] != labels[right]
        left, right = left[apart], right[apart]
    return documents, documents[labels]


def constrained_components(edges: Ids, vetoes: Ids) -> tuple[Ids, Ids]:
    """The documents on any edge, sorted, and for each the smallest of its group.

    Edges are taken in their order, the strongest first, and each unites two groups unless one has an end of a veto and
    the other has its other end; `vetoes` is (v, 2). This is single linkage under cannot-link constraints (Davidson and
    Ravi 2005). Groups that cannot be united once never can be.
    """
    documents, ends = np.unique(edges, return_inverse=True)
    groups = _Groups(len(documents), np.searchsorted(documents, within(vetoes, documents)))
    for left, right in ends.reshape(-1, 2).tolist():
        groups.unite(left, right)
    return documents, documents[[groups.first(row) for row in range(len(documents))]]


class _Groups:
    """Groups of the numbers 0 to count - 1, each named by its first."""

    def __init__(self, count: int, vetoes: Ids) -> None:
        self._parents = list(range(count))
        self._apart: dict[int, set[int]] = defaultdict(set)
        for one, other in vetoes.tolist():
            self._apart[one].add(other)
            self._apart[other].add(one)

    def first(self, number: int) -> int:
        """The first of the group of a number."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    def unite(self, one: int, other: int) -> None:
        """Make one group of two, unless there is a veto between them."""
        first, later = sorted((self.first(one), self.first(other)))
        if first == later or later in self._apart.get(first, ()):
            return
        self._parents[later] = first
        for foe in self._apart.pop(later, ()):
            self._apart[foe].discard(later)
            self._apart[foe].add(first)
            self._apart[first].add(foe)


def within(edges: Ids, documents: Ids) -> Ids:
    """The edges that have both ends among documents."""
    return edges[np.isin(edges, documents).all(axis=1)]


def find_vetoed_components(documents: Ids, smallest: Ids, vetoes: Ids) -> Ids:
    """The documents whose component, as `connected_components` gives it, holds both ends of a veto."""
    ends = smallest[np.searchsorted(documents, within(vetoes, documents))]
    return documents[np.isin(smallest, ends[ends[:, 0] == ends[:, 1], 0])]


def expand_twins(pairs: Ids, twins: Ids) -> tuple[Ids, Ids]:
    """Pairs of heads and those of their twins, and for each the row of `pairs` that it comes from.

    Of a head's twins only those that have a verdict need be given, (t, 2) of (head, twin) sorted: the others are in
    the head's group whatever else happens, because no tie but a pin is stronger and their head is the first of them.
    """
    rows = np.arange(len(pairs))
    for side in (0, 1):
        starts, ends = (np.searchsorted(twins[:, 0], pairs[:, side], where) for where in ("left", "right"))
        again = np.repeat(np.arange(len(pairs)), ends - starts)
        places = np.arange(len(again)) - np.repeat(np.cumsum(ends - starts) - ends, ends - starts)
        more = pairs[again]
        more[:, side] = twins[places, 1]
        pairs, rows = np.concatenate((pairs, more)), np.concatenate((rows, rows[again]))
    return pairs, rows


def binding_edges(pins: Ids, twins: Ids, judged: Ids) -> Ids:
    """Pins and then ties of twins, in order; twins without verdict (`judged` have one) are tied to their head only."""
    own = twins[np.isin(twins[:, 1], judged)]
    return np.concatenate((sort_edges(pins), sort_edges(np.concatenate((twins, expand_twins(own, own)[0])))))


def sort_edges(edges: Ids, similarities: NDArray[np.float64] | None = None) -> Ids:
    """Edges by similarity, the highest first, and then by their documents."""
    edges = np.sort(edges)
    keys = [edges[:, 1], edges[:, 0]] + ([] if similarities is None else [-similarities])
    return edges[np.lexsort(keys)]


def star_clusters(pairs: Ids, twins: Ids, order: Ids, vetoes: Ids = NOTHING) -> tuple[Ids, Ids]:
    """The documents of `order`, sorted, and for each the smallest of its cluster, where a cluster is a star.

    `pairs` and `twins`, or whatever binds like them, are (m, 2) and (t, 2); `order` are all their documents,
    the best first. What is bound is one node, which ranks as its best document. In that order a node becomes a
    representative unless it has a pair with one before it; otherwise it joins the best of those. This is the greedy
    star, or leader, clustering (Hartigan 1975; Aslam, Pelekhov and Rus 2004); the representatives are the
    lexicographically first maximal independent set. With vetoes twins are bound in their order as far as they allow it,
    and a node does not join a star that it has a veto with.
    """
    documents = np.sort(order)
    place = np.empty(len(order), np.int64)
    place[np.searchsorted(documents, order)] = np.arange(len(order))
    bound, first = constrained_components(twins, vetoes) if len(vetoes) else connected_components(twins)
    node = np.arange(len(documents))
    node[np.searchsorted(documents, bound)] = np.searchsorted(documents, first)
    best = place.copy()
    np.minimum.at(best, node, place)
    rank = best[node]
    apart = rank[np.searchsorted(documents, within(vetoes, documents))]
    leader = _leaders(rank[np.searchsorted(documents, pairs)], apart, len(documents))[rank]
    smallest = np.full(len(documents), np.iinfo(np.int64).max)
    np.minimum.at(smallest, leader, documents)
    return documents, smallest[leader]


def _leaders(edges: Ids, vetoes: Ids, count: int) -> Ids:
    """For each of the nodes 0 to count - 1, in order of rank, the representative it is or joins."""
    first, second = edges.min(axis=1), edges.max(axis=1)
    order = np.lexsort((second, first))
    later = second[order]
    bounds = np.searchsorted(first[order], np.arange(count + 1)).tolist()
    foes: dict[int, set[int]] = defaultdict(set)
    for one, other in (*vetoes.tolist(), *vetoes[:, ::-1].tolist()):
        foes[one].add(other)
    leader = np.full(count, -1)
    for node in range(count):
        if leader[node] < 0:
            leader[node] = node
            around = later[bounds[node] : bounds[node + 1]]
            free = around[leader[around] < 0]
            leader[_agreeing(node, free, foes) if foes else free] = node
    return leader


def _agreeing(node: int, others: Ids, foes: Mapping[int, set[int]]) -> list[int]:
    """Those of others that can be in one star, each being taken in unless it has a foe among those before."""
    star = {node}
    for one in others.tolist():
        if star.isdisjoint(foes.get(one, ())):
            star.add(one)
    return sorted(star)


def choose_survivors(documents: Ids, clusters: Ids, order: Ids) -> NDArray[np.bool_]:
    """Which document is the best of its cluster. `documents` is sorted; `order` has them all, the best first."""
    rows = np.searchsorted(documents, order)
    _, first = np.unique(clusters[rows], return_index=True)
    chosen = np.zeros(len(documents), bool)
    chosen[rows[first]] = True
    return chosen


def find_split_off(documents: Ids, clusters: Ids, edges: Ids) -> NDArray[np.bool_]:
    """Which documents are outside the largest part of their cluster, as far as these edges hold it together.

    `documents` is sorted, `clusters` of its length.
    """
    labels = documents.copy()
    connected, smallest = connected_components(edges)
    inside = np.isin(documents, connected, assume_unique=True)
    labels[inside] = smallest[np.searchsorted(connected, documents[inside])]
    order = np.lexsort((labels, clusters))
    starts = np.ones(len(order), bool)
    starts[1:] = (np.diff(clusters[order]) != 0) | (np.diff(labels[order]) != 0)
    part = np.empty(len(order), np.int64)
    part[order] = np.cumsum(starts) - 1
    owners, cluster = np.unique(clusters, return_inverse=True)
    largest = np.zeros(len(owners), np.int64)
    by_size = np.argsort(np.bincount(part, minlength=1)[part], kind="stable")
    largest[cluster[by_size]] = part[by_size]
    stragglers: NDArray[np.bool_] = part != largest[cluster]
    return stragglers
