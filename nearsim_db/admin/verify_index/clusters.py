"""Check of clusters and their survivors against pairs, twins and verdicts."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.verify_index.changing import find_pending_documents
from nearsim_db.admin.verify_index.findings import Findings
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps.ties import GenerationTies
from nearsim_db.similarity.clustering import connected_components
from nearsim_db.store import clusters
from nearsim_db.store.clusters import Members
from nearsim_db.store.driver import Connection

Ids = NDArray[np.int64]


def check_clusters(
    connection: Connection, context: Context, findings: Findings, doc_ids: Ids | None = None
) -> None:
    """Recompute the clusters of some documents, or of all, and record differences from the stored ones as faults."""
    generation_ties = GenerationTies(connection, context)
    if doc_ids is None:
        ties, stored = generation_ties.all(), clusters.read_members(connection, context.leaves)
    else:
        ties, stored = generation_ties.around(doc_ids)
    now = generation_ties.clusters(ties)
    findings.checked["clusters"] += len(np.unique(now.cluster_ids))
    wrong, wrong_survival = _differing(stored, now)
    if len(wrong) + len(wrong_survival):
        edges = np.concatenate((ties.edges, stored.edges))
        _add_faults(connection, findings, edges, now, wrong, wrong_survival)


def _differing(stored: Members, now: Members) -> tuple[Ids, Ids]:
    """Return the documents in wrong clusters, and those in right ones that are wrongly survivors or not."""
    same = np.intersect1d(stored.doc_ids, now.doc_ids, assume_unique=True)
    before, after = _first_members(stored, same), _first_members(now, same)
    only_in_one = np.setxor1d(stored.doc_ids, now.doc_ids, assume_unique=True)
    survived = stored.survives[np.searchsorted(stored.doc_ids, same)]
    survives = now.survives[np.searchsorted(now.doc_ids, same)]
    equal = before == after
    return np.union1d(only_in_one, same[~equal]), same[equal & (survived != survives)]


def _first_members(members: Members, doc_ids: Ids) -> Ids:
    """Return for each document the first member of its cluster."""
    _, first, cluster = np.unique(members.cluster_ids, return_index=True, return_inverse=True)
    firsts: Ids = members.doc_ids[first][cluster]
    return firsts[np.searchsorted(members.doc_ids, doc_ids)]


def _add_faults(
    connection: Connection, findings: Findings, edges: Ids, now: Members, wrong: Ids, wrong_survival: Ids
) -> None:
    """Record each connected group as a fault unless one of its documents is changing, which may split or merge it."""
    documents, smallest = connected_components(np.concatenate((edges, now.edges)))
    groups = np.unique(smallest[np.isin(documents, np.concatenate((wrong, wrong_survival)))])
    is_affected = np.isin(smallest, groups)
    order = np.argsort(smallest[is_affected], kind="stable")
    members, of_group = documents[is_affected][order], smallest[is_affected][order]
    changing = find_pending_documents(connection, findings, members.tolist())
    in_wrong_cluster = set(wrong.tolist())
    differing = in_wrong_cluster | set(wrong_survival.tolist())
    for group in np.split(members, np.flatnonzero(np.diff(of_group)) + 1):
        ids = group.tolist()
        if any(one in changing for one in ids):
            findings.changing += 1
        else:
            kind = "wrong_cluster" if in_wrong_cluster.intersection(ids) else "wrong_survivor"
            findings.add_cluster(kind, [one for one in ids if one in differing])  # type: ignore[arg-type]
