"""search: from buckets to candidates, and to pairs, decided on the similarity of their features."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import DatabaseError, count_of
from nearsim_db.indexing.context import Context
from nearsim_db.similarity.arrays import Ints, are_fresh
from nearsim_db.similarity.batches import Signatures, labels_of
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import Screened, VerifiedPairs, are_pairs, screen, verify
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.signatures.neighbours import Neighbours


def search_committed(connection: Connection, context: Context, doc_ids: Sequence[int]) -> Neighbours:
    """Return what `search_candidates` does of documents whose band rows are on their nodes, if they are distributed.

    Raises DatabaseError if some are not committed there yet: a document that is searched meanwhile does not see them
    either, and the pair of the two would be missed.
    """
    for _ in range(2):  # a document that was signed again in between has other keys
        found = search_candidates(connection, context, doc_ids)
        if not len(found.hidden):
            return found
    raise DatabaseError(
        f"band rows of {count_of(len(found.hidden), 'document')} are not on their nodes: a commit did not reach them "
        "yet, which SELECT recover_prepared_transactions() completes; or they are lost: nearsim verify-index --repair"
    )


def search_candidates(connection: Connection, context: Context, doc_ids: Sequence[int]) -> Neighbours:
    """Return the candidates of documents as `linked`: (m, 2) int64, the smaller doc_id first, sorted and distinct.

    Also returns those of the documents that are anchors of buckets over the limit; `search_full_buckets` searches them.
    """
    tables = context.tables(connection)
    heads = tables.signatures.read_sketches(doc_ids, context.encoder.family)
    if not len(heads.doc_ids):
        none = np.zeros(0, np.int64)
        return Neighbours(none.reshape(0, 2), none, none)
    # Twins that became heads concurrently need not be candidates: a full bucket may not link them.
    context.found.duplicate_digests.update(tables.signatures.find_duplicate_heads(heads))
    keys = context.encoder.band_keys(heads.sketches)
    found = tables.buckets.look_up_candidates(context.bucket_limit, heads.doc_ids, keys)
    return found._replace(linked=_distinct(np.sort(found.linked, axis=1)))


def _distinct(rows: Ints) -> Ints:
    """Return the distinct rows of (m, 2), sorted; several times faster than `np.unique` on an axis."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    distinct: Ints = rows[are_fresh(*rows.T)]
    return distinct


def search_full_buckets(
    connection: Connection, context: Context, anchor: int, after: int, batch: int
) -> Ints:
    """Return the candidates of an anchor in its buckets over the limit, with doc_ids above `after`: (m, 2) int64.

    At most `batch`; fewer are the last.
    """
    tables = context.tables(connection)
    head = tables.signatures.read_sketches([anchor], context.encoder.family)
    if not len(head.doc_ids):
        return np.zeros((0, 2), np.int64)
    keys = context.encoder.band_keys(head.sketches)
    members = tables.buckets.look_up_members(context.bucket_limit, anchor, keys, after, batch)
    return np.stack((np.full(len(members), anchor, np.int64), members), axis=1)


Features = dict[int, NDArray[Any]]  # features by row of the signatures


def verify_candidates(connection: Connection, context: Context, candidates: Ints) -> VerifiedPairs:
    """Return the pairs among candidates, those to be reviewed too: (m, 2) int64 of candidate heads, the smaller first.

    Candidates that are no longer heads are left out.
    """
    context.found.counts["linked"] += len(candidates)
    signed, rows = _signatures_of(connection, context, candidates)
    if not len(signed.doc_ids):
        return _no_pairs()
    rows = _without_duplicates(context, signed, rows[(rows >= 0).all(axis=1)])
    if context.encoder.across is not None:
        labels = labels_of(signed.digests)
        rows = rows[(labels[rows[:, 0]] != labels[rows[:, 1]]).any(axis=1)]
    screened = screen(context.encoder, signed, rows[:, 0], rows[:, 1], review=True, count_late=True)
    context.found.counts["candidates"] += screened.candidates
    context.found.counts["screened"] += len(screened.left)

    def read(used: Sequence[int]) -> Features:
        found = read_features(connection, context, signed, used)
        # A document whose text differs from what was signed is being changed; it is searched again after that.
        context.found.stale.update(int(signed.doc_ids[row]) for row in used if row not in found)
        return found

    screened, scores = verify(context.encoder, screened, read, signed, review=True, passages=True)
    return _pairs(context.encoder, signed, screened, scores)


