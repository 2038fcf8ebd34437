"""Clusters: what pairs and twins tie together, and which document of each stays. All ids are int64, 1 or more."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

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


def star_clusters(pairs: Ids, twins: Ids, order: Ids) -> tuple[Ids, Ids]:
    """The documents of `order`, sorted, and for each the smallest of its cluster, where a cluster is a star.

    `pairs` is (m, 2) of heads, `twins` (t, 2) of (head, twin); `order` are all their documents, the best first. A
    head and its twins are one node, which ranks as its best document. In that order a node becomes a representative
    unless it has a pair with one before it; otherwise it joins the best of those. This is the greedy star, or leader,
    clustering (Hartigan 1975; Aslam, Pelekhov and Rus 2004); the representatives are the lexicographically first
    maximal independent set.
    """
    documents = np.sort(order)
    place = np.empty(len(order), np.int64)
    place[np.searchsorted(documents, order)] = np.arange(len(order))
    node = np.arange(len(documents))
    node[np.searchsorted(documents, twins[:, 1])] = np.searchsorted(documents, twins[:, 0])
    best = place.copy()
    np.minimum.at(best, node, place)
    leader = _leaders(best[np.searchsorted(documents, pairs)], len(documents))[best[node]]
    smallest = np.full(len(documents), np.iinfo(np.int64).max)
    np.minimum.at(smallest, leader, documents)
    return documents, smallest[leader]


def _leaders(edges: Ids, count: int) -> Ids:
    """For each of the nodes 0 to count - 1, in order of rank, the representative it is or joins."""
    first, second = edges.min(axis=1), edges.max(axis=1)
    order = np.argsort(first, kind="stable")
    later = second[order]
    bounds = np.searchsorted(first[order], np.arange(count + 1)).tolist()
    leader = np.full(count, -1)
    for node in range(count):
        if leader[node] < 0:
            leader[node] = node
            around = later[bounds[node] : bounds[node + 1]]
            leader[around[leader[around] < 0]] = node
    return leader


def choose_survivors(documents: Ids, clusters: Ids, order: Ids) -> NDArray[np.bool_]:
    """Which document is the best of its cluster. `documents` is sorted; `order` has them all, the best first."""
    rows = np.searchsorted(documents, order)
    _, first = np.unique(clusters[rows], return_index=True)
    chosen = np.zeros(len(documents), bool)
    chosen[rows[first]] = True
    return chosen


def find_stragglers(documents: Ids, clusters: Ids, edges: Ids) -> NDArray[np.bool_]:
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
