"""What each stage of the queue does with a batch.

Each stage commits. If the lease on the batch was lost, the stages search and anchor roll back instead.
"""

from collections.abc import Callable
from contextlib import closing
from itertools import chain

import numpy as np

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.records import WorkStage
from nearsim_db.similarity.arrays import Ints
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.screening import VerifiedPairs
from nearsim_db.store.attached import attachments
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.work.queue import WHOLE_GENERATION, Batch

_CANDIDATES_PER_BATCH = 16_384
_MEMBERS_PER_BATCH = 4_000  # for each anchor
_RETRY_SECONDS = 0.2

# Does a batch in one or more transactions, the last of which finishes it; returns the batch that follows it, if any.
StageWork = Callable[[Connection, Context, Batch], Batch | None]


def _compare(connection: Connection, context: Context, batch: Batch) -> None:
    """Queue every document whose signature is missing or outdated."""
    work = context.tables(connection).work
    work.finish(batch)
    work.add_outdated(context.collection_id)
    connection.commit()


def sign(connection: Connection, context: Context, batch: Batch) -> Batch | None:
    """Sign documents that changed, and remove documents that were deleted or have expired.

    Returns the same batch for the stage search, if some of its documents have to be searched.
    """
    collection_id, tables = context.collection_id, context.tables(connection)

    # Read and encode the documents whose signature is missing or outdated.
    is_signed = tables.signatures.find_retained(collection_id, batch.doc_ids)
    unsigned = [doc_id for doc_id in is_signed if not is_signed[doc_id]]
    with closing(
        documents.stream_documents(connection, collection_id, unsigned, vectors=context.encoder.takes_vectors)
    ) as texts:
        # Keep the features, because this process verifies candidates of these documents next.
        parts = [steps.sign_documents(context, part, keep_features=True) for part in chain(texts, ([],))]
    rows = SignatureRows.joined(parts)
    unread = np.setdiff1d(unsigned, rows.doc_ids)
    attachments.invalidate_texts(connection, collection_id, unread.tolist())
    connection.commit()

    # Store the documents that are still under the lease: none if the lease was lost, and none that were purged.
    changed = [doc_id for doc_id in batch.doc_ids if not is_signed.get(doc_id)]
    leased = np.intersect1d(tables.work.lock(batch), changed)
    if not len(leased):
        tables.work.finish(batch)
        connection.commit()
        return None
    stored = rows.take(np.isin(rows.doc_ids, leased))
    searching = steps.store_signatures(connection, context, leased.tolist(), stored, batch)

    # The documents may have changed since they were read, and another worker may already have done the work queued for
    # that change. So queue changed documents again. store_signatures has taken the lock that makes this check safe.
    outdated = documents.find_changed(
        connection, context.leaves, collection_id, stored.doc_ids, stored.revisions
    )
    tables.work.add("sign", outdated)
    connection.commit()
    return searching


def _search(connection: Connection, context: Context, batch: Batch) -> None:
    """Find and verify the candidates of new heads."""
    search = steps.search_committed(connection, context, batch.doc_ids)
    verified = _verify(connection, context, search.linked)

    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    work = context.tables(connection).work
    if not work.finish(batch):  # the lease was lost: another worker stores the pairs
        connection.rollback()
        return
    work.add("anchor", search.anchors)
    _store_pairs(connection, context, verified)


def _search_full_buckets(connection: Connection, context: Context, batch: Batch) -> None:
    """Compare anchors of buckets over the limit with the next members of these buckets."""
    verified: list[VerifiedPairs] = []
    reached: dict[int, int] = {}  # the last compared member of each anchor that has members left to compare
    for anchor in batch.doc_ids:
        candidates = steps.search_full_buckets(connection, context, anchor, batch.reached, _MEMBERS_PER_BATCH)
        verified += _verify(connection, context, candidates)
        if len(candidates) == _MEMBERS_PER_BATCH:
            reached[anchor] = int(candidates[-1, 1])

    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    work = context.tables(connection).work
    leased = work.finish(batch)
    if not leased:  # the lease was lost: another worker stores the pairs
        connection.rollback()
        return
    work.continue_anchors({anchor: reached[anchor] for anchor in leased if anchor in reached})
    _store_pairs(connection, context, verified)


def _verify(connection: Connection, context: Context, candidates: Ints) -> list[VerifiedPairs]:
    """Return the pairs among candidates; if a digest turns out to have several heads, merge them."""
    verified = [
        steps.verify_candidates(connection, context, candidates[at : at + _CANDIDATES_PER_BATCH])
        for at in range(0, len(candidates), _CANDIDATES_PER_BATCH)
    ]
    connection.commit()
    if context.findings.duplicate_digests:
        steps.merge_heads(connection, context, sorted(context.findings.duplicate_digests))
        context.findings.duplicate_digests.clear()
        connection.commit()
    return verified


def _store_pairs(connection: Connection, context: Context, verified: list[VerifiedPairs]) -> None:
    """Store pairs, extend the clusters by them, and record the step counts."""
    _requeue_stale(connection, context)
    if any(len(batch.left) for batch in verified):
        steps.lock_clusters(connection, context)
    stored = 0
    for batch in verified:
        fresh = context.tables(connection).pairs.store(batch)
        steps.extend_clusters(connection, context, fresh)
        stored += len(fresh)
    generation_rows.count_up(connection, context.generation, context.findings.counts)
    connection.commit()
    context.findings.clear()
    context.totals["pairs"] += stored


def _requeue_stale(connection: Connection, context: Context) -> None:
    """Queue documents whose text differs from what was signed: they are searched again once the new text is signed.

    A signed document that was deleted is queued for removal. A document without a signature was removed already.
    """
    tables = context.tables(connection)
    signed = tables.signatures.read_signed(sorted(context.findings.stale))
    existing = documents.find_existing(connection, context.collection_id, sorted(signed))
    tables.work.add("search", sorted(existing), _RETRY_SECONDS)
    tables.work.add("sign", sorted(signed.keys() - existing), _RETRY_SECONDS)
    attachments.queue_text_checks(connection, sorted(existing))


def _update_clusters(connection: Connection, context: Context, batch: Batch) -> None:
    """Recompute the clusters around documents, or all of them."""
    take_transaction_lock(connection, Lock.LINK, context.generation.generation_id)
    leased = context.tables(connection).work.finish(batch)
    if WHOLE_GENERATION in leased:
        steps.rebuild_clusters(connection, context)
    elif leased:
        steps.update_clusters(connection, context, leased)
    connection.commit()


STAGE_WORK: dict[WorkStage, StageWork] = {
    "compare": _compare,
    "sign": sign,
    "search": _search,
    "anchor": _search_full_buckets,
    "link": _update_clusters,
}
