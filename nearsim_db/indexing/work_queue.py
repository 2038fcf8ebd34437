"""The work queue of a built generation: keep its index in step with the documents, by any number of workers.

A worker takes a batch of one stage under its lease, does it, and stores the result in a transaction that checks the
lease again. Band rows are committed before their documents search, so of two workers the later to commit sees the
other's rows.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import NearsimError, NotFoundError, count_of
from nearsim_db.indexing import promotion_events, steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.settle import settle
from nearsim_db.records import Progress
from nearsim_db.similarity.batches import SignatureRows, VerifiedPairs, joined
from nearsim_db.store import documents, generation_rows, pairs, signatures
from nearsim_db.store.attached import attachments
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import is_transient, retry_conflicts
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.work import batches, queue
from nearsim_db.store.work.queue import STAGES, WHOLE, Batch, Stage, Task

_CANDIDATES_PER_BATCH = 16_384
_MEMBERS_PER_BATCH = 4_000
_RETRY_SECONDS = 0.2

_BATCH_SIZES: dict[Stage, int] = {
    "compare": 1,
    "sign": 1_000,
    "search": 1_000,
    "anchor": 16,
    "link": 2_000,
    "publish": 1,
}


def drain(engine: Engine, context: Context, lease_id: int, progress: Progress) -> None:
    """Work until everything queued for a generation is done, here or by other workers, stage after stage."""
    with engine.connect() as connection:
        queue.await_dispatchers(connection)
        connection.commit()
    work = {stage: partial(work_batch, engine, context, stage, lease_id) for stage in STAGES}
    settle(engine, context.leaves, lease_id, work, progress)


def work_batch(engine: Engine, context: Context, stage: Stage, lease_id: int) -> int:
    """Do one batch of a stage; return how many documents were taken.

    Tasks that fail are retried later, apart from the rest, and set aside after a few attempts. Errors that do not come
    from the documents (a lost connection, a full disk) are raised.
    """
    with engine.connect() as connection:
        taken = queue.take(connection, context.leaves, stage, lease_id, _BATCH_SIZES[stage])
        connection.commit()
        for tasks in taken:
            _do_tasks(connection, context, stage, lease_id, tasks, _STAGE_WORK[stage])
    return sum(map(len, taken))


def sign_batch(
    engine: Engine,
    context: Context,
    lease_id: int,
    searching: list[Batch],
    dispatched: Batch | None = None,
) -> int:
    """Do a batch of `sign` as `work_batch` does; `searching` gets the batch for `search_batch` that results.

    This process has the features of these documents. With `dispatched` nothing else is taken.
    """
    retries: list[list[Task]] = []
    with engine.connect() as connection:
        batch = dispatched
        if batch is None:
            batch = batches.take(connection, context.leaves, lease_id, _BATCH_SIZES["sign"])
            retries = queue.take_retries(connection, context.leaves, "sign", lease_id, _BATCH_SIZES["sign"])
            connection.commit()
        if batch is not None:
            sign = partial(_sign_batch, connection, context, batch, searching)
            _do_batch(connection, context, lease_id, batch, sign)
        for tasks in retries:
            _do_tasks(connection, context, "sign", lease_id, tasks, _sign)
    return sum(map(len, retries)) + (len(batch.doc_ids) if batch is not None else 0)


def search_batch(engine: Engine, context: Context, lease_id: int, batch: Batch) -> int:
    """Search for the documents of a batch; return their number. Failures are treated as by `work_batch`."""
    with engine.connect() as connection:
        finish = partial(batches.finish, connection, context.leaves, batch)
        search = partial(_search_documents, connection, context, batch.doc_ids, finish)
        _do_batch(connection, context, lease_id, batch, search)
    return len(batch.doc_ids)


def _do_tasks(
    connection: Connection, context: Context, stage: Stage, lease_id: int, tasks: list[Task], work: "_Work"
) -> None:
    def attempt() -> None:
        if any(task.is_deadly for task in tasks):
            raise NearsimError("each worker that took this task died or lost its lease")
        work(connection, context, lease_id, tasks)

    if error := _find_failure(connection, context, attempt):
        doc_ids = [task.doc_id for task in tasks]
        _record_failure(connection, context, stage, lease_id, doc_ids, error)


def _do_batch(
    connection: Connection, context: Context, lease_id: int, batch: Batch, work: Callable[[], None]
) -> None:
    """Do a batch; if it fails, its documents become work and are retried as such."""
    if (error := _find_failure(connection, context, work)) and (left := batches.split(connection, batch)):
        _record_failure(connection, context, left[0], lease_id, left[1], error)


def _find_failure(connection: Connection, context: Context, work: Callable[[], None]) -> Exception | None:
    """Run the work of a transaction; return the error if it may come from the documents, raise others."""

    def attempt() -> None:
        context.reset_findings()
        work()

    try:
        retry_conflicts(connection, attempt)
    except Exception as error:
        connection.rollback()
        if is_transient(error):
            raise
        return None if _is_dropped(connection, context) else error
    return None


def _compare(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    """Queue every document whose signature is missing or outdated."""
    queue.finish(connection, context.leaves, "compare", lease_id, [WHOLE])
    queue.queue_pending(connection, context.leaves, context.collection_id, context.retained_seconds)
    connection.commit()


def _sign(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    """Sign documents that changed, and remove those that were deleted or are outside the retention window."""
    doc_ids = [task.doc_id for task in tasks]
    changed, rows = _sign_changed(connection, context, doc_ids)
    leased = queue.finish(connection, context.leaves, "sign", lease_id, doc_ids)
    _store_signed(connection, context, np.intersect1d(leased, changed), rows, None)
    connection.commit()


def _sign_batch(connection: Connection, context: Context, batch: Batch, searching: list[Batch]) -> None:
    """Sign the documents of a batch as `_sign` does; `searching` gets the batch if there is something to search."""
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
    current = signatures.find_current(connection, context.leaves, collection_id, doc_ids, age)
    changed = [doc_id for doc_id in doc_ids if doc_id not in current]
    with closing(
        documents.stream_documents(
            connection, collection_id, changed, age, vectors=context.encoder.takes_vectors
        )
    ) as read:
        # This worker is likely to search and verify them next.
        sign = partial(steps.sign_documents, context, keep_features=True)
        rows = joined([sign(batch) for batch in chain(read, ([],))])
    missing = np.setdiff1d(changed, rows.doc_ids)
    attachments.invalidate_texts(connection, collection_id, missing.tolist(), age)
    connection.commit()
    return changed, rows


def _store_signed(
    connection: Connection,
    context: Context,
    mine: NDArray[np.int64],
    rows: SignatureRows,
    batch: Batch | None,
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
    _search_documents(connection, context, doc_ids, finish)


def _search_documents(
    connection: Connection, context: Context, doc_ids: list[int], finish: Callable[[], object]
) -> None:
    """Find and verify the candidates of new heads; `finish` removes their work from the queue."""
    steps.require_bands(connection, context, doc_ids)
    candidates, anchors = steps.search_candidates(connection, context, doc_ids)
    verified = _verify(connection, context, candidates)
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    finish()
    queue.queue_work(connection, context.leaves, "anchor", anchors)
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


def _verify(connection: Connection, context: Context, candidates: NDArray[np.int64]) -> list[VerifiedPairs]:
    """Return the pairs among candidates; merge the heads of digests that turn out to have several."""
    verified = [
        steps.verify_candidates(connection, context, candidates[at : at + _CANDIDATES_PER_BATCH])
        for at in range(0, len(candidates), _CANDIDATES_PER_BATCH)
    ]
    connection.commit()
    if context.duplicate_digests:
        steps.merge_heads(connection, context, sorted(context.duplicate_digests))
        context.duplicate_digests.clear()
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
    generation_rows.count_up(connection, context.generation, context.step_counts)
    connection.commit()
    context.reset_findings()
    context.totals["pairs"] += stored


def _requeue_stale(connection: Connection, context: Context) -> None:
    """Queue documents whose text differs from what was signed: they are searched again once it is signed.

    A signed document that was deleted is queued for removal; one that is no longer signed is already removed.
    """
    signed = signatures.read_signed(connection, context.leaves, sorted(context.stale))
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


def _publish(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    promotion_events.publish_promotion_batch(connection, context.leaves, lease_id)


def _is_dropped(connection: Connection, context: Context) -> bool:
    """Whether the generation was dropped meanwhile."""
    try:
        generation_rows.reread(connection, context.generation)
    except NotFoundError:
        return True
    return False


def _record_failure(
    connection: Connection,
    context: Context,
    stage: Stage,
    lease_id: int,
    doc_ids: list[int],
    error: Exception,
) -> None:
    """Record an error, and remove documents that cannot be signed: their stored signature is of an older text."""
    context.reset_findings()
    reason = f"{type(error).__name__}: {error}"
    set_aside = queue.fail(connection, context.leaves, stage, lease_id, doc_ids, reason)
    if stage == "sign" and set_aside:
        steps.store_signatures(connection, context, set_aside, steps.sign_documents(context, []))
    connection.commit()
    context.totals.update({"failed": len(doc_ids) - len(set_aside), "set aside": len(set_aside)})
    context.warn(
        f"{stage} of {count_of(len(doc_ids), 'document')} failed, {len(set_aside)} of them set aside: {reason}"
    )


_Work = Callable[[Connection, Context, int, list[Task]], object]

_STAGE_WORK: dict[Stage, _Work] = {
    "compare": _compare,
    "sign": _sign,
    "search": _search,
    "anchor": _search_full_buckets,
    "link": _update_clusters,
    "publish": _publish,
}
