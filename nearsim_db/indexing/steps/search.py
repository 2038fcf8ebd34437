"""The step "search": find the candidates of documents in their buckets, and verify them by their features.

Two documents are candidates if they share enough bands. Candidates whose sketches do not rule them out are verified:
they are a pair if the similarity of their features is at least the threshold.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import DatabaseError
from nearsim_db.indexing.context import Context
from nearsim_db.messages import count_of
from nearsim_db.similarity.arrays import Ints, are_fresh
from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import VerifiedPairs, are_pairs, screen, verify
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.signatures.neighbours import BucketNeighbours


def search_committed(connection: Connection, context: Context, doc_ids: Sequence[int]) -> BucketNeighbours:
    """Return the result of `search_candidates`, provided that all band rows of the documents are visible.

    On a Citus cluster a node may not have committed some of them yet. Then another document that is searched now does
    not see them either, and the pair of the two would be missed. Raises DatabaseError in this case.
    """
    for _ in range(2):  # a document that was signed again in between has other keys
        neighbours = search_candidates(connection, context, doc_ids)
        if not len(neighbours.hidden):
            return neighbours
    raise DatabaseError(
        f"band rows of {count_of(len(neighbours.hidden), 'document')} are not on their nodes: a commit did not reach "
        "them yet, which SELECT recover_prepared_transactions() completes; or they are lost: "
        "nearsim verify-index --repair"
    )


def search_candidates(connection: Connection, context: Context, doc_ids: Sequence[int]) -> BucketNeighbours:
    """Look up the buckets of documents.

    `linked` of the result has the pairs to screen: (m, 2) int64, the smaller doc_id first, sorted and distinct.
    `anchors` are the documents that are anchors of a bucket over the limit, that is, among its first members.
    `search_full_buckets` compares anchors with the other members.
    """
    tables = context.tables(connection)
    heads = tables.signatures.read_sketches(doc_ids, context.encoder.family)
    if not len(heads.doc_ids):
        empty = np.zeros(0, np.int64)
        return BucketNeighbours(empty.reshape(0, 2), empty, empty)

    # Twins that became heads at the same time are looked up by their digests: a full bucket may not link them.
    context.findings.duplicate_digests.update(tables.signatures.find_duplicate_heads(heads))
    keys = context.encoder.band_keys(heads.sketches)
    neighbours = tables.buckets.look_up_candidates(context.bucket_limit, heads.doc_ids, keys)
    return neighbours._replace(linked=_distinct(np.sort(neighbours.linked, axis=1)))


def _distinct(rows: Ints) -> Ints:
    """Return the distinct rows of an array (m, 2), sorted; several times faster than `np.unique` on an axis."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    distinct: Ints = rows[are_fresh(*rows.T)]
    return distinct


def search_full_buckets(
    connection: Connection, context: Context, anchor: int, after: int, limit: int
) -> Ints:
    """Pair an anchor with the other members of its buckets over the limit; return the pairs to screen: (m, 2) int64.

    Only members with doc_ids above `after` are paired, at most `limit` of them, in the order of their doc_ids. If there
    are fewer than `limit`, no others follow.
    """
    tables = context.tables(connection)
    head = tables.signatures.read_sketches([anchor], context.encoder.family)
    if not len(head.doc_ids):
        return np.zeros((0, 2), np.int64)
    keys = context.encoder.band_keys(head.sketches)
    members = tables.buckets.look_up_members(context.bucket_limit, anchor, keys, after, limit)
    return np.stack((np.full(len(members), anchor, np.int64), members), axis=1)


Features = dict[int, NDArray[Any]]  # features by row of the signatures


