"""Ties between the documents of a generation (pairs, twins and pins), and the clusters that they form."""

import numpy as np

from nearsim_db.indexing.context import Context
from nearsim_db.similarity.arrays import Floats, Ints
from nearsim_db.similarity.clustering import (
    NO_EDGES,
    average_clusters,
    binding_edges,
    choose_survivors,
    connected_components,
    constrained_components,
    expand_twins,
    find_vetoed_components,
    sort_edges,
    star_clusters,
    total_similarities,
)
from nearsim_db.similarity.recipe import ClusterRules
from nearsim_db.store.clusters.clusters import NO_MEMBERS, NO_TIES, Members, Ties
from nearsim_db.store.driver import Connection

NO_SCORES: Floats = np.zeros(0)


class GenerationTies:
    """The ties of one generation, read in one transaction.

    A pin ties two documents however similar they are. Vetoed documents are never in one cluster: if ties connect them,
    the weakest tie is dropped. Vetoes are read only if the collection ever had one.
    """

    def __init__(self, connection: Connection, context: Context) -> None:
        self._profile = context.encoder.profile
        self.rules: ClusterRules = self._profile.recipe.cluster
        self._clusters = context.tables(connection).clusters
        self._collection_id = context.generation.collection_id
        self._has_vetoes = self._clusters.has_veto(self._collection_id)

    @property
    def same_numbers(self) -> bool:
        """Whether the recipe keeps texts with different numbers in different clusters."""
        return self.rules.numbers_differ == "keep-apart"

    def all(self) -> Ties:
        """Return all ties of the generation, or a few edges that connect the same documents if these suffice."""
        read = self._clusters.stream_ties(self._collection_id, same_numbers=self.same_numbers)
        if self.rules.needs_all_ties or self._has_vetoes:
            return Ties.joined([NO_TIES, *read])
        forest = NO_EDGES
        for ties in read:
            forest = np.stack(connected_components(np.concatenate((forest, ties.edges))), axis=1)
        return Ties(forest, NO_EDGES, NO_EDGES)

    def of(self, doc_ids: Ints) -> Ties:
        """Return the ties of these documents."""
        return self._clusters.read_ties_of(self._collection_id, doc_ids, same_numbers=self.same_numbers)

    def around(self, doc_ids: Ints) -> tuple[Ties, Members]:
        """Return the ties and stored clusters of all documents that ties or clusters connect with these."""
        seen = frontier = doc_ids
        ties, stored = NO_TIES, NO_MEMBERS
        while len(frontier):
            reached = self.of(frontier)
            members = self._clusters.read_clusters_of(np.setdiff1d(frontier, stored.doc_ids))
            ties, stored = Ties.joined([ties, reached]), stored.merged(members)
            frontier = np.setdiff1d(np.union1d(reached.edges, members.doc_ids), seen)
            seen = np.union1d(seen, frontier)
        return ties, stored

    def near_vetoes(self, edges: Ints, members: Members) -> Ints:
        """Return the ends of edges and the members of clusters that are connected with a vetoed document.

        Every other cluster contains all documents that its members are tied to: a tie leads out of a cluster only where
        a veto divides them. Vetoes that were undone count as well, because the change may not be dispatched yet.
        """
        if not self._has_vetoes:
            return np.zeros(0, np.int64)
        ends, cluster_ids = np.unique(edges), np.unique(members.cluster_ids)
        vetoed = self._clusters.find_vetoed(self._collection_id, ends, cluster_ids)
        documents, smallest = connected_components(np.concatenate((edges, members.edges)))
        return documents[np.isin(smallest, smallest[np.searchsorted(documents, vetoed)])]

    def clusters(self, ties: Ties) -> Members:
        """Return the clusters that ties form under the recipe's linkage, with their survivors."""
        vetoes = self._clusters.read_vetoes(self._collection_id) if self._has_vetoes else NO_EDGES
        if self.rules.linkage == "connected":
            documents, cluster_ids = self._connected(ties, vetoes)
        else:
            documents, cluster_ids = self._by_similarity(ties, vetoes)

        # A single document is not a cluster.
        _, cluster, sizes = np.unique(cluster_ids, return_inverse=True, return_counts=True)
        is_shared = sizes[cluster] > 1
        documents, cluster_ids = documents[is_shared], cluster_ids[is_shared]

        is_central = self.rules.policy.is_central
        scores = self._total_similarities(ties, documents, cluster_ids) if is_central else NO_SCORES
        return self.with_survivors(documents, cluster_ids, scores)

    def with_survivors(self, doc_ids: Ints, cluster_ids: Ints, scores: Floats = NO_SCORES) -> Members:
        """Return the members of clusters, sorted by doc_id; the keep policy chooses the survivor of each cluster.

        If the policy keeps none, only documents that a person chose survive.
        """
        ranked = self._rank(doc_ids, scores)
        survives = choose_survivors(doc_ids, cluster_ids, ranked)
        if self.rules.policy.keeps_none:
            survives &= np.isin(doc_ids, self._clusters.read_chosen(doc_ids))
        return Members(doc_ids, cluster_ids, survives)

    def _connected(self, ties: Ties, vetoes: Ints) -> tuple[Ints, Ints]:
        """Cluster by connected components.

        A component that contains both ends of a veto is built again, tie by tie, the strongest ties first.
        """
        documents, smallest = connected_components(ties.edges)
        conflicting = find_vetoed_components(documents, smallest, vetoes)
        if len(conflicting):
            affected = ties.among(conflicting)
            judged = np.union1d(affected.pins, vetoes)
            similarities = self._clusters.read_similarities(affected.pairs)
            pairs, rows = expand_twins(affected.pairs, _judged_twins(affected, judged))
            edges = np.concatenate(
                (binding_edges(affected.pins, affected.twins, judged), sort_edges(pairs, similarities[rows]))
            )
            smallest[np.searchsorted(documents, conflicting)] = constrained_components(edges, vetoes)[1]
        return documents, smallest

    def _by_similarity(self, ties: Ties, vetoes: Ints) -> tuple[Ints, Ints]:
        """Cluster by representatives or averages; pinned documents count as one node, as twins do."""
        ties = ties.among(np.unique(ties.edges))
        pairs, bonds = ties.pairs, np.concatenate((ties.pins, ties.twins))
        similarities = self._clusters.read_similarities(pairs)

        # A verdict applies to one document, not to its twins: twins with a verdict get pairs of their own.
        if len(vetoes):
            judged = np.union1d(ties.pins, vetoes)
            pairs, rows = expand_twins(pairs, _judged_twins(ties, judged))
            similarities, bonds = similarities[rows], binding_edges(ties.pins, ties.twins, judged)

        if self.rules.linkage == "average":
            threshold = self._profile.similarity_at_threshold
            return average_clusters(pairs, similarities, bonds, ties.twins, threshold, vetoes)
        return star_clusters(pairs, similarities, bonds, self._rank(np.unique(ties.edges)), vetoes)

    def _total_similarities(self, ties: Ties, documents: Ints, cluster_ids: Ints) -> Floats:
        """Return for each document the sum of the similarities of its pairs with members of its own cluster."""
        ties = ties.among(np.unique(ties.edges))
        # Only heads have stored pairs, so replace each twin by its head.
        heads, twins = documents.copy(), ties.twins[np.isin(ties.twins[:, 1], documents)]
        heads[np.searchsorted(documents, twins[:, 1])] = twins[:, 0]
        similarities = self._clusters.read_similarities(ties.pairs)
        return total_similarities(heads, cluster_ids, ties.pairs, similarities)

    def _rank(self, doc_ids: Ints, scores: Floats = NO_SCORES) -> Ints:
        return self._clusters.rank_documents(doc_ids, self.rules.policy, scores)


def _judged_twins(ties: Ties, judged: Ints) -> Ints:
    return ties.twins[np.isin(ties.twins[:, 1], judged)]
