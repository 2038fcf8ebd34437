"""Cluster the records of files, and decide which records are removed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from nearsim_db.deduplication.comparison import Labels, Nodes, matches
from nearsim_db.deduplication.pairs import SortedPairs, Twins, find_pairs
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.records import Progress
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask
from nearsim_db.similarity.clustering import (
    average_clusters,
    choose_survivors,
    connect,
    star_clusters,
    total_similarities,
)
from nearsim_db.similarity.linked_pairs import FullBuckets


@dataclass(frozen=True, slots=True)
class Duplicates:
    """The pairs of records, and the records that are removed because of them."""

    twins: Twins
    nodes: Nodes
    pairs: SortedPairs
    in_review: SortedPairs  # pairs below the threshold, to be reviewed
    full: FullBuckets
    clusters: "Clusters"  # empty with --against
    # For each removed record the record that is kept instead: the survivor of its cluster or, with --against, a better
    # record that it is paired with. -1 for a record that is kept.
    match: Ints
    is_removed: Mask  # includes all records of a cluster from which no record is kept
    matched: int  # records that are removed because of records of --against
    rank: Ints  # place of each record in the order of the keep policy; empty without --against

    @property
    def pair_count(self) -> int:
        """The number of pairs of records, twins included."""
        return self.nodes.count(self.pairs.edges()) + self.nodes.count_within()

    @property
    def untouched_clusters(self) -> int:
        """The number of clusters from which no record is removed."""
        is_touched = self.is_removed[self.clusters.numbers]
        return len(self.clusters) - len(np.unique(self.clusters.cluster_ids[is_touched]))

    def ordered(self, left: int, right: int) -> tuple[int, int]:
        """Return two records in order: with --against the better record first, otherwise the record read first."""
        is_in_order = self.rank[left] < self.rank[right] if len(self.rank) else left < right
        return (left, right) if is_in_order else (right, left)

    def similarities(self, first: Ints, second: Ints) -> Floats:
        """Return the similarity of each record of `first` with its counterpart in `second`, nan if they are no pair.

        The similarity is nan also where `second` is -1.
        """
        left, right = np.sort(np.stack((self.twins.head_of[first], self.twins.head_of[second])), axis=0)
        similarities = np.where(left == right, 1.0, self.pairs.similarities(left, right))
        return np.where(second < 0, np.nan, similarities)


def _total_similarity(twins: Twins, pairs: SortedPairs) -> Floats:
    """Return for each record the sum of its similarities with the records that it is paired with."""
    sizes = twins.sizes()
    # Twins have a similarity of 1 with each other.
    total = np.maximum(sizes - 1, 0).astype(np.float64)
    for side, other in (("left", "right"), ("right", "left")):
        for rows in pairs.blocks():
            # Not +=, which would add once only for a record that occurs in several rows.
            np.add.at(total, rows[side], rows["similarity"] * sizes[rows[other]])
    return total[twins.head_of]


def find_duplicates(records: EncodedRecords, labels: Labels, progress: Progress) -> Duplicates:
    """Find the pairs that count, and the records that are removed because of them.

    All records of a cluster except its survivor are removed, or only those of `only_from`. With --against, a record is
    removed if it is paired with a record there, or with a better record of the input.
    """
    twins = Twins.of(records)
    if _compares_twins(records, labels):
        twins = twins.apart()
    records.discard_digests()
    heads = Nodes(labels, twins.head_of, records.field_labels)
    pairs, in_review, full = find_pairs(records, twins, heads, progress)

    progress("clusters", 0, len(records))
    if records.ranks.policy.is_central:
        records.ranks.rank_by(_total_similarity(twins, pairs))
    nodes, ties = alike(records, twins, heads, pairs)
    nothing = np.zeros(0, np.int64)
    if not labels.comparison.against:
        if labels.removable is not None:
            records.ranks.put_first(~labels.removable)
        clusters = cluster(records, nodes, ties)
        match, is_removed = clusters.survivors(len(records)), np.zeros(len(records), bool)
        is_removed[clusters.numbers[~clusters.survives]] = True
        if labels.removable is not None:
            is_removed &= labels.removable
            match[~is_removed] = -1
        return Duplicates(twins, heads, pairs, in_review, full, clusters, match, is_removed, 0, nothing)

    # Rank the records of --against first, so that none of them is removed.
    order = records.ranks.order(np.arange(labels.count))
    order = np.concatenate((order[order < labels.against], order[order >= labels.against]))
    rank = np.empty(labels.count, np.int64)
    rank[order] = np.arange(labels.count)

    match = matches(nodes, (edges for edges, _ in ties()), rank, only_against=True)
    # Count before records of the input are matched with each other.
    matched = int((match >= 0).sum())
    if not labels.comparison.only_against:
        match = matches(nodes, (edges for edges, _ in ties()), rank, only_against=False)
    clusters = Clusters(nothing, nothing, np.zeros(0, bool))
    return Duplicates(twins, heads, pairs, in_review, full, clusters, match, match >= 0, matched, rank)


def _compares_twins(records: EncodedRecords, labels: Labels) -> bool:
    """Whether records with the same features are compared with each other, instead of being grouped as twins.

    With `match.across`, two records with the same features are no pair if their values of the field are equal. That
    matters for linkages in which clusters depend on all pairs.
    """
    is_across = labels.values is not None and not labels.comparison.against
    encoder = records.encoder
    return is_across and encoder.has_sketches and encoder.profile.recipe.cluster.needs_all_ties


@dataclass(frozen=True, slots=True)
class Clusters:
    """The records that are in clusters, as parallel arrays."""

    numbers: Ints  # of the records, ascending
    cluster_ids: Ints  # the smallest number in the record's cluster
    survives: Mask

    def __len__(self) -> int:
        return len(np.unique(self.cluster_ids))

    def survivors(self, count: int) -> Ints:
        """Return for each of `count` records the survivor of its cluster; -1 if it survives itself, or if none does."""
        survivors, survivor_of_cluster = np.full(count, -1), np.full(count, -1)
        survivor_of_cluster[self.cluster_ids[self.survives]] = self.numbers[self.survives]
        is_removed = ~self.survives
        survivors[self.numbers[is_removed]] = survivor_of_cluster[self.cluster_ids[is_removed]]
        return survivors


# Yields blocks of ties: edges between nodes, (m, 2), and their similarities.
_Ties = Callable[[], Iterable[tuple[Ints, Floats]]]


def alike(records: EncodedRecords, twins: Twins, nodes: Nodes, pairs: SortedPairs) -> tuple[Nodes, _Ties]:
    """Return records grouped by equal features, and the ties between the groups.

    If the recipe separates texts whose numbers differ, the records of a group also have the same numbers.
    """
    if records.encoder.profile.recipe.cluster.numbers_differ == "link":
        return nodes, pairs.ties
    edges, similarities = _joined(pairs.ties)
    edges, derived, ties = _of_same_numbers(edges, twins, records.numbers)
    # Each record belongs to the node of the first record with the same features and numbers.
    node_of = np.where(twins.head_of >= 0, np.arange(len(records)), -1)
    node_of[ties[:, 1]] = ties[:, 0]
    return Nodes(nodes.labels, node_of, nodes.field_labels), lambda: [(edges, similarities[derived])]


def _joined(ties: _Ties) -> tuple[Ints, Floats]:
    # There may be no ties at all.
    blocks = [(np.zeros((0, 2), np.int64), np.zeros(0)), *ties()]
    edges, similarities = zip(*blocks, strict=True)
    return np.concatenate(edges), np.concatenate(similarities)


def cluster(records: EncodedRecords, nodes: Nodes, ties: _Ties) -> Clusters:
    """Cluster the nodes by their ties and the recipe's linkage, and choose the survivors.

    All ties are in memory if the linkage is representative or average, or if the keep policy is central.
    """
    profile, is_used = records.encoder.profile, np.zeros(len(records), bool)
    linkage, policy = profile.recipe.cluster.linkage, records.ranks.policy

    def counted() -> Iterator[tuple[Ints, Floats]]:
        for edges, similarities in ties():
            counts = nodes.counted(edges)
            is_used[edges[counts]] = True
            yield edges[counts], similarities[counts]

    # For each record, the smallest number in its cluster.
    labels = np.arange(len(records))
    if linkage == "connected":
        for edges, _ in counted():
            connect(labels, edges)
        # Only now has `counted` seen all edges, so `is_used` is complete.
        connect(labels, nodes.ties(is_used))
    else:
        edges, similarities = _joined(counted)
        bonds = nodes.ties(is_used)
        if linkage == "representative":
            order = records.ranks.order(np.unique(np.concatenate((edges, bonds))))
            numbers, labels[numbers] = star_clusters(edges, similarities, bonds, order)
        else:
            threshold = profile.similarity_at_threshold
            numbers, labels[numbers] = average_clusters(edges, similarities, bonds, bonds, threshold)

    # A cluster has at least two records.
    numbers = np.flatnonzero(np.bincount(labels, minlength=len(labels))[labels] > 1)
    cluster_ids = labels[numbers]
    if policy.is_central and linkage != "representative":
        totals = np.zeros(len(records))
        totals[numbers] = total_similarities(nodes.node_of[numbers], cluster_ids, *_joined(counted))
        records.ranks.rank_by(totals)
    survives = choose_survivors(numbers, cluster_ids, records.ranks.order(numbers))
    return Clusters(numbers, cluster_ids, survives & (not policy.keeps_none))


def _of_same_numbers(edges: Ints, twins: Twins, digests: Hashes) -> tuple[Ints, Ints, Ints]:
    """Return the ties between records whose texts have equal numbers.

    The twins of a head are grouped by the digest of their numbers, and the first twin represents its group. Returns
    the ties between representatives of different heads, (m, 2); the rows of `edges` that these derive from, (m,); and
    the ties between each representative and the other twins of its group, (n, 2).
    """
    firsts: dict[int, dict[int, int]] = {}  # by head and by digest of the numbers
    tied = []
    for number in np.flatnonzero(twins.head_of >= 0).tolist():
        of_head = firsts.setdefault(int(twins.head_of[number]), {})
        first = of_head.setdefault(int(digests[number]), number)
        if first != number:
            tied.append((first, number))

    pairs = [
        (first, firsts[right][digest], row)
        for row, (left, right) in enumerate(edges.tolist())
        for digest, first in firsts[left].items()
        if digest in firsts[right]
    ]
    derived = np.array(pairs, np.int64).reshape(-1, 3)
    return derived[:, :2], derived[:, 2], np.array(tied, np.int64).reshape(-1, 2)
