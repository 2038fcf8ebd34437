"""The step "link": from pairs to clusters, by a rebuild of all, by added pairs, or around documents that changed.

A tie is whatever puts two documents into one cluster: a pair, equal features (twins), or a pin. After each operation
both ends of a tie are in one cluster, with two exceptions: a veto divides them, or one of them is queued for "link" (or
will be queued when the change of a verdict is dispatched). When a tie is lost, one of its ends is queued. So once the
queue is empty, the clusters equal the result of a rebuild. If a document was ever vetoed, the stored clusters near it
are not relied on: everything connected with it is clustered again.
"""

from collections.abc import Sequence

import numpy as np

from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps.ties import GenerationTies
from nearsim_db.similarity.arrays import Ints
from nearsim_db.similarity.clustering import NO_EDGES, connected_components, find_split_off
from nearsim_db.store.clusters.clusters import Members, Ties
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.locks import Lock, take_transaction_lock

_FIRST_BATCH_DOCUMENTS = 64
# The longest time between two statements of a rebuild with tens of millions of members, and of an update.
_MAX_REBUILD_IDLE_MINUTES = 60
_MAX_UPDATE_IDLE_MINUTES = 5


def rebuild_clusters(connection: Connection, context: Context) -> None:
    """Recompute the generation's clusters from its pairs, twins and verdicts."""
    take_transaction_lock(
        connection, Lock.LINK, context.generation.generation_id, idle_minutes=_MAX_REBUILD_IDLE_MINUTES
    )
    clusters, ties = context.tables(connection).clusters, GenerationTies(connection, context)
    stored = clusters.read_members()
    clusters.replace_members(stored, ties.clusters(ties.all()))


def lock_clusters(connection: Connection, context: Context) -> None:
    """Lock the clusters before storing pairs that extend them, so that no other session stores the same pairs."""
    if _are_extended(context):
        take_transaction_lock(connection, Lock.LINK, context.generation.generation_id)


def _are_extended(context: Context) -> bool:
    rules = context.encoder.profile.recipe.cluster
    return not rules.needs_all_ties and rules.numbers_differ == "link"


def extend_clusters(connection: Connection, context: Context, edges: Ints) -> None:
    """Extend the locked clusters by pairs of heads that this transaction stored: (m, 2) int64.

    If a new pair may split a cluster, or tie only some of the twins of its heads, the ends of the pair are queued for
    link instead.
    """
    if not len(edges):
        return
    remaining = np.unique(edges)
    if _are_extended(context):
        remaining = _ClusterUpdate(connection, context).add(edges)
    context.tables(connection).work.add("link", remaining)


def update_clusters(connection: Connection, context: Context, doc_ids: Sequence[int]) -> None:
    """Update the clusters around documents that lost a tie, became twins, got a verdict, or may rank differently."""
    take_transaction_lock(
        connection, Lock.LINK, context.generation.generation_id, idle_minutes=_MAX_UPDATE_IDLE_MINUTES
    )
    clusters, update = context.tables(connection).clusters, _ClusterUpdate(connection, context)
    changed = np.unique(np.array(doc_ids, np.int64))
    if update.ties.same_numbers:
        changed = np.union1d(changed, clusters.read_first_twins(changed))
    if update.ties.rules.needs_all_ties:
        update.recompute_around(changed)
        return

    # Documents in clusters may have to leave them; documents in no cluster can only join one.
    clustered = clusters.read_members_of(changed).doc_ids
    near_vetoes = update.recompute(clustered)
    joining = update.ties.of(np.setdiff1d(changed, clustered)).edges
    near_vetoes = np.union1d(near_vetoes, update.add(joining))
    if len(near_vetoes):
        update.recompute_around(near_vetoes)


