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
from nearsim_db.similarity.batches import VerifiedPairs, joined
from nearsim_db.store import documents, generation_rows, pairs, signatures
from nearsim_db.store.attached import attachments
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import is_transient, retry_conflicts
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.work import queue
from nearsim_db.store.work.queue import STAGES, WHOLE, Stage, Task

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
        batches = queue.take(connection, context.leaves, stage, lease_id, _BATCH_SIZES[stage])
        connection.commit()
        for tasks in batches:
            _do_tasks(connection, context, stage, lease_id, tasks, _STAGE_WORK[stage])
    return sum(map(len, batches))


def sign_batch(
    engine: Engine,
    context: Context,
    lease_id: int,
    searching: list[Task],
    leased: list[Task] | None = None,
) -> int:
    """Do a batch of `sign` as `work_batch` does; `searching` gets the work of `search` that is now under the lease.

    `search_leased` does it: this process has the features of these documents. With `leased`, which is under the lease
    already, nothing is taken.
    """

    def sign(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
        searching.extend(_sign(connection, context, lease_id, tasks, keeps_search=True))

    with engine.connect() as connection:
        if leased is None:
            batches = queue.take(connection, context.leaves, "sign", lease_id, _BATCH_SIZES["sign"])
            connection.commit()
        else:
            batches = [leased]
        for tasks in batches:
            _do_tasks(connection, context, "sign", lease_id, tasks, sign)
    return sum(map(len, batches))


def search_leased(engine: Engine, context: Context, lease_id: int, tasks: list[Task]) -> int:
    """Do work of `search` that is under the lease; return its size. Failures are treated as by `work_batch`."""
    with engine.connect() as connection:
        _do_tasks(connection, context, "search", lease_id, tasks, _search)
    return len(tasks)


def _do_tasks(
    connection: Connection, context: Context, stage: Stage, lease_id: int, tasks: list[Task], work: "_Work"
) -> None:
    def attempt() -> None:
        context.reset_findings()
        work(connection, context, lease_id, tasks)

    try:
        if any(task.is_deadly for task in tasks):
            raise NearsimError("each worker that took this task died or lost its lease")
        retry_conflicts(connection, attempt)
    except Exception as error:
        connection.rollback()
        if is_transient(error):
            raise
        if not _is_dropped(connection, context):
            _record_failure(connection, context, stage, lease_id, tasks, error)


def _compare(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    """Queue every document whose signature is missing or outdated."""
    queue.finish(connection, context.leaves, "compare", lease_id, [WHOLE])
    queue.queue_pending(connection, context.leaves, context.collection_id, context.retained_seconds)
    connection.commit()


def _sign(
    connection: Connection,
    context: Context,
    lease_id: int,
    tasks: list[Task],
    *,
    keeps_search: bool = False,
) -> list[Task]:
    """Sign documents that changed, and remove those that were deleted or are outside the retention window.

    Returns the work of `search` that `keeps_search` puts under the lease.
    """
    doc_ids = [task.doc_id for task in tasks]
    collection_id, age = context.collection_id, context.retained_seconds
    current = signatures.find_current(connection, context.leaves, collection_id, doc_ids, age)
    changed = [doc_id for doc_id in doc_ids if doc_id not in current]
    with closing(
        documents.stream_documents(
            connection, collection_id, changed, age, vectors=context.encoder.takes_vectors
        )
    ) as batches:
        # This worker is likely to search and verify them next.
        sign = partial(steps.sign_documents, context, keep_features=True)
        rows = joined([sign(batch) for batch in chain(batches, ([],))])
    missing = np.setdiff1d(changed, rows.doc_ids)
    attachments.invalidate_texts(connection, collection_id, missing.tolist(), age)
    connection.commit()
    likely = rows.doc_ids[(rows.counts > 0) & keeps_search]
    queued = queue.continue_with_search(connection, context.leaves, lease_id, likely)
    rest = np.setdiff1d(doc_ids, queued).tolist()
    leased = [*queued, *queue.finish(connection, context.leaves, "sign", lease_id, rest)]
    mine, searching = np.intersect1d(leased, changed), list[Task]()
    if len(mine):
        stored = rows.take(np.isin(rows.doc_ids, mine))
        lease = lease_id if keeps_search else None
        searching = steps.store_signatures(connection, context, mine.tolist(), stored, lease, queued)
        # A retention sweep may have run since they were read. Under the lock taken by store_signatures, a document
        # inside the window is one that no sweep has missed.
        outside = documents.find_past_retention(connection, collection_id, mine, age)
        queue.queue_work(connection, context.leaves, "sign", np.intersect1d(outside, rows.doc_ids))
    connection.commit()
    return searching


def _search(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    """Find and verify the candidates of new heads."""
    doc_ids = [task.doc_id for task in tasks]
    steps.require_bands(connection, context, doc_ids)
    candidates, anchors = steps.search_candidates(connection, context, doc_ids)
    verified = _verify(connection, context, candidates)
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    queue.finish(connection, context.leaves, "search", lease_id, doc_ids)
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
    connection: Connection, context: Context, stage: Stage, lease_id: int, tasks: list[Task], error: Exception
) -> None:
    """Record an error, and remove documents that cannot be signed: their stored signature is of an older text."""
    context.reset_findings()
    reason = f"{type(error).__name__}: {error}"
    doc_ids = [task.doc_id for task in tasks]
    set_aside = queue.fail(connection, context.leaves, stage, lease_id, doc_ids, reason)
    if stage == "sign" and set_aside:
        steps.store_signatures(connection, context, set_aside, steps.sign_documents(context, []))
    connection.commit()
    context.totals.update({"failed": len(tasks) - len(set_aside), "set aside": len(set_aside)})
    context.warn(
        f"{stage} of {count_of(len(tasks), 'document')} failed, {len(set_aside)} of them set aside: {reason}"
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