def verify_candidates(connection: Connection, context: Context, candidates: Ints) -> VerifiedPairs:
    """Return the pairs among candidates, and the candidates that are just similar enough to be reviewed.

    `candidates` are doc_ids of heads, (m, 2) int64, the smaller first. Documents that are no longer heads are left out.
    """
    encoder = context.encoder
    context.findings.counts["linked"] += len(candidates)
    signed, rows = _signatures_of(connection, context, candidates)
    if not len(signed.doc_ids):
        no_ids, no_scores = np.zeros(0, np.int64), Scores(np.zeros(0))
        return VerifiedPairs(no_ids, no_ids, no_ids, no_scores, 0, no_scores, np.zeros(0, bool), [], [])

    # Leave out candidates that cannot be pairs: twins, and documents whose labels break the rules about fields.
    rows = _without_duplicates(context, signed, rows[(rows >= 0).all(axis=1)])
    if (rules := encoder.field_rules) is not None:
        labels = rules.labels_of(signed.digests)
        rows = rows[rules.may_pair(labels[rows[:, 0]], labels[rows[:, 1]])]

    # Screen by sketches, which is cheap, then compare features.
    screened = screen(encoder, signed, rows[:, 0], rows[:, 1], review=True, count_late=True)
    context.findings.counts["candidates"] += screened.candidates
    context.findings.counts["screened"] += len(screened.left)

    def read(used_rows: Sequence[int]) -> Features:
        features = read_features(connection, context, signed, used_rows)
        # A document whose text differs from what was signed has changed; it is searched again once it is signed again.
        context.findings.stale.update(int(signed.doc_ids[row]) for row in used_rows if row not in features)
        return features

    screened, scores = verify(encoder, screened, read, signed, review=True, passages=True)
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


def read_features(
    connection: Connection, context: Context, signed: Signatures, rows: Sequence[int]
) -> Features:
    """Return the features of rows of `signed`, except for rows whose text differs from what was signed."""
    features: Features = {}
    missing = dict(zip(signed.doc_ids[rows].tolist(), rows, strict=True))

    # Take the features that this process kept when it signed the documents.
    for storage in (context.build.spool, context.cache):
        if storage is not None:
            arrays = storage.get_all(list(missing), signed.digests_at(list(missing.values())))
            features |= {
                row: array for row, array in zip(missing.values(), arrays, strict=True) if array is not None
            }
            missing = {doc_id: row for doc_id, row in missing.items() if row not in features}
    if not missing:
        return features

    # Compute all other features from the texts.
    with closing(
        documents.stream_documents(
            connection, context.collection_id, list(missing), vectors=context.encoder.takes_vectors
        )
    ) as batches:
        for batch in batches:
            features |= current_features(context, signed, missing, batch)
    return features


def current_features(
    context: Context, signed: Signatures, rows: Mapping[int, int], batch: Sequence[StoredDocument]
) -> Features:
    """Return the features of the documents that still have the digest that was signed, and cache them.

    `rows` maps each doc_id to its row of `signed`.
    """
    current: Features = {}
    if not batch:
        return current

    encoder = context.encoder
    contents = [encoder.content_of(document.title, document.body, document.vector) for document in batch]
    encoded = encoder.features(contents)
    for position, document in enumerate(batch):
        features, row = encoded.of(position).copy(), rows[document.doc_id]
        if encoder.is_digest(signed.digests[row], features, document.doc_id):
            current[row] = features
            context.cache.put(document.doc_id, signed.digests[row], features)
    return current


def _signatures_of(connection: Connection, context: Context, candidates: Ints) -> tuple[Signatures, Ints]:
    """Return signatures, and the rows of candidates in them: (m, 2) int64, -1 if a document is no longer a head."""
    doc_ids, places = np.unique(candidates, return_inverse=True)
    if (spool := context.build.spool) is not None and spool.has_heads:
        return spool.read_signatures(doc_ids), places.reshape(candidates.shape)

    signed = context.tables(connection).signatures.read_sketches(doc_ids, context.encoder.family)
    if not len(signed.doc_ids):
        return signed, np.full(candidates.shape, -1, np.int64)
    # Signatures come in the order of doc_ids.
    rows = np.searchsorted(signed.doc_ids, candidates).clip(max=len(signed.doc_ids) - 1)
    return signed, np.where(signed.doc_ids[rows] == candidates, rows, -1)


def _without_duplicates(context: Context, signed: Signatures, rows: Ints) -> Ints:
    """Leave out candidates with equal digests: these are twins that both became heads in a race."""
    if signed.distinct:
        return rows

    # Number the digests, to compare them as integers.
    numbers: dict[UUID, int] = {}
    number = np.array([numbers.setdefault(digest, len(numbers)) for digest in signed.digests], np.int64)
    if len(numbers) == len(number):
        return rows

    is_duplicate = number[rows[:, 0]] == number[rows[:, 1]]
    context.findings.duplicate_digests.update(signed.digests[row] for row in rows[is_duplicate, 0].tolist())
    distinct: Ints = rows[~is_duplicate]
    return distinct
