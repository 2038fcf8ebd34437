"""cluster: from pairs to clusters, by rebuilding all, by adding pairs, or around documents that changed.

Invariant after each: both ends of a tie are in one cluster unless one of them is queued for `link` (or will be, when a
verdict's change is dispatched) or a veto divides them; and each lost tie has an end queued. So once that queue is empty
the clusters equal those of a rebuild. Near a document that was ever vetoed nothing is inferred from stored clusters:
everything connected with it is clustered again.
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

_FIRST_BATCH = 64
_REBUILD_MINUTES = 60  # between two statements, of a rebuild with tens of millions of members


def rebuild_clusters(connection: Connection, context: Context) -> None:
    """Recompute the generation's clusters from its pairs, twins and verdicts."""
    take_transaction_lock(
        connection, Lock.LINK, context.generation.generation_id, idle_minutes=_REBUILD_MINUTES
    )
    clusters, ties = context.tables(connection).clusters, GenerationTies(connection, context)
    stored = clusters.read_members()
    clusters.replace_members(stored, ties.clusters(ties.all()))


def lock_clusters(connection: Connection, context: Context) -> None:
    """Lock the clusters before pairs are stored that extend them, so that no other session stores the same pairs."""
    if _are_extended(context):
        take_transaction_lock(connection, Lock.LINK, context.generation.generation_id)


def _are_extended(context: Context) -> bool:
    rules = context.encoder.profile.recipe.cluster
    return not rules.needs_all_ties and rules.numbers_differ == "link"


def extend_clusters(connection: Connection, context: Context, edges: Ints) -> None:
    """Extend the locked clusters by pairs that this transaction stored: (m, 2) int64 of heads.

    If a new pair may split a cluster, or tie only some twins of its heads, its ends are queued for link instead.
    """
    if not len(edges):
        return
    remaining = np.unique(edges)
    if _are_extended(context):
        remaining = _ClusterUpdate(connection, context).add(edges)
    context.tables(connection).work.add("link", remaining)


def update_clusters(connection: Connection, context: Context, doc_ids: Sequence[int]) -> None:
    """Update the clusters around documents that lost a tie, became twins, got a verdict, or may rank differently."""
    take_transaction_lock(connection, Lock.LINK, context.generation.generation_id, idle_minutes=5)
    clusters, update = context.tables(connection).clusters, _ClusterUpdate(connection, context)
    changed = np.unique(np.array(doc_ids, np.int64))
    if update.ties.same_numbers:
        changed = np.union1d(changed, clusters.read_first_twins(changed))
    if update.ties.rules.needs_all_ties:
        update.recompute_around(changed)
        return
    known = clusters.read_members_of(changed).doc_ids
    remaining = update.recompute(known)
    remaining = np.union1d(remaining, update.add(update.ties.of(np.setdiff1d(changed, known)).edges))
    if len(remaining):
        update.recompute_around(remaining)


class _ClusterUpdate:
    """Changes the clusters of a generation in one transaction."""

    def __init__(self, connection: Connection, context: Context) -> None:
        self.ties = GenerationTies(connection, context)
        self._clusters = context.tables(connection).clusters

    def add(self, edges: Ints) -> Ints:
        """Merge the clusters at the ends of edges, and add the ends that were in none, with their twins.

        Returns the ends that were not changed because vetoes are near them.
        """
        if not len(edges):
            return np.unique(edges)
        known, fresh = self._ends(edges)
        if len(fresh):
            edges = np.concatenate((edges, self.ties.of(fresh).edges))
            known, fresh = self._ends(edges)
        vetoed = self.ties.near_vetoes(edges, known)
        unchanged = np.intersect1d(edges, vetoed)
        edges = edges[~np.isin(edges[:, 0], vetoed)]
        if len(edges):
            known = known.take(~np.isin(known.doc_ids, vetoed))
            self._merge(edges, known, np.setdiff1d(fresh, vetoed))
        return unchanged

    def _ends(self, edges: Ints) -> tuple[Members, Ints]:
        """Return the ends of edges that are in clusters, and those that are in none."""
        ends = np.unique(edges)
        known = self._clusters.read_members_of(ends)
        return known, np.setdiff1d(ends, known.doc_ids)

    def _merge(self, edges: Ints, known: Members, fresh: Ints) -> None:
        # A cluster is represented by its smallest document.
        documents, smallest = connected_components(np.concatenate((edges, known.edges)))
        before = np.unique(known.cluster_ids)
        after = smallest[np.searchsorted(documents, before)]
        relabelled = before != after
        self._clusters.relabel(before[relabelled], after[relabelled])
        joined = smallest[np.searchsorted(documents, fresh)]
        grown = np.unique(np.concatenate((after[relabelled], joined)))
        stored = self._clusters.read_survivors(grown)
        survivor_candidates = np.concatenate((stored.doc_ids, fresh))
        order = np.argsort(survivor_candidates)
        now = self.ties.with_survivors(
            survivor_candidates[order], np.concatenate((stored.cluster_ids, joined))[order]
        )
        self._clusters.replace_members(stored, now)

    def recompute(self, doc_ids: Ints) -> Ints:
        """Recompute the clusters of documents that are in one, and of those they are tied to.

        Returns the documents that were not changed because vetoes are near them.
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
        now = self.ties.clusters(Ties(edges, NO_EDGES, NO_EDGES))
        self._clusters.replace_members(stored, now)
        return unchanged

    def _spanning_edges(self, stored: Members, seen: Ints, edges: Ints) -> Ints:
        """Return edges that connect what is connected among `stored` and the ends of `edges`, all edges of `seen`.

        Ties are read of documents in no cluster, of the first of each cluster, and then only of documents outside the
        largest known part of their cluster, as ties are symmetric. So a cluster that stays connected without the
        removed documents is never read whole.
        """
        inside = np.union1d(stored.doc_ids, edges)
        unseen = stored.take(~np.isin(stored.doc_ids, seen))
        firsts = unseen.doc_ids[np.unique(unseen.cluster_ids, return_index=True)[1]]
        batch = np.setdiff1d(np.union1d(np.setdiff1d(inside, stored.doc_ids), firsts), seen)
        amount = _FIRST_BATCH
        while len(batch):
            found = self.ties.of(batch).edges
            found = found[np.isin(found, inside).all(axis=1)]
            edges = np.stack(connected_components(np.concatenate((edges, found))), axis=1)
            seen = np.union1d(seen, batch)
            split_off = stored.doc_ids[find_split_off(stored.doc_ids, stored.cluster_ids, edges)]
            batch = np.setdiff1d(split_off, seen)[:amount]
            amount *= 4
        return edges

    def recompute_around(self, doc_ids: Ints) -> None:
        """Recompute the clusters of everything that documents are connected with, by ties or by stored clusters."""
        ties, stored = self.ties.around(doc_ids)
        self._clusters.replace_members(stored, self.ties.clusters(ties))
