"""Clusters, compared with what pairs, twins and verdicts make of them: as sets of documents, and who survives."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.verify_index.changing import find_changing
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
    """Make the clusters of some documents, or all, anew from what is stored, and compare them."""
    tying = GenerationTies(connection, context)
    if doc_ids is None:
        ties, stored = tying.all(), clusters.read_members(connection, context.leaves)
    else:
        ties, stored = tying.around(doc_ids)
    now = tying.clusters(ties)
    findings.checked["clusters"] += len(np.unique(now.cluster_ids))
    wrong, otherwise = _differing(stored, now)
    if len(wrong) + len(otherwise):
        _judge(connection, findings, np.concatenate((ties.edges, stored.edges)), now, wrong, otherwise)


def _differing(stored: Members, now: Members) -> tuple[Ids, Ids]:
    """Documents in other clusters than they should be, and those in the right ones that survive or do not, wrongly."""
    same = np.intersect1d(stored.doc_ids, now.doc_ids, assume_unique=True)
    before, after = _firsts(stored, same), _firsts(now, same)
    apart = np.setxor1d(stored.doc_ids, now.doc_ids, assume_unique=True)
    survived = stored.survives[np.searchsorted(stored.doc_ids, same)]
    survives = now.survives[np.searchsorted(now.doc_ids, same)]
    equal = before == after
    return np.union1d(apart, same[~equal]), same[equal & (survived != survives)]


def _firsts(members: Members, doc_ids: Ids) -> Ids:
    """For each of some members the first of its cluster."""
    _, first, cluster = np.unique(members.cluster_ids, return_index=True, return_inverse=True)
    firsts: Ids = members.doc_ids[first][cluster]
    return firsts[np.searchsorted(members.doc_ids, doc_ids)]


def _judge(
    connection: Connection, findings: Findings, edges: Ids, now: Members, wrong: Ids, otherwise: Ids
) -> None:
    """What is connected is judged together: a document that is being changed may part or join all of it."""
    documents, smallest = connected_components(np.concatenate((edges, now.edges)))
    groups = np.unique(smallest[np.isin(documents, np.concatenate((wrong, otherwise)))])
    looked_at = np.isin(smallest, groups)
    order = np.argsort(smallest[looked_at], kind="stable")
    members, of_group = documents[looked_at][order], smallest[looked_at][order]
    changing = find_changing(connection, findings, members.tolist())
    parted = set(wrong.tolist())
    unlike = parted | set(otherwise.tolist())
    for group in np.split(members, np.flatnonzero(np.diff(of_group)) + 1):
        ids = group.tolist()
        if any(one in changing for one in ids):
            findings.changing += 1
        else:
            kind = "wrong_cluster" if parted.intersection(ids) else "wrong_survivor"
            findings.add_cluster(kind, [one for one in ids if one in unlike])  # type: ignore[arg-type]
