"""link, join, relink: from pairs to clusters, all anew, by adding to them, or around documents that changed.

After each of them every tie has both ends in one cluster unless one of them is queued for `link`, and each tie that
was lost has an end queued; so clusters are those of a whole `link` as soon as that queue is empty.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.cluster import choose_survivors, connected_components, find_stragglers, star_clusters
from nearsim_db.recipe import ClusterRules, keep_policy
from nearsim_db.steps.context import Context
from nearsim_db.store import clusters, queue
from nearsim_db.store.clusters import NO_MEMBERS, NO_TIES, Members, Ties
from nearsim_db.store.locks import Lock, hold_lock

Ids = NDArray[np.int64]

_DOCUMENTS_AT_FIRST = 64


def link(connection: Connection, context: Context) -> None:
    """Recompute the generation's clusters from its pairs and twins."""
    hold_lock(connection, Lock.LINK, context.generation.generation_id)
    ties = clusters.read_ties(connection, context.leaves, same_numbers=_same_numbers(context))
    stored = clusters.read_members(connection, context.leaves)
    clusters.replace_members(connection, context.leaves, stored, _cluster(connection, context, ties))


def join(connection: Connection, context: Context, edges: Ids) -> None:
    """Take pairs that this transaction has stored into the clusters: (m, 2) int64 of heads.

    Where a new pair may part what was together, or tie twins of its heads only, its ends are queued instead.
    """
    if not len(edges):
        return
    rules = _rules(context)
    if rules.linkage == "connected" and rules.numbers_differ == "link":
        hold_lock(connection, Lock.LINK, context.generation.generation_id)
        _add(connection, context, edges)
    else:
        queue.queue_work(connection, context.leaves, "link", np.unique(edges).tolist())


def relink(connection: Connection, context: Context, doc_ids: Sequence[int]) -> None:
    """Put clusters right around documents that lost something, became twins or may rank otherwise than before."""
    hold_lock(connection, Lock.LINK, context.generation.generation_id)
    asked = np.unique(np.array(doc_ids, np.int64))
    if _same_numbers(context):
        asked = np.union1d(asked, clusters.read_family_firsts(connection, context.leaves, asked))
    if _rules(context).linkage == "representative":
        _recompute_around(connection, context, asked)
        return
    known = clusters.read_members_of(connection, context.leaves, asked).doc_ids
    if len(known):
        _recompute(connection, context, known)
    edges = _ties_of(connection, context, np.setdiff1d(asked, known)).edges
    if len(edges):
        _add(connection, context, edges)


def _add(connection: Connection, context: Context, edges: Ids) -> None:
    """Unite the clusters at the ends of edges, and take in the documents that were in none, with their twins."""
    leaves = context.leaves
    ends = np.unique(edges)
    known = clusters.read_members_of(connection, leaves, ends)
    fresh = np.setdiff1d(ends, known.doc_ids)
    if len(fresh):
        edges = np.concatenate((edges, _ties_of(connection, context, fresh).edges))
        ends = np.unique(edges)
        known = clusters.read_members_of(connection, leaves, ends)
        fresh = np.setdiff1d(ends, known.doc_ids)
    # A cluster's smallest document stands for all of it.
    membership = np.stack((known.doc_ids, known.cluster_ids), axis=1)
    documents, smallest = connected_components(np.concatenate((edges, membership)))
    before = np.unique(known.cluster_ids)
    after = smallest[np.searchsorted(documents, before)]
    moved = before != after
    clusters.relabel_clusters(connection, leaves, before[moved], after[moved])
    joined = smallest[np.searchsorted(documents, fresh)]
    grown = np.unique(np.concatenate((after[moved], joined)))
    stored = clusters.read_survivors(connection, leaves, grown)
    rivals = np.concatenate((stored.doc_ids, fresh))
    order = np.argsort(rivals)
    now = _with_survivors(
        connection, context, rivals[order], np.concatenate((stored.cluster_ids, joined))[order]
    )
    clusters.replace_members(connection, leaves, stored, now)


def _recompute(connection: Connection, context: Context, doc_ids: Ids) -> None:
    """The clusters of some documents, and of those they are tied to, anew."""
    ties = _ties_of(connection, context, doc_ids)
    reached = np.union1d(doc_ids, ties.edges)
    stored = clusters.read_clusters_of(connection, context.leaves, reached)
    edges = _spanning(connection, context, stored, doc_ids, ties.edges)
    now = _cluster(connection, context, Ties(edges, NO_TIES.twins))
    clusters.replace_members(connection, context.leaves, stored, now)


def _spanning(connection: Connection, context: Context, stored: Members, seen: Ids, edges: Ids) -> Ids:
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
        found = _ties_of(connection, context, asked).edges
        found = found[np.isin(found, inside).all(axis=1)]
        edges = np.stack(connected_components(np.concatenate((edges, found))), axis=1)
        seen = np.union1d(seen, asked)
        apart = stored.doc_ids[find_stragglers(stored.doc_ids, stored.cluster_ids, edges)]
        asked = np.setdiff1d(apart, seen)[:amount]
        amount *= 4
    return edges


def _recompute_around(connection: Connection, context: Context, doc_ids: Ids) -> None:
    """All that some documents are connected with, by ties or by the clusters as they are stored, anew."""
    leaves = context.leaves
    seen = frontier = doc_ids
    ties, stored = NO_TIES, NO_MEMBERS
    while len(frontier):
        found = _ties_of(connection, context, frontier)
        mates = clusters.read_clusters_of(connection, leaves, np.setdiff1d(frontier, stored.doc_ids))
        ties, stored = ties.joined(found), stored.joined(mates)
        frontier = np.setdiff1d(np.union1d(found.edges, mates.doc_ids), seen)
        seen = np.union1d(seen, frontier)
    clusters.replace_members(connection, leaves, stored, _cluster(connection, context, ties))


def _cluster(connection: Connection, context: Context, ties: Ties) -> Members:
    """The clusters that ties make, by the recipe's linkage, with their survivors."""
    if _rules(context).linkage == "representative":
        order = _rank(connection, context, np.unique(ties.edges))
        documents, cluster_ids = star_clusters(ties.pairs, ties.twins, order)
    else:
        documents, cluster_ids = connected_components(ties.edges)
    _, cluster, sizes = np.unique(cluster_ids, return_inverse=True, return_counts=True)
    shared = sizes[cluster] > 1
    return _with_survivors(connection, context, documents[shared], cluster_ids[shared])


def _with_survivors(connection: Connection, context: Context, doc_ids: Ids, cluster_ids: Ids) -> Members:
    order = _rank(connection, context, doc_ids)
    return Members(doc_ids, cluster_ids, choose_survivors(doc_ids, cluster_ids, order))


def _rank(connection: Connection, context: Context, doc_ids: Ids) -> Ids:
    policy, sources = keep_policy(_rules(context).keep)
    return clusters.rank_documents(connection, doc_ids, policy, sources)


def _ties_of(connection: Connection, context: Context, doc_ids: Ids) -> Ties:
    return clusters.read_ties_of(connection, context.leaves, doc_ids, same_numbers=_same_numbers(context))


def _same_numbers(context: Context) -> bool:
    return _rules(context).numbers_differ == "keep-apart"


def _rules(context: Context) -> ClusterRules:
    return context.encoder.profile.recipe.cluster
