"""Clustering: group the documents that pairs and twins connect, and choose the survivor of each cluster.

All ids of documents and clusters are int64, and at least 1. A document that several functions return is the smallest of
its group, and identifies the group.
"""

from collections import defaultdict
from heapq import heapify, heappop, heappush

import numpy as np

from nearsim_db.similarity.arrays import Floats, Ints, Mask, are_fresh, places_of

NO_EDGES: Ints = np.zeros((0, 2), np.int64)

_EDGES_AT_ONCE = 1 << 20


def connected_components(edges: Ints) -> tuple[Ints, Ints]:
    """Return the documents of all edges, sorted, and for each the smallest document that it is connected with.

    `edges` is (m, 2). Edges are processed in slices, so the memory needed is that of the documents and one slice.
    """
    slices = [edges[at : at + _EDGES_AT_ONCE] for at in range(0, len(edges), _EDGES_AT_ONCE)]
    documents = np.unique(np.concatenate([np.zeros(0, np.int64), *map(np.unique, slices)]))
    labels = np.arange(len(documents))
    for part in slices:
        labels = _connect(labels, *np.searchsorted(documents, part.T))
    return documents, documents[labels]


def _connect(labels: Ints, left: Ints, right: Ints) -> Ints:
    """Return labels in which the two ends of every edge have the same label.

    This is the algorithm of Shiloach and Vishkin (1982) in steps over whole arrays: hook labels to the smaller label of
    each edge, then shorten chains of labels by pointer jumping, until nothing changes.
    """
    while True:
        is_open = labels[left] != labels[right]
        left, right = left[is_open], right[is_open]
        if not len(left):
            return labels
        hooked = labels.copy()
        np.minimum.at(hooked, labels[left], labels[right])
        np.minimum.at(hooked, labels[right], labels[left])
        while not np.array_equal(hooked, shorter := hooked[hooked]):
            hooked = shorter
        labels = hooked


def connect(labels: Ints, edges: Ints) -> None:
    """Connect documents, numbered from 0, by further edges, (m, 2), and update `labels` in place.

    `labels`, int64 of n, has for each document the smallest document of its component. Initially each document has its
    own number.
    """
    roots = labels[edges]
    documents, smallest = connected_components(roots[roots[:, 0] != roots[:, 1]])
    labels[documents] = smallest
    labels[:] = labels[labels]


def constrained_components(edges: Ints, vetoes: Ints) -> tuple[Ints, Ints]:
    """Return the documents of all edges, sorted, and for each the smallest document of its group.

    Edges are processed in their order, the strongest first. An edge unites two groups, unless a veto has one end in
    each of them; `vetoes` is (v, 2). Two groups that cannot be united at one edge cannot be united later. This is
    single linkage with cannot-link constraints (Davidson and Ravi 2005).
    """
    documents, ends = np.unique(edges, return_inverse=True)
    groups = _Groups(len(documents), np.searchsorted(documents, edges_within(vetoes, documents)))
    for left, right in ends.reshape(-1, 2).tolist():
        groups.unite(left, right)
    return documents, documents[[groups.first(row) for row in range(len(documents))]]


