"""verify: from candidates to pairs whose similarity is known."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.context import Context
from nearsim_db.similarity.batches import Signatures, VerifiedPairs
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import Screened, screen
from nearsim_db.store import documents, signatures
from nearsim_db.store.driver import Connection


def verify(connection: Connection, context: Context, candidates: NDArray[np.int64]) -> VerifiedPairs:
    """The pairs among candidates: (m, 2) int64 of linked heads, the smaller first."""
    context.count("linked", len(candidates))
    family = context.encoder.family
    doc_ids = np.unique(candidates)
    signed = signatures.read_sketches(connection, context.leaves, doc_ids, family.dtype, family.k)
    return _verify_signed(connection, context, signed, _without_doubles(context, signed, candidates))


def _without_doubles(
    context: Context, signed: Signatures, candidates: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Candidates of one digest are no pairs, but twins that became heads in a race."""
    labels: dict[UUID, int] = {}
    label = np.array([labels.setdefault(digest, len(labels)) for digest in signed.digests], np.int64)
    if len(labels) == len(label):
        return candidates
    rows = np.searchsorted(signed.doc_ids, candidates).clip(max=len(label) - 1)
    present = (signed.doc_ids[rows] == candidates).all(axis=1)
    double = present & (label[rows[:, 0]] == label[rows[:, 1]])
    context.doubles.update(signed.digests[row] for row in rows[double, 0].tolist())
    apart: NDArray[np.int64] = candidates[~double]
    return apart


def _verify_signed(
    connection: Connection, context: Context, signed: Signatures, candidates: NDArray[np.int64]
) -> VerifiedPairs:
    """The pairs among candidates whose signed are at hand; candidates without one are no heads any more."""
    if not len(signed.doc_ids):
        return _no_pairs()
    rows = np.searchsorted(signed.doc_ids, candidates).clip(max=len(signed.doc_ids) - 1)
    present = (signed.doc_ids[rows] == candidates).all(axis=1)
    screened = screen(context.encoder, signed, rows[present, 0], rows[present, 1])
    context.count("screened", len(screened.left))
    if context.encoder.profile.recipe.match.verify == "estimate":
        return _pairs(signed, screened, screened.sketch_scores)
    return _exact_pairs(connection, context, signed, screened)


def _exact_pairs(
    connection: Connection, context: Context, signed: Signatures, screened: Screened
) -> VerifiedPairs:
    used = np.unique(np.concatenate((screened.left, screened.right)))
    found = read_features(connection, context, signed, used.tolist())
    current = np.array([row in found for row in range(len(signed.doc_ids))], bool)
    # A document whose text is not what its signature says is being changed; it must be searched once that is over.
    context.stale.update(int(signed.doc_ids[row]) for row in used.tolist() if row not in found)
    screened = screened.take(current[screened.left] & current[screened.right])
    order = sorted(found)
    place = np.zeros(len(signed.doc_ids), np.int64)
    place[order] = np.arange(len(order))
    scores = context.encoder.compare(
        [found[row] for row in order], place[screened.left], place[screened.right]
    )
    kept = context.encoder.metric.reaches(scores, context.encoder.profile.recipe.match.threshold)
    return _pairs(signed, screened.take(kept), scores.take(kept))


def read_features(
    connection: Connection, context: Context, signed: Signatures, rows: Iterable[int]
) -> dict[int, NDArray[Any]]:
    """The features of rows of signed, from the cache or from the text, where that still has the digest."""
    found: dict[int, NDArray[Any]] = {}
    missing: dict[int, int] = {}
    for row in rows:
        doc_id = int(signed.doc_ids[row])
        cached = context.cache.get(doc_id, signed.digests[row])
        if cached is None:
            missing[doc_id] = row
        else:
            found[row] = cached
    collection_id = context.generation.collection_id
    if not missing:
        return found
    with closing(
        documents.stream_documents(
            connection, collection_id, list(missing), vectors=context.encoder.takes_vectors
        )
    ) as batches:
        for batch in batches:
            features = context.encoder.features(
                [context.encoder.content_of(one.title, one.body, one.vector) for one in batch]
            )
            for position, one in enumerate(batch):
                ids = features.of(position).copy()
                row = missing[one.doc_id]
                if context.encoder.digest(ids) == signed.digests[row].bytes:
                    found[row] = ids
                    context.cache.put(one.doc_id, signed.digests[row], ids)
    return found


def _pairs(signed: Signatures, screened: Screened, scores: Scores) -> VerifiedPairs:
    return VerifiedPairs(
        signed.doc_ids[screened.left],
        signed.doc_ids[screened.right],
        screened.shared_bands,
        screened.estimate,
        scores.similarity,
        scores.intersection,
        scores.union,
        scores.distance,
        [signed.digests[row] for row in screened.left],
        [signed.digests[row] for row in screened.right],
    )


def _no_pairs() -> VerifiedPairs:
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    return VerifiedPairs(none, none, none, nothing, nothing, None, None, None, [], [])
