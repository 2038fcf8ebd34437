"""What a worker does in each stage of the work queue; every function commits."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
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
from nearsim_db.store.pairs import pairs
from nearsim_db.store.work import batches, queue
from nearsim_db.store.work.queue import WHOLE, Batch, Task

_CANDIDATES_PER_BATCH = 16_384
_MEMBERS_PER_BATCH = 4_000
_RETRY_SECONDS = 0.2

Work = Callable[[Connection, Context, int, list[Task]], object]


def _compare(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    """Queue every document whose signature is missing or outdated."""
    queue.finish(connection, context.leaves, "compare", lease_id, [WHOLE])
    queue.queue_pending(connection, context.leaves, context.collection_id, context.retained_seconds)
    connection.commit()


def sign(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    """Sign documents that changed, and remove those that were deleted or are outside the retention window."""
    doc_ids = [task.doc_id for task in tasks]
    changed, rows = _sign_changed(connection, context, doc_ids)
    leased = queue.finish(connection, context.leaves, "sign", lease_id, doc_ids)
    _store_signed(connection, context, np.intersect1d(leased, changed), rows, None)
    connection.commit()


def sign_batch(connection: Connection, context: Context, batch: Batch, searching: list[Batch]) -> None:
    """Sign the documents of a batch as `sign` does; `searching` gets the batch if there is something to search."""
    changed, rows = _sign_changed(connection, context, batch.doc_ids)
    leased = batches.lock(connection, context.leaves, batch)
    signed = _store_signed(connection, context, np.intersect1d(leased, changed), rows, batch)
    if signed is None:
        batches.finish(connection, context.leaves, batch)
    connection.commit()
    if signed is not None and signed.doc_ids:
        searching.append(signed)


def _sign_changed(
    connection: Connection, context: Context, doc_ids: list[int]
) -> tuple[list[int], SignatureRows]:
    """Return those of some documents whose signature is missing or outdated, and the signatures of those that exist."""
    collection_id, age = context.collection_id, context.retained_seconds
    current = context.tables(connection).signatures.find_current(collection_id, doc_ids, age)
    changed = [doc_id for doc_id in doc_ids if doc_id not in current]
    with closing(
        documents.stream_documents(
            connection, collection_id, changed, age, vectors=context.encoder.takes_vectors
        )
    ) as read:
        # This worker is likely to search and verify them next.
        sign = partial(steps.sign_documents, context, keep_features=True)
        rows = SignatureRows.joined([sign(batch) for batch in chain(read, ([],))])
    missing = np.setdiff1d(changed, rows.doc_ids)
    attachments.invalidate_texts(connection, collection_id, missing.tolist(), age)
    connection.commit()
    return changed, rows


def _store_signed(
    connection: Connection, context: Context, mine: Ints, rows: SignatureRows, batch: Batch | None
) -> Batch | None:
    """Store the signatures of the documents that are still under the lease; return the batch to search."""
    if not len(mine):
        return None
    stored = rows.take(np.isin(rows.doc_ids, mine))
    searching = steps.store_signatures(connection, context, mine.tolist(), stored, batch)
    # Since they were read a retention sweep, or work on a later write, may be done. Under the lock taken by
    # store_signatures, a document that is unchanged is one that neither has missed.
    changed = documents.find_changed(
        connection, context.collection_id, stored.doc_ids, stored.revisions, context.retained_seconds
    )
    queue.queue_work(connection, context.leaves, "sign", changed)
    return searching


def _search(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    doc_ids = [task.doc_id for task in tasks]
    finish = partial(queue.finish, connection, context.leaves, "search", lease_id, doc_ids)
    search_documents(connection, context, doc_ids, finish)


def search_documents(
    connection: Connection, context: Context, doc_ids: list[int], finish: Callable[[], object]
) -> None:
    """Find and verify the candidates of new heads; `finish` removes their work from the queue."""
    found = steps.search_committed(connection, context, doc_ids)
    verified = _verify(connection, context, found.linked)
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    finish()
    queue.queue_work(connection, context.leaves, "anchor", found.anchors)
    _store_pairs(connection, context, verified)


def _search_full_buckets(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    """Compare anchors of buckets over the limit with the members of these buckets, a slice at a time."""
    for task in tasks:
        candidates = steps.search_full_buckets(
            connection, context, task.doc_id, task.reached, _MEMBERS_PER_BATCH
        )
        verified = _verify(connection, context, candidates)
        take_transaction_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
        if len(candidates) < _MEMBERS_PER_BATCH:
            queue.finish(connection, context.leaves, "anchor", lease_id, [task.doc_id])
        else:
            reached = int(candidates[-1, 1])
            queue.continue_later(connection, context.leaves, "anchor", lease_id, task.doc_id, reached)
        _store_pairs(connection, context, verified)


def _verify(connection: Connection, context: Context, candidates: Ints) -> list[VerifiedPairs]:
    """Return the pairs among candidates; merge the heads of digests that turn out to have several."""
    verified = [
        steps.verify_candidates(connection, context, candidates[at : at + _CANDIDATES_PER_BATCH])
        for at in range(0, len(candidates), _CANDIDATES_PER_BATCH)
    ]
    connection.commit()
    if context.found.duplicate_digests:
        steps.merge_heads(connection, context, sorted(context.found.duplicate_digests))
        context.found.duplicate_digests.clear()
        connection.commit()
    return verified


def _store_pairs(connection: Connection, context: Context, verified: list[VerifiedPairs]) -> None:
    """Store pairs, extend the clusters by them, and record the step counts."""
    _requeue_stale(connection, context)
    if any(len(batch.left) for batch in verified):
        steps.lock_clusters(connection, context)
    stored = 0
    for batch in verified:
        fresh = pairs.store_pairs(connection, context.leaves, batch)
        steps.extend_clusters(connection, context, fresh)
        stored += len(fresh)
    generation_rows.count_up(connection, context.generation, context.found.counts)
    connection.commit()
    context.found.clear()
    context.totals["pairs"] += stored


def _requeue_stale(connection: Connection, context: Context) -> None:
    """Queue documents whose text differs from what was signed: they are searched again once it is signed.

    A signed document that was deleted is queued for removal; one that is no longer signed is already removed.
    """
    signed = context.tables(connection).signatures.read_signed(sorted(context.found.stale))
    existing = documents.find_existing(connection, context.collection_id, sorted(signed))
    queue.queue_work(connection, context.leaves, "search", sorted(existing), _RETRY_SECONDS)
    queue.queue_work(connection, context.leaves, "sign", sorted(signed.keys() - existing), _RETRY_SECONDS)
    attachments.queue_text_checks(connection, sorted(existing))


def _update_clusters(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    take_transaction_lock(connection, Lock.LINK, context.generation.generation_id)
    leased = queue.finish(connection, context.leaves, "link", lease_id, [task.doc_id for task in tasks])
    if WHOLE in leased:
        steps.rebuild_clusters(connection, context)
    elif leased:
        steps.update_clusters(connection, context, leased)
    connection.commit()


STAGE_WORK: dict[WorkStage, Work] = {
    "compare": _compare,
    "sign": sign,
    "search": _search,
    "anchor": _search_full_buckets,
    "link": _update_clusters,
}