class _Groups:
    """Disjoint sets of the numbers 0 to count - 1. The smallest number of a set identifies it."""

    def __init__(self, count: int, vetoes: Ints) -> None:
        self._parents = list(range(count))
        self._vetoed: dict[int, set[int]] = defaultdict(set)
        for left, right in vetoes.tolist():
            self._vetoed[left].add(right)
            self._vetoed[right].add(left)

    def first(self, number: int) -> int:
        """Return the smallest number in the group of a number."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    def unite(self, left: int, right: int) -> bool:
        """Unite the groups of two numbers. Return False if they are the same group, or if a veto separates them."""
        first, later = sorted((self.first(left), self.first(right)))
        if first == later or later in self._vetoed.get(first, ()):
            return False
        self._parents[later] = first
        for vetoed in self._vetoed.pop(later, ()):
            self._vetoed[vetoed].discard(later)
            self._vetoed[vetoed].add(first)
            self._vetoed[first].add(vetoed)
        return True


def edges_within(edges: Ints, documents: Ints) -> Ints:
    """Return the edges whose ends are both in `documents`."""
    return edges[np.isin(edges, documents).all(axis=1)]


def find_vetoed_components(documents: Ints, smallest: Ints, vetoes: Ints) -> Ints:
    """Return the documents whose component contains both ends of a veto.

    `documents` and `smallest` are the results of `connected_components`.
    """
    ends = smallest[np.searchsorted(documents, edges_within(vetoes, documents))]
    return documents[np.isin(smallest, ends[ends[:, 0] == ends[:, 1], 0])]


def expand_twins(pairs: Ints, twins: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of heads and of their twins, and for each the row of `pairs` from which it derives.

    `twins` is (t, 2) of (head, twin), sorted. Only twins with a verdict are needed. Any other twin ends up in the group
    of its head in any case, because only a pin is stronger than the tie of a twin to its head.
    """
    rows = np.arange(len(pairs))
    for side in (0, 1):
        starts, ends = (np.searchsorted(twins[:, 0], pairs[:, side], where) for where in ("left", "right"))
        repeated = np.repeat(np.arange(len(pairs)), ends - starts)
        derived = pairs[repeated]
        derived[:, side] = twins[places_of(starts, ends - starts), 1]
        pairs, rows = np.concatenate((pairs, derived)), np.concatenate((rows, rows[repeated]))
    return pairs, rows


def binding_edges(pins: Ints, twins: Ints, judged: Ints) -> Ints:
    """Return the pins, then the ties of twins, each sorted. Twins that are not `judged` are tied only to their head."""
    judged_twins = twins[np.isin(twins[:, 1], judged)]
    ties = np.concatenate((twins, expand_twins(judged_twins, judged_twins)[0]))
    return np.concatenate((sort_edges(pins), sort_edges(ties)))


def sort_edges(edges: Ints, similarities: Floats | None = None) -> Ints:
    """Sort edges by similarity, the highest first, then by their documents."""
    edges = np.sort(edges)
    keys = [edges[:, 1], edges[:, 0]] + ([] if similarities is None else [-similarities])
    return edges[np.lexsort(keys)]


def star_clusters(
    pairs: Ints, similarities: Floats, bonds: Ints, order: Ints, vetoes: Ints = NO_EDGES
) -> tuple[Ints, Ints]:
    """Cluster documents around representatives: every member of a cluster is paired with its representative.

    Returns the documents of `order`, sorted, and for each the smallest document of its cluster.

    `pairs` is (m, 2), with m `similarities`. `bonds`, (t, 2), are ties of twins and pins; they merge documents into one
    node, which ranks like its best document. `order` has all documents of pairs and bonds, the best first.

    Nodes are taken in this order. A node that is paired with earlier representatives joins the most similar of them, or
    the best of several that are equally similar. Any other node becomes a representative. This is greedy star
    clustering or leader clustering (Hartigan 1975; Aslam, Pelekhov and Rus 2004), and the representatives are the
    lexicographically first maximal independent set. With vetoes, bonds are merged in their order as far as vetoes
    allow, and a node does not join a cluster that has a member with which it has a veto.
    """
    documents = np.sort(order)
    place = np.empty(len(order), np.int64)
    place[np.searchsorted(documents, order)] = np.arange(len(order))
    node = _nodes(documents, bonds, vetoes)
    best = place.copy()
    np.minimum.at(best, node, place)
    rank = best[node]
    vetoed = rank[np.searchsorted(documents, edges_within(vetoes, documents))]
    leader = _leaders(rank[np.searchsorted(documents, pairs)], similarities, vetoed, len(documents))[rank]
    smallest = np.full(len(documents), np.iinfo(np.int64).max)
    np.minimum.at(smallest, leader, documents)
    return documents, smallest[leader]