class _ClusterUpdate:
    """Changes the clusters of a generation in one transaction."""

    def __init__(self, connection: Connection, context: Context) -> None:
        self.ties = GenerationTies(connection, context)
        self._clusters = context.tables(connection).clusters

    def add(self, edges: Ints) -> Ints:
        """Merge the clusters that edges connect, and add the ends of edges that were in no cluster, with their twins.

        Returns the ends that were left as they are because vetoes are near them.
        """
        if not len(edges):
            return np.unique(edges)

        # A document that was in no cluster brings its other ties, such as the ties to its twins.
        members, loose = self._ends(edges)
        if len(loose):
            edges = np.concatenate((edges, self.ties.of(loose).edges))
            members, loose = self._ends(edges)

        near_vetoes = self.ties.near_vetoes(edges, members)
        unchanged = np.intersect1d(edges, near_vetoes)
        edges = edges[~np.isin(edges[:, 0], near_vetoes)]
        if len(edges):
            members = members.take(~np.isin(members.doc_ids, near_vetoes))
            self._merge(edges, members, np.setdiff1d(loose, near_vetoes))
        return unchanged

    def _ends(self, edges: Ints) -> tuple[Members, Ints]:
        """Return the ends of edges that are members of clusters, and the doc_ids of the ends that are in no cluster."""
        ends = np.unique(edges)
        members = self._clusters.read_members_of(ends)
        return members, np.setdiff1d(ends, members.doc_ids)

    def _merge(self, edges: Ints, members: Members, loose: Ints) -> None:
        """Merge the clusters that edges connect, and add the `loose` documents, which are in no cluster yet."""
        # A cluster's number is its smallest doc_id.
        documents, smallest = connected_components(np.concatenate((edges, members.edges)))
        before = np.unique(members.cluster_ids)
        after = smallest[np.searchsorted(documents, before)]
        is_relabelled = before != after
        self._clusters.relabel(before[is_relabelled], after[is_relabelled])

        # The survivor of a merged cluster is a survivor of one of its parts, or a new member.
        joined = smallest[np.searchsorted(documents, loose)]
        grown = np.unique(np.concatenate((after[is_relabelled], joined)))
        stored = self._clusters.read_survivors(grown)
        survivor_candidates = np.concatenate((stored.doc_ids, loose))
        cluster_ids = np.concatenate((stored.cluster_ids, joined))
        order = np.argsort(survivor_candidates)
        chosen = self.ties.with_survivors(survivor_candidates[order], cluster_ids[order])
        self._clusters.replace_members(stored, chosen)

    def recompute(self, doc_ids: Ints) -> Ints:
        """Recompute the clusters of clustered documents, and of all documents that are tied to them.

        Returns the documents that were left as they are because vetoes are near them.
        """
        if not len(doc_ids):
            return doc_ids

        ties = self.ties.of(doc_ids)
        reached = np.union1d(doc_ids, ties.edges)
        stored = self._clusters.read_clusters_of(reached)
        unchanged = np.intersect1d(doc_ids, self.ties.near_vetoes(ties.edges, stored))
        if len(unchanged):
            self.recompute(np.setdiff1d(doc_ids, unchanged))
            return unchanged

        edges = self._spanning_edges(stored, doc_ids, ties.edges)
        self._clusters.replace_members(stored, self.ties.clusters(Ties(edges, NO_EDGES, NO_EDGES)))
        return unchanged

    def _spanning_edges(self, stored: Members, seen: Ints, edges: Ints) -> Ints:
        """Return edges that connect the members `stored` and the ends of `edges` just as all ties among them do.

        `edges` are all edges of the documents in `seen`. Ties are read for documents in no cluster and for the first
        document of each cluster. After that they are read only for documents outside the largest connected part of
        their cluster, which suffices because ties are symmetric. So a cluster that stays connected without the removed
        documents is never read whole.
        """
        inside = np.union1d(stored.doc_ids, edges)
        unseen = stored.take(~np.isin(stored.doc_ids, seen))
        firsts = unseen.doc_ids[np.unique(unseen.cluster_ids, return_index=True)[1]]
        batch = np.setdiff1d(np.union1d(np.setdiff1d(inside, stored.doc_ids), firsts), seen)
        batch_documents = _FIRST_BATCH_DOCUMENTS
        while len(batch):
            ends = self.ties.of(batch).edges
            ends = ends[np.isin(ends, inside).all(axis=1)]
            # Replace the edges by a forest with the same components, which keeps the array small.
            edges = np.stack(connected_components(np.concatenate((edges, ends))), axis=1)
            seen = np.union1d(seen, batch)

            split_off = stored.doc_ids[find_split_off(stored.doc_ids, stored.cluster_ids, edges)]
            batch = np.setdiff1d(split_off, seen)[:batch_documents]
            batch_documents *= 4
        return edges

    def recompute_around(self, doc_ids: Ints) -> None:
        """Recompute the clusters of all documents that ties or stored clusters connect with these."""
        ties, stored = self.ties.around(doc_ids)
        self._clusters.replace_members(stored, self.ties.clusters(ties))