def read_features(
    connection: Connection, context: Context, signed: Signatures, rows: Sequence[int]
) -> Features:
    """Return the features of rows of `signed`, from the spool, the cache or a text that still has the digest."""
    found: Features = {}
    missing = dict(zip(signed.doc_ids[rows].tolist(), rows, strict=True))
    for kept in (context.build.spool, context.cache):
        if kept is not None:
            known = kept.get_all(list(missing), signed.digests_at(list(missing.values())))
            places = zip(missing.items(), known, strict=True)
            found |= {row: features for (_, row), features in places if features is not None}
            missing = {doc_id: row for doc_id, row in missing.items() if row not in found}
    if not missing:
        return found
    with closing(
        documents.stream_documents(
            connection, context.collection_id, list(missing), vectors=context.encoder.takes_vectors
        )
    ) as batches:
        for batch in batches:
            found |= current_features(context, signed, missing, batch)
    return found


def current_features(
    context: Context, signed: Signatures, rows: Mapping[int, int], batch: Sequence[StoredDocument]
) -> Features:
    """Return the features of documents that still have the digest of their row of `signed`, and cache them.

    `rows` has the row of each doc_id.
    """
    found: Features = {}
    if not batch:
        return found
    features = context.encoder.features(
        [context.encoder.content_of(one.title, one.body, one.vector) for one in batch]
    )
    for position, one in enumerate(batch):
        ids = features.of(position).copy()
        row = rows[one.doc_id]
        if context.encoder.is_digest(signed.digests[row], ids, one.doc_id):
            found[row] = ids
            context.cache.put(one.doc_id, signed.digests[row], ids)
    return found


def _signatures_of(connection: Connection, context: Context, candidates: Ints) -> tuple[Signatures, Ints]:
    """Return signatures, and the rows of candidates in them, (m, 2), -1 for those that are no longer heads."""
    doc_ids, places = np.unique(candidates, return_inverse=True)
    if (spool := context.build.spool) is not None and spool.has_heads:
        return spool.read_signatures(doc_ids), places.reshape(candidates.shape)
    signed = context.tables(connection).signatures.read_sketches(doc_ids, context.encoder.family)
    if not len(signed.doc_ids):
        return signed, np.full(candidates.shape, -1, np.int64)
    rows = np.searchsorted(signed.doc_ids, candidates).clip(max=len(signed.doc_ids) - 1)
    return signed, np.where(signed.doc_ids[rows] == candidates, rows, -1)


def _without_duplicates(context: Context, signed: Signatures, rows: Ints) -> Ints:
    """Leave out candidates of one digest: they are twins that became heads in a race, not pairs."""
    if signed.distinct:
        return rows
    labels: dict[UUID, int] = {}
    label = np.array([labels.setdefault(digest, len(labels)) for digest in signed.digests], np.int64)
    if len(labels) == len(label):
        return rows
    duplicate = label[rows[:, 0]] == label[rows[:, 1]]
    context.found.duplicate_digests.update(signed.digests[row] for row in rows[duplicate, 0].tolist())
    apart: Ints = rows[~duplicate]
    return apart


def _pairs(encoder: Encoder, signed: Signatures, screened: Screened, scores: Scores) -> VerifiedPairs:
    return VerifiedPairs(
        signed.doc_ids[screened.left],
        signed.doc_ids[screened.right],
        screened.shared_bands,
        screened.sketch_scores,
        screened.candidates,
        scores,
        ~are_pairs(encoder, scores, screened.shared_bands),
        signed.digests_at(screened.left),
        signed.digests_at(screened.right),
    )


def _no_pairs() -> VerifiedPairs:
    none, nothing = np.zeros(0, np.int64), Scores(np.zeros(0))
    return VerifiedPairs(none, none, none, nothing, 0, nothing, np.zeros(0, bool), [], [])