def _nodes(documents: Ints, bonds: Ints, vetoes: Ints) -> Ints:
    """Merge documents by bonds, unless vetoes prevent it. Return for each document the row of its node's first one."""
    merged, first = constrained_components(bonds, vetoes) if len(vetoes) else connected_components(bonds)
    node = np.arange(len(documents))
    node[np.searchsorted(documents, merged)] = np.searchsorted(documents, first)
    return node


def _leaders(edges: Ints, similarities: Floats, vetoes: Ints, count: int) -> Ints:
    """Return for each of the nodes 0 to count - 1, numbered by rank, the representative that it joins, or itself."""
    first, second = edges.min(axis=1), edges.max(axis=1)
    order = np.lexsort((first, -similarities, second))
    order = order[first[order] < second[order]]
    earlier = first[order].tolist()
    bounds = np.searchsorted(second[order], np.arange(count + 1)).tolist()

    vetoed: dict[int, set[int]] = defaultdict(set)
    for left, right in (*vetoes.tolist(), *vetoes[:, ::-1].tolist()):
        vetoed[left].add(right)
    leader = list(range(count))
    # The members of each cluster that have a veto.
    vetoed_members: dict[int, set[int]] = defaultdict(set)
    for node in range(count):
        vetoes_of_node = vetoed.get(node, set())
        for other in earlier[bounds[node] : bounds[node + 1]]:
            if leader[other] == other and vetoed_members[other].isdisjoint(vetoes_of_node):
                leader[node] = other
                break
        if vetoes_of_node:
            vetoed_members[leader[node]].add(node)
    return np.array(leader, np.int64)


_AVERAGE_TOLERANCE = 1e-12


def average_clusters(
    pairs: Ints, similarities: Floats, bonds: Ints, twins: Ints, min_average: float, vetoes: Ints = NO_EDGES
) -> tuple[Ints, Ints]:
    """Cluster documents by average linkage: UPGMA (Sokal and Michener 1958) on a sparse graph.

    Returns the documents of pairs and bonds, sorted, and for each the smallest document of its cluster.

    The two clusters whose texts are most similar on average are merged, as long as this average is at least
    `min_average`. If averages are equal, the clusters with the smallest documents are merged first. Two texts that are
    not a pair count as 0. `twins`, (t, 2) of (head, twin), are a single text. Bonds merge documents into one node, as
    in `star_clusters`. Two clusters with a veto between them are not merged.
    """
    documents = np.unique(np.concatenate((pairs, bonds)))
    node = _nodes(documents, bonds, vetoes)
    text = np.arange(len(documents))
    text[np.searchsorted(documents, twins[:, 1])] = np.searchsorted(documents, twins[:, 0])
    sizes = np.bincount(np.unique(np.stack((node, text), axis=1), axis=0)[:, 0], minlength=len(documents))

    # If several pairs connect the same text of one node with the same text of another node, only one of them counts.
    ends = np.searchsorted(documents, pairs)
    ends = np.take_along_axis(ends, np.argsort(node[ends], axis=1, kind="stable"), axis=1)
    _, distinct = np.unique(np.concatenate((node[ends], text[ends]), axis=1), axis=0, return_index=True)
    links, weights = node[ends[distinct]], similarities[distinct]

    groups = _Groups(len(documents), node[np.searchsorted(documents, edges_within(vetoes, documents))])
    _unite_by_average(groups, sizes.tolist(), links, weights, min_average)
    return documents, documents[[groups.first(row) for row in node.tolist()]]


