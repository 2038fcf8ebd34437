"""Pairs, compared with what the documents make: those that are stored, and those that a search finds."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.verify_index.changing import find_changing
from nearsim_db.admin.verify_index.findings import Findings, PairKind
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.similarity.batches import VerifiedPairs
from nearsim_db.store import verify_index as store
from nearsim_db.store.driver import Connection
from nearsim_db.store.verify_index import StoredPair

Ends = tuple[int, int]

_CANDIDATES_AT_ONCE = 16_384
_LAST_DIGITS = 1e-9  # of similarities: other processors add up weights otherwise
_ESTIMATE_DIGITS = 1e-6  # what a column of 32 bits holds


def check_pairs(
    connection: Connection, context: Context, findings: Findings, doc_ids: Sequence[int], *, both: bool
) -> list[int]:
    """Search and verify some documents again, and verify the pairs that are stored of them.

    A pair belongs to its right end, from which it is always found, as anchors are the first of their bucket; with
    `both` to either. Returns documents that are not signed as they are, of which pairs cannot be told.
    """
    candidates, _ = steps.search_candidates(connection, context, doc_ids)
    if not both:
        candidates = candidates[np.isin(candidates[:, 1], doc_ids)]
    stored = {(one.left, one.right): one for one in _stored(connection, context, doc_ids, both=both)}
    asked = np.array(sorted(stored), np.int64).reshape(-1, 2)
    asked = np.unique(np.concatenate((candidates, asked)), axis=0)
    found = {(one.left, one.right): one for one in _verified(connection, context, asked)}
    stale = set(context.stale)
    context.reset_findings()
    findings.checked["candidates"] += len(candidates)
    findings.checked["pairs"] += len(stored)
    suspects = [(kind, ends) for kind, ends in _differing(stored, found) if not stale.intersection(ends)]
    _judge(connection, findings, suspects)
    return sorted(stale)


def _stored(
    connection: Connection, context: Context, doc_ids: Sequence[int], *, both: bool
) -> list[StoredPair]:
    return store.read_pairs_at(connection, context.leaves, doc_ids, both=both)


def _verified(connection: Connection, context: Context, asked: NDArray[np.int64]) -> Iterator[StoredPair]:
    for at in range(0, len(asked), _CANDIDATES_AT_ONCE):
        yield from _as_stored(
            steps.verify_candidates(connection, context, asked[at : at + _CANDIDATES_AT_ONCE])
        )


def _as_stored(found: VerifiedPairs) -> Iterator[StoredPair]:
    nothing = [None] * len(found.left)
    columns = (
        found.left.tolist(),
        found.right.tolist(),
        found.shared_bands.tolist(),
        found.estimate.tolist(),
        found.similarity.tolist(),
        nothing if found.intersection is None else found.intersection.tolist(),
        nothing if found.union is None else found.union.tolist(),
        nothing if found.distance is None else found.distance.tolist(),
    )
    for row in zip(*columns, strict=True):
        yield StoredPair(*row)


def _differing(
    stored: dict[Ends, StoredPair], found: dict[Ends, StoredPair]
) -> Iterator[tuple[PairKind, Ends]]:
    for ends, one in stored.items():
        if ends not in found:
            yield "untrue_pair", ends
        elif not _is_same(one, found[ends]):
            yield "rescored_pair", ends
    for ends in found:
        if ends not in stored:
            yield "missing_pair", ends


def _is_same(stored: StoredPair, found: StoredPair) -> bool:
    counted = (stored.shared_bands, stored.intersection, stored.union)
    if counted != (found.shared_bands, found.intersection, found.union):
        return False
    if (stored.distance is None) != (found.distance is None):
        return False
    return (
        math.isclose(stored.similarity, found.similarity, abs_tol=_LAST_DIGITS)
        and math.isclose(stored.estimate, found.estimate, abs_tol=_ESTIMATE_DIGITS)
        and math.isclose(stored.distance or 0.0, found.distance or 0.0, abs_tol=_LAST_DIGITS)
    )


def _judge(connection: Connection, findings: Findings, suspects: Sequence[tuple[PairKind, Ends]]) -> None:
    """Of documents that are at fault themselves the pairs are not told, as they come anew with them."""
    ours = [(kind, ends) for kind, ends in suspects if not findings.documents.intersection(ends)]
    changing = find_changing(connection, findings, {doc_id for _, ends in ours for doc_id in ends})
    for kind, ends in ours:
        if any(one in changing for one in ends):
            findings.changing += 1
        else:
            findings.add_pair(kind, ends)
