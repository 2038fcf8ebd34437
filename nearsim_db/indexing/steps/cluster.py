"""link, join, relink: from pairs to clusters, all anew, by adding to them, or around documents that changed.

After each of them every tie has both ends in one cluster unless one of them is queued for `link` (or will be, when a
verdict's change is dispatched) or a veto lies across it; and each tie that was lost has an end queued. So clusters are
those of a whole `link` as soon as that queue is empty. Near a document that was ever vetoed nothing is concluded from
clusters as they are stored: all that is connected with it is linked anew.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps.ties import Tying
from nearsim_db.similarity.clustering import connected_components, find_split_off
from nearsim_db.store import clusters
from nearsim_db.store.clusters import NO_EDGES, Members, Ties
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.locks import Lock, hold_lock
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import queue

Ids = NDArray[np.int64]

_DOCUMENTS_AT_FIRST = 64


def rebuild_clusters(connection: Connection, context: Context) -> None:
    """Recompute the generation's clusters from its pairs, twins and verdicts."""
    hold_lock(connection, Lock.LINK, context.generation.generation_id)
    tying = Tying(connection, context)
    stored = clusters.read_members(connection, context.leaves)
    clusters.replace_members(connection, context.leaves, stored, tying.clusters(tying.all()))


def extend_clusters(connection: Connection, context: Context, edges: Ids) -> None:
    """Take pairs that this transaction has stored into the clusters: (m, 2) int64 of heads.

    Where a new pair may part what was together, or tie twins of its heads only, its ends are queued instead.
    """
    if not len(edges):
        return
    rules = context.encoder.profile.recipe.cluster
    left = np.unique(edges)
    if rules.linkage == "connected" and rules.numbers_differ == "link":
        hold_lock(connection, Lock.LINK, context.generation.generation_id)
        left = _Linking(connection, context).add(edges)
    queue.queue_work(connection, context.leaves, "link", left)


def update_clusters(connection: Connection, context: Context, doc_ids: Sequence[int]) -> None:
    """Put clusters right around documents that lost something, became twins, were judged, or may rank otherwise."""
    hold_lock(connection, Lock.LINK, context.generation.generation_id)
    linking = _Linking(connection, context)
    asked = np.unique(np.array(doc_ids, np.int64))
    if linking.tying.same_numbers:
        asked = np.union1d(asked, clusters.read_family_firsts(connection, context.leaves, asked))
    if linking.tying.rules.linkage == "representative":
        linking.recompute_around(asked)
        return
    known = clusters.read_members_of(connection, context.leaves, asked).doc_ids
    left = linking.recompute(known)
    left = np.union1d(left, linking.add(linking.tying.of(np.setdiff1d(asked, known)).edges))
    if len(left):
        linking.recompute_around(left)


class _Linking:
    """The ways to change the clusters of a generation in one transaction."""

    def __init__(self, connection: Connection, context: Context) -> None:
        self.tying = Tying(connection, context)
        self._connection = connection
        self._leaves: Leaves = context.leaves

    def add(self, edges: Ids) -> Ids:
        """Unite the clusters at the ends of edges, and take in the documents that were in none, with their twins.

        Returns the ends that were left as they were because vetoes are near them.
        """
        if not len(edges):
            return np.unique(edges)
        known, fresh = self._ends(edges)
        if len(fresh):
            edges = np.concatenate((edges, self.tying.of(fresh).edges))
            known, fresh = self._ends(edges)
        left = self.tying.near_vetoes(edges, known)
        ends = np.intersect1d(edges, left)
        edges = edges[~np.isin(edges[:, 0], left)]
        if len(edges):
            known = known.take(~np.isin(known.doc_ids, left))
            self._unite(edges, known, np.setdiff1d(fresh, left))
        return ends

    def _ends(self, edges: Ids) -> tuple[Members, Ids]:
        """The ends of edges that are in clusters, and the others."""
        ends = np.unique(edges)
        known = clusters.read_members_of(self._connection, self._leaves, ends)
        return known, np.setdiff1d(ends, known.doc_ids)

    def _unite(self, edges: Ids, known: Members, fresh: Ids) -> None:
        # A cluster's smallest document stands for all of it.
        documents, smallest = connected_components(np.concatenate((edges, known.edges)))
        before = np.unique(known.cluster_ids)
        after = smallest[np.searchsorted(documents, before)]
        moved = before != after
        clusters.relabel_clusters(self._connection, self._leaves, before[moved], after[moved])
        joined = smallest[np.searchsorted(documents, fresh)]
        grown = np.unique(np.concatenate((after[moved], joined)))
        stored = clusters.read_survivors(self._connection, self._leaves, grown)
        rivals = np.concatenate((stored.doc_ids, fresh))
        order = np.argsort(rivals)
        now = self.tying.with_survivors(rivals[order], np.concatenate((stored.cluster_ids, joined))[order])
        clusters.replace_members(self._connection, self._leaves, stored, now)

    def recompute(self, doc_ids: Ids) -> Ids:
        """The clusters of some documents that are in one, and of those they are tied to, anew.

        Returns those of the documents that were left as they were because vetoes are near them.
        """
        if not len(doc_ids):
            return doc_ids
        ties = self.tying.of(doc_ids)
        reached = np.union1d(doc_ids, ties.edges)
        stored = clusters.read_clusters_of(self._connection, self._leaves, reached)
        left = np.intersect1d(doc_ids, self.tying.near_vetoes(ties.edges, stored))
        if len(left):
            self.recompute(np.setdiff1d(doc_ids, left))
            return left
        edges = self._spanning(stored, doc_ids, ties.edges)
        now = self.tying.clusters(Ties(edges, NO_EDGES, NO_EDGES))
        clusters.replace_members(self._connection, self._leaves, stored, now)
        return left

    def _spanning(self, stored: Members, seen: Ids, edges: Ids) -> Ids:
        """Edges that connect what is connected among `stored` and the ends of `edges`, which are all those of `seen`.

        Asked for their ties are documents in no cluster, the first of each cluster, and then only documents outside the
        largest known part of theirs: what they are not tied to is not tied to them either. So a cluster that holds
        together without the documents that went is never read whole.
        """
        inside = np.union1d(stored.doc_ids, edges)
        left = stored.take(~np.isin(stored.doc_ids, seen))
        firsts = left.doc_ids[np.unique(left.cluster_ids, return_index=True)[1]]
        asked = np.setdiff1d(np.union1d(np.setdiff1d(inside, stored.doc_ids), firsts), seen)
        amount = _DOCUMENTS_AT_FIRST
        while len(asked):
            found = self.tying.of(asked).edges
            found = found[np.isin(found, inside).all(axis=1)]
            edges = np.stack(connected_components(np.concatenate((edges, found))), axis=1)
            seen = np.union1d(seen, asked)
            apart = stored.doc_ids[find_split_off(stored.doc_ids, stored.cluster_ids, edges)]
            asked = np.setdiff1d(apart, seen)[:amount]
            amount *= 4
        return edges

    def recompute_around(self, doc_ids: Ids) -> None:
        """All that some documents are connected with, by ties or by the clusters as they are stored, anew."""
        ties, stored = self.tying.around(doc_ids)
        clusters.replace_members(self._connection, self._leaves, stored, self.tying.clusters(ties))