def _unite_by_average(
    groups: "_Groups", sizes: list[int], links: Ints, weights: Floats, min_average: float
) -> None:
    """Unite groups of nodes by average linkage, in place.

    `sizes` has the number of texts of each node, and `weights` the similarities of `links`, (m, 2).
    """
    totals: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for (left, right), weight in zip(links.tolist(), weights.tolist(), strict=True):
        if left != right:
            totals[left][right] += weight
            totals[right][left] += weight

    def entry(left: int, right: int) -> tuple[float, int, int]:
        average = totals[left][right] / (sizes[left] * sizes[right])
        return -round(average, 12), min(left, right), max(left, right)

    queue = [entry(left, right) for left, others in totals.items() for right in others if left < right]
    heapify(queue)
    while queue and -queue[0][0] >= min_average - _AVERAGE_TOLERANCE:
        # If an average has changed since its entry was queued, the entry is outdated, and a newer one may be queued.
        best = heappop(queue)
        _, left, right = best
        if right not in totals[left] or best != entry(left, right) or not groups.unite(left, right):
            continue

        sizes[left] += sizes[right]
        for third, weight in totals.pop(right).items():
            del totals[third][right]
            if third != left:
                totals[left][third] += weight
                totals[third][left] = totals[left][third]

        # An average below the minimum is not queued. Only another merger can raise it, and that will queue it.
        for third in totals[left]:
            if -(changed := entry(left, third))[0] >= min_average - _AVERAGE_TOLERANCE:
                heappush(queue, changed)


def choose_survivors(documents: Ints, clusters: Ints, order: Ints) -> Mask:
    """Return for each document whether it is the best of its cluster: bool of n.

    `documents` is sorted. `order` has the same documents, the best first.
    """
    rows = np.searchsorted(documents, order)
    _, first = np.unique(clusters[rows], return_index=True)
    chosen = np.zeros(len(documents), bool)
    chosen[rows[first]] = True
    return chosen


def total_similarities(heads: Ints, clusters: Ints, pairs: Ints, similarities: Floats) -> Floats:
    """Return for each document the sum of its similarities with the documents of its cluster that it is paired with.

    `heads` and `clusters` have the head and the cluster of each document. `pairs` are (m, 2) of heads. Documents with
    the same head have the similarity 1.
    """
    distinct_heads, head_of = np.unique(heads, return_inverse=True)
    labels, cluster_of = np.unique(clusters, return_inverse=True)
    # Documents with the same head and cluster have the same total, so they are one node.
    nodes, node_of, sizes = np.unique(
        head_of * len(labels) + cluster_of, return_inverse=True, return_counts=True
    )
    totals = (sizes - 1).astype(np.float64)

    # A pair counts in each cluster that has documents of both heads.
    is_within = np.isin(pairs, distinct_heads).all(axis=1)
    left, right = np.searchsorted(distinct_heads, pairs[is_within]).T
    begins, ends = np.searchsorted(nodes, np.stack((left, left + 1)) * len(labels))
    rows = np.repeat(np.arange(len(left)), ends - begins)
    left_node = places_of(begins, ends - begins)
    sought = right[rows] * len(labels) + nodes[left_node] % len(labels)
    right_node = np.minimum(np.searchsorted(nodes, sought), len(nodes) - 1)
    are_together = nodes[right_node] == sought

    left_node, right_node = left_node[are_together], right_node[are_together]
    weights = similarities[is_within][rows[are_together]]
    np.add.at(totals, left_node, weights * sizes[right_node])
    np.add.at(totals, right_node, weights * sizes[left_node])
    rounded: Floats = np.round(totals, 12)
    return rounded[node_of]


def find_split_off(documents: Ints, clusters: Ints, edges: Ints) -> Mask:
    """Return for each document whether it is outside the largest connected part of its cluster: bool of n.

    `documents` is sorted, `clusters` has the cluster of each document, and `edges`, (m, 2), connect documents.
    """
    labels = documents.copy()
    connected, smallest = connected_components(edges)
    inside = np.isin(documents, connected, assume_unique=True)
    labels[inside] = smallest[np.searchsorted(connected, documents[inside])]
    order = np.lexsort((labels, clusters))
    part = np.empty(len(order), np.int64)
    part[order] = np.cumsum(are_fresh(clusters[order], labels[order])) - 1
    owners, cluster = np.unique(clusters, return_inverse=True)
    largest = np.zeros(len(owners), np.int64)
    by_size = np.argsort(np.bincount(part, minlength=1)[part], kind="stable")
    largest[cluster[by_size]] = part[by_size]
    split_off: Mask = part != largest[cluster]
    return split_off
