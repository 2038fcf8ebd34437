"""Check of stored pairs against those that a search of the documents finds, and of clusters against the pairs."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.verify_index.findings import ClusterKind, Findings, PairKind
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps.ties import GenerationTies
from nearsim_db.records import Evidence
from nearsim_db.similarity.clustering import connected_components
from nearsim_db.store import clusters, index_checks
from nearsim_db.store.clusters import Members
from nearsim_db.store.driver import Connection

Ends = tuple[int, int]

_CANDIDATES_AT_ONCE = 16_384
_SIMILARITY_TOLERANCE = 1e-9  # processors differ in how they sum weights
_ESTIMATE_TOLERANCE = 1e-6  # of a 32-bit column


def check_pairs(
    connection: Connection, context: Context, findings: Findings, doc_ids: Sequence[int], *, either_end: bool
) -> list[int]:
    """Search some documents again, and verify what is found and what is stored of them.

    A pair is checked with its right end, whose search always finds it as anchors are the first of their bucket; with
    `either_end`, with both. Returns documents whose text differs from what was signed, so that their pairs cannot be
    checked.
    """
    linked, _ = steps.search_candidates(connection, context, doc_ids)
    if not either_end:
        linked = linked[np.isin(linked[:, 1], doc_ids)]
    stored = index_checks.read_pairs_at(connection, context.leaves, doc_ids, both=either_end)
    found = dict(_verify(connection, context, linked))
    findings.checked["candidates"] += context.found.counts.get("candidates", 0)
    unlinked = sorted(stored.keys() - {(left, right) for left, right in linked.tolist()})
    rest = np.array(unlinked, np.int64).reshape(-1, 2)
    found |= dict(_verify(connection, context, rest))
    stale = set(context.found.stale)
    context.found.clear()
    findings.checked["pairs"] += len(stored)
    unchecked = stale | findings.documents
    differing = [one for one in _differing(stored, found) if not unchecked.intersection(one[1])]
    findings.add_unless_pending(connection, ((kind, ends, ends) for kind, ends in differing))
    return sorted(stale)


def _verify(
    connection: Connection, context: Context, ends: NDArray[np.int64]
) -> Iterator[tuple[Ends, Evidence]]:
    is_exact = context.encoder.profile.recipe.match.verify == "exact"
    for at in range(0, len(ends), _CANDIDATES_AT_ONCE):
        found = steps.verify_candidates(connection, context, ends[at : at + _CANDIDATES_AT_ONCE])
        both = zip(found.left.tolist(), found.right.tolist(), strict=True)
        yield from zip(both, found.evidence(is_exact=is_exact), strict=True)


def _differing(stored: dict[Ends, Evidence], found: dict[Ends, Evidence]) -> Iterator[tuple[PairKind, Ends]]:
    for ends, one in stored.items():
        if ends not in found:
            yield "untrue_pair", ends
        elif not _is_same(one, found[ends]):
            yield "rescored_pair", ends
    for ends in found:
        if ends not in stored:
            yield "missing_pair", ends


def _is_same(stored: Evidence, found: Evidence) -> bool:
    counts = (stored.shared_bands, stored.intersection, stored.union)
    if counts != (found.shared_bands, found.intersection, found.union):
        return False
    if (stored.distance is None) != (found.distance is None):
        return False
    return (
        math.isclose(stored.similarity, found.similarity, abs_tol=_SIMILARITY_TOLERANCE)
        and math.isclose(stored.estimate, found.estimate, abs_tol=_ESTIMATE_TOLERANCE)
        and math.isclose(stored.distance or 0.0, found.distance or 0.0, abs_tol=_SIMILARITY_TOLERANCE)
    )


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
    wrong, wrong_survival = _differing_clusters(stored, now)
    if len(wrong) + len(wrong_survival):
        edges = np.concatenate((ties.edges, stored.edges))
        _add_cluster_faults(connection, findings, edges, now, wrong, wrong_survival)


def _differing_clusters(stored: Members, now: Members) -> tuple[Ids, Ids]:
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


def _add_cluster_faults(
    connection: Connection, findings: Findings, edges: Ids, now: Members, wrong: Ids, wrong_survival: Ids
) -> None:
    """Record each connected group as a fault unless one of its documents is changing, which may split or merge it."""
    documents, smallest = connected_components(np.concatenate((edges, now.edges)))
    groups = np.unique(smallest[np.isin(documents, np.concatenate((wrong, wrong_survival)))])
    is_affected = np.isin(smallest, groups)
    order = np.argsort(smallest[is_affected], kind="stable")
    members, of_group = documents[is_affected][order], smallest[is_affected][order]
    in_wrong_cluster = set(wrong.tolist())
    differing = in_wrong_cluster | set(wrong_survival.tolist())
    suspects: list[tuple[ClusterKind, list[int], list[int]]] = []
    for group in np.split(members, np.flatnonzero(np.diff(of_group)) + 1):
        ids = group.tolist()
        kind: ClusterKind = "wrong_cluster" if in_wrong_cluster.intersection(ids) else "wrong_survivor"
        suspects.append((kind, [one for one in ids if one in differing], ids))
    findings.add_unless_pending(connection, suspects)
