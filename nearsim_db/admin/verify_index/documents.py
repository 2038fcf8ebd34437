"""Check signatures and band rows by signing again, pairs by searching again, and clusters by clustering again."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from operator import attrgetter

import numpy as np

from nearsim_db.admin.verify_index.findings import ClusterKind, DocumentKind, FoundFaults, PairKind
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps.ties import GenerationTies
from nearsim_db.records import Evidence
from nearsim_db.similarity.arrays import Ints, flat
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.clustering import connected_components
from nearsim_db.store.clusters.clusters import Members
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import sketch_bytes, to_bigint
from nearsim_db.store.generations.index_checks import SignedDocument, StoredEvidence

# A possible fault, its document, and the documents whose queued work may resolve it.
Suspect = tuple[DocumentKind, list[int], set[int]]
Bytes = np.ndarray[tuple[int], np.dtype[np.void]]


def check_documents(
    connection: Connection, context: Context, findings: FoundFaults, doc_ids: Sequence[int]
) -> None:
    """Sign some documents again and compare with their stored rows; deleted documents must have no signature."""
    stored = context.tables(connection).checks.read_signed_documents(context.collection_id, doc_ids)
    rows = _sign(connection, context, [document.doc_id for document in stored if document.is_inside])
    findings.checked["documents"] += sum(document.is_there for document in stored)
    findings.checked["signatures"] += sum(document.is_signed for document in stored)

    positions = {doc_id: position for position, doc_id in enumerate(rows.doc_ids.tolist())}
    sketches = sketch_bytes(rows.sketches)
    suspects: list[Suspect] = []
    stray: list[Suspect] = []
    is_sound_head = np.zeros(len(rows.doc_ids), bool)
    for document in stored:
        position = positions.get(document.doc_id)
        if document.is_there and not document.is_inside:
            continue
        if document.is_there and position is None:
            # Its text is in an attached table, and was changed just now.
            findings.changing += 1
            continue

        kind = _find_fault(document, rows, sketches, position)
        if kind is not None:
            involved = {id for id in (document.doc_id, document.head_id, document.first) if id}
            (stray if kind == "stray_signature" else suspects).append((kind, [document.doc_id], involved))
        elif position is not None and document.head_id == document.doc_id:
            is_sound_head[position] = True

    suspects += _missing_bands(connection, context, findings, rows.take(is_sound_head))
    findings.add_unless_pending(connection, suspects)
    # Only these stages delete signatures, so work of the others cannot resolve a stray one.
    findings.add_unless_pending(connection, stray, ("sign", "compare"))


def _sign(connection: Connection, context: Context, doc_ids: Sequence[int]) -> SignatureRows:
    streamed = documents.stream_documents(
        connection, context.collection_id, doc_ids, vectors=context.encoder.takes_vectors
    )
    # The empty batch ensures that there is something to join, even if none of the documents exists.
    with closing(streamed) as batches:
        rows = SignatureRows.joined([steps.sign_documents(context, batch) for batch in chain(batches, ([],))])
    return steps.labelled(connection, context, rows)


def _find_fault(
    document: SignedDocument, rows: SignatureRows, sketches: Bytes, position: int | None
) -> DocumentKind | None:
    """Return the fault of a stored signature, or None if it is sound.

    `position` is the row of the document's new signature in `rows`, None if the document was deleted.
    """
    if position is None:
        return "stray_signature" if document.is_signed else None
    if not document.is_signed:
        return "unsigned"
    if document.signed_revision != document.revision:
        return "outdated"

    numbers = int(to_bigint(rows.numbers[position : position + 1])[0])
    expected = rows.counts[position], rows.digest(position), numbers
    if (document.feature_count, document.digest, document.numbers) != expected:
        return "wrong_features"

    # A document without features has no digest, and therefore no sketch or head to compare.
    if document.digest is None:
        return None
    if document.sketch != bytes(sketches[position]):
        return "wrong_sketch"
    return None if document.head_id == document.first else "wrong_head"


def _missing_bands(
    connection: Connection, context: Context, findings: FoundFaults, heads: SignatureRows
) -> list[Suspect]:
    findings.checked["heads"] += len(heads.doc_ids)
    if not len(heads.doc_ids):
        return []
    keys = context.encoder.band_keys(heads.sketches)
    findings.checked["band_rows"] += len(flat(keys))
    missing = context.tables(connection).buckets.find_missing_bands(heads.doc_ids, keys)
    return [("missing_bands", [doc_id], {doc_id}) for doc_id in missing.tolist()]


Ends = tuple[int, int]

_CANDIDATES_AT_ONCE = 16_384
_COUNTS = attrgetter("shared_bands", "intersection", "union")
# Processors may add weights in different orders.
_SIMILARITY_TOLERANCE = 1e-9
# The column stores 32-bit floats.
_ESTIMATE_TOLERANCE = 1e-6


def check_pairs(
    connection: Connection,
    context: Context,
    findings: FoundFaults,
    doc_ids: Sequence[int],
    *,
    either_end: bool,
) -> list[int]:
    """Search some documents again, and compare the verified candidates with their stored pairs.

    A pair is checked by a search from its right end, which has the larger doc_id. This search always finds the pair,
    because the anchors of a bucket are its first documents. With `either_end` pairs are checked from both ends. Returns
    the documents whose text has changed since it was signed, so that their pairs cannot be checked.
    """
    linked = steps.search_candidates(connection, context, doc_ids).linked
    if not either_end:
        linked = linked[np.isin(linked[:, 1], doc_ids)]
    stored = context.tables(connection).checks.read_pairs_at(doc_ids, both=either_end)
    expected = dict(_verify(connection, context, linked))
    findings.checked["candidates"] += context.findings.counts.get("candidates", 0)

    # Stored pairs that the search does not link may still be true.
    unlinked = sorted(stored.keys() - {(left, right) for left, right in linked.tolist()})
    expected |= dict(_verify(connection, context, np.array(unlinked, np.int64).reshape(-1, 2)))
    stale = set(context.findings.stale)
    context.findings.clear()

    findings.checked["pairs"] += len(stored)
    unchecked = stale | findings.documents
    differing = [
        (kind, ends) for kind, ends in _differing(stored, expected) if not unchecked.intersection(ends)
    ]
    findings.add_unless_pending(connection, ((kind, ends, ends) for kind, ends in differing))
    return sorted(stale)


def _verify(connection: Connection, context: Context, ends: Ints) -> Iterator[tuple[Ends, StoredEvidence]]:
    """Yield the candidates that are pairs, with the evidence and the marks that an index stores for them."""
    for at in range(0, len(ends), _CANDIDATES_AT_ONCE):
        pairs = steps.verify_candidates(connection, context, ends[at : at + _CANDIDATES_AT_ONCE])
        both = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
        evidence = pairs.evidence(is_exact=context.encoder.is_exact)

        scores, count = pairs.scores, len(pairs.left)
        by_passage = [False] * count if scores.by_passage is None else scores.by_passage.tolist()
        longest = [None] * count if scores.longest_passage is None else scores.longest_passage.tolist()
        marks = zip(pairs.in_review.tolist(), by_passage, longest, strict=True)
        yield from zip(both, zip(evidence, marks, strict=True), strict=True)


def _differing(
    stored: dict[Ends, StoredEvidence], expected: dict[Ends, StoredEvidence]
) -> Iterator[tuple[PairKind, Ends]]:
    for ends, (evidence, marks) in stored.items():
        if ends not in expected:
            yield "untrue_pair", ends
            continue
        expected_evidence, expected_marks = expected[ends]
        if marks != expected_marks or not _is_same(evidence, expected_evidence):
            yield "rescored_pair", ends
    for ends in expected:
        if ends not in stored:
            yield "missing_pair", ends


def _is_same(stored: Evidence, expected: Evidence) -> bool:
    return (
        _COUNTS(stored) == _COUNTS(expected)
        and (stored.distance is None) == (expected.distance is None)
        and math.isclose(stored.similarity, expected.similarity, abs_tol=_SIMILARITY_TOLERANCE)
        and math.isclose(stored.estimate, expected.estimate, abs_tol=_ESTIMATE_TOLERANCE)
        and math.isclose(stored.distance or 0.0, expected.distance or 0.0, abs_tol=_SIMILARITY_TOLERANCE)
    )


def check_clusters(
    connection: Connection, context: Context, findings: FoundFaults, doc_ids: Ints | None = None
) -> None:
    """Recompute the clusters of some or all documents, and record differences from the stored clusters as faults."""
    generation_ties = GenerationTies(connection, context)
    if doc_ids is None:
        ties, stored = generation_ties.all(), context.tables(connection).clusters.read_members()
    else:
        ties, stored = generation_ties.around(doc_ids)
    now = generation_ties.clusters(ties)
    findings.checked["clusters"] += len(np.unique(now.cluster_ids))
    wrong, wrong_survival = _differing_clusters(stored, now)
    if len(wrong) + len(wrong_survival):
        edges = np.concatenate((ties.edges, stored.edges))
        _add_cluster_faults(connection, findings, edges, now, wrong, wrong_survival)


def _differing_clusters(stored: Members, now: Members) -> tuple[Ints, Ints]:
    """Return the documents in wrong clusters, and the documents in right clusters whose survival differs."""
    same = np.intersect1d(stored.doc_ids, now.doc_ids, assume_unique=True)
    before, after = _first_members(stored, same), _first_members(now, same)
    only_in_one = np.setxor1d(stored.doc_ids, now.doc_ids, assume_unique=True)
    survived = stored.survives[np.searchsorted(stored.doc_ids, same)]
    survives = now.survives[np.searchsorted(now.doc_ids, same)]
    equal = before == after
    return np.union1d(only_in_one, same[~equal]), same[equal & (survived != survives)]


def _first_members(members: Members, doc_ids: Ints) -> Ints:
    """Return the first member of each document's cluster."""
    _, first, cluster = np.unique(members.cluster_ids, return_index=True, return_inverse=True)
    firsts: Ints = members.doc_ids[first][cluster]
    return firsts[np.searchsorted(members.doc_ids, doc_ids)]


def _add_cluster_faults(
    connection: Connection,
    findings: FoundFaults,
    edges: Ints,
    now: Members,
    wrong: Ints,
    wrong_survival: Ints,
) -> None:
    """Record each connected group as a fault, unless one of its documents is changing, which may split or merge it."""
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
        suspects.append((kind, [doc_id for doc_id in ids if doc_id in differing], ids))
    findings.add_unless_pending(connection, suspects)
