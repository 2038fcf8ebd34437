"""Rounds: how a living index follows its documents, by whoever works on it, and by any number of them at once.

A round takes a batch of one stage of a generation's work under a lease, does it, and stores it in a transaction in
which the lease is checked again. Band rows are committed before their documents search, so that of two the later to
commit sees the earlier.
"""

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import DatabaseError, NearsimError, NotFoundError, count_of
from nearsim_db.indexing import attached_table, promotion_events, steps
from nearsim_db.indexing.context import Context
from nearsim_db.records import Progress
from nearsim_db.similarity.batches import VerifiedPairs, joined
from nearsim_db.store import catalog, documents, pairs, signatures
from nearsim_db.store.attached import attachments
from nearsim_db.store.driver import Connection, Engine, notify
from nearsim_db.store.driver.engine import again_after_conflicts, is_passing
from nearsim_db.store.driver.locks import Lock, hold_lock
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import leases, queue
from nearsim_db.store.work.queue import STAGES, WHOLE, Stage, Task

_CHANGES_AT_ONCE = 20_000
_CANDIDATES_AT_ONCE = 16_384
_MEMBERS_AT_ONCE = 4_000
_STALE_SECONDS = 0.2
_POLL_SECONDS = 0.05

_BATCHES: dict[Stage, int] = {
    "compare": 1,
    "sign": 1_000,
    "search": 500,
    "anchor": 16,
    "link": 2_000,
    "tell": 1,
}


def dispatch(engine: Engine) -> int:
    """Turn noted changes into work; returns how many. After a TRUNCATE indexes are compared with their documents.

    What was noted of tables that collections follow becomes changes of their documents first.
    """
    done, taken = attached_table.catch_up(engine), _CHANGES_AT_ONCE
    with engine.connect() as connection:
        while taken == _CHANGES_AT_ONCE:
            taken, everything = again_after_conflicts(
                connection, partial(queue.dispatch, connection, _CHANGES_AT_ONCE)
            )
            if everything:
                for generation in catalog.list_generations(connection):
                    queue.queue_work(connection, generation.leaves, "compare", [WHOLE])
            connection.commit()
            done += taken
    if done:
        notify.send(engine)
    return done


def work_once(engine: Engine, context: Context, stage: Stage, lease_id: int) -> int:
    """One round of a stage: returns how many documents were taken.

    What cannot be done is tried again later, apart from the rest, and set aside after a few attempts. Errors that say
    nothing of the documents (a lost connection, a full disk) are raised.
    """
    with engine.connect() as connection:
        batches = queue.take(connection, context.leaves, stage, lease_id, _BATCHES[stage])
        connection.commit()
        for tasks in batches:
            try:
                if any(task.is_deadly for task in tasks):
                    raise NearsimError("each worker that was at it died or went silent")
                again_after_conflicts(
                    connection, partial(_attempt, connection, context, stage, lease_id, tasks)
                )
            except Exception as error:
                connection.rollback()
                if is_passing(error):
                    raise
                if not _is_gone(connection, context):
                    _fail(connection, context, stage, lease_id, tasks, error)
    return sum(map(len, batches))


def settle(engine: Engine, context: Context, lease_id: int, progress: Progress) -> None:
    """Work until all that was queued for a generation before is done, here or by others, stage after stage."""
    with engine.connect() as connection:
        queue.await_dispatchers(connection)
        for stage in STAGES:
            work = partial(work_once, engine, context, stage, lease_id)
            _settle(connection, context.leaves, stage, lease_id, work, progress)
        connection.commit()


def tell(engine: Engine, leaves: Leaves, lease_id: int, progress: Progress) -> None:
    """Tell all of a generation that went live, here or by others, whether or not this code could have built it."""
    with engine.connect() as connection:
        work = partial(promotion_events.tell_once, engine, leaves, lease_id)
        _settle(connection, leaves, "tell", lease_id, work, progress)
        connection.commit()


def _settle(
    connection: Connection,
    leaves: Leaves,
    stage: Stage,
    lease_id: int,
    work: Callable[[], int],
    progress: Progress,
) -> None:
    before, done = queue.server_time(connection), 0
    # What is queued meanwhile is not waited for: others may write faster than this ends.
    while queue.unfinished(connection, leaves, stage, before):
        connection.commit()
        taken = work()
        if taken:
            done += taken
            progress(_SHOWN[stage], done, None)
            continue
        again_after_conflicts(connection, partial(leases.free_lost_work, connection))
        if not leases.beat(connection, lease_id):
            raise DatabaseError(
                "others took this process for dead, as nothing was heard of it; run the same command again"
            )
        connection.commit()
        time.sleep(_POLL_SECONDS)


def _attempt(
    connection: Connection, context: Context, stage: Stage, lease_id: int, tasks: list[Task]
) -> None:
    context.forget_findings()
    _WORK[stage](connection, context, lease_id, tasks)


def _compare(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    queue.finish(connection, context.leaves, "compare", lease_id, [WHOLE])
    collection_id, age = context.generation.collection_id, context.encoder.profile.recipe.retain.seconds
    queue.queue_pending(connection, context.leaves, collection_id, age)
    connection.commit()


def _sign(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    doc_ids = [task.doc_id for task in tasks]
    collection_id, age = context.generation.collection_id, context.encoder.profile.recipe.retain.seconds
    current = signatures.read_current(connection, context.leaves, collection_id, doc_ids, age)
    changed = [doc_id for doc_id in doc_ids if doc_id not in current]
    with closing(
        documents.stream_documents(
            connection, collection_id, changed, age, vectors=context.encoder.takes_vectors
        )
    ) as batches:
        rows = joined([steps.sign(context, batch) for batch in chain(batches, ([],))])
    missing = np.setdiff1d(changed, rows.doc_ids)
    attachments.doubt_texts(connection, collection_id, missing.tolist(), age)
    connection.commit()
    held = queue.finish(connection, context.leaves, "sign", lease_id, doc_ids)
    mine = np.intersect1d(held, changed)
    if len(mine):
        steps.store(connection, context, mine.tolist(), rows.take(np.isin(rows.doc_ids, mine)))
        # A sweep of the window may have passed since they were read; it has not if they are inside under store's lock.
        outside = documents.find_outside(connection, collection_id, mine, age)
        queue.queue_work(connection, context.leaves, "sign", np.intersect1d(outside, rows.doc_ids))
    connection.commit()


def _search(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    doc_ids = [task.doc_id for task in tasks]
    candidates, wide = steps.search(connection, context, doc_ids)
    verified = _verify(connection, context, candidates)
    hold_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    queue.finish(connection, context.leaves, "search", lease_id, doc_ids)
    queue.queue_work(connection, context.leaves, "anchor", wide)
    _keep(connection, context, verified)


def _widen(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    for task in tasks:
        candidates = steps.widen(connection, context, task.doc_id, task.reached, _MEMBERS_AT_ONCE)
        verified = _verify(connection, context, candidates)
        hold_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
        if len(candidates) < _MEMBERS_AT_ONCE:
            queue.finish(connection, context.leaves, "anchor", lease_id, [task.doc_id])
        else:
            reached = int(candidates[-1, 1])
            queue.continue_later(connection, context.leaves, "anchor", lease_id, task.doc_id, reached)
        _keep(connection, context, verified)


def _verify(connection: Connection, context: Context, candidates: NDArray[np.int64]) -> list[VerifiedPairs]:
    """The pairs among candidates; digests that turn out to have several heads are merged on the way."""
    verified = [
        steps.verify(connection, context, candidates[at : at + _CANDIDATES_AT_ONCE])
        for at in range(0, len(candidates), _CANDIDATES_AT_ONCE)
    ]
    connection.commit()
    if context.doubles:
        steps.merge_heads(connection, context, sorted(context.doubles))
        context.doubles.clear()
        connection.commit()
    return verified


def _keep(connection: Connection, context: Context, verified: list[VerifiedPairs]) -> None:
    """Store pairs and let clusters grow by them, and write down what else verification found."""
    _put_off(connection, context)
    stored = 0
    for found in verified:
        fresh = pairs.store_pairs(connection, context.leaves, found)
        steps.join(connection, context, fresh)
        stored += len(fresh)
    catalog.count_up(connection, context.generation, context.figures)
    connection.commit()
    context.forget_findings()
    context.tally["pairs"] += stored


def _put_off(connection: Connection, context: Context) -> None:
    """What has another text than it is signed with is being changed, and is searched once it is signed again.

    What is signed and gone leaves the index; what is not signed any more has left it.
    """
    signed = signatures.read_signed(connection, context.leaves, sorted(context.stale))
    there = documents.find_there(connection, context.generation.collection_id, sorted(signed))
    queue.queue_work(connection, context.leaves, "search", sorted(there), _STALE_SECONDS)
    queue.queue_work(connection, context.leaves, "sign", sorted(signed.keys() - there), _STALE_SECONDS)
    attachments.note_texts(connection, sorted(there))


def _link(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    hold_lock(connection, Lock.LINK, context.generation.generation_id)
    held = queue.finish(connection, context.leaves, "link", lease_id, [task.doc_id for task in tasks])
    if WHOLE in held:
        steps.link(connection, context)
    elif held:
        steps.relink(connection, context, held)
    connection.commit()


def _tell(connection: Connection, context: Context, lease_id: int, tasks: list[Task]) -> None:
    promotion_events.tell_slice(connection, context.leaves, lease_id)


def _is_gone(connection: Connection, context: Context) -> bool:
    """Whether the generation was dropped meanwhile."""
    try:
        catalog.reread(connection, context.generation)
    except NotFoundError:
        return True
    return False


def _fail(
    connection: Connection, context: Context, stage: Stage, lease_id: int, tasks: list[Task], error: Exception
) -> None:
    """Write down what went wrong. What cannot be signed leaves the index: its signature is of another text."""
    context.forget_findings()
    told = f"{type(error).__name__}: {error}"
    doc_ids = [task.doc_id for task in tasks]
    set_aside = queue.fail(connection, context.leaves, stage, lease_id, doc_ids, told)
    if stage == "sign" and set_aside:
        steps.store(connection, context, set_aside, steps.sign(context, []))
    connection.commit()
    context.tally.update({"failed": len(tasks) - len(set_aside), "set aside": len(set_aside)})
    context.warn(
        f"{stage} of {count_of(len(tasks), 'document')} failed, {len(set_aside)} of them set aside: {told}"
    )


_WORK: dict[Stage, Callable[[Connection, Context, int, list[Task]], None]] = {
    "compare": _compare,
    "sign": _sign,
    "search": _search,
    "anchor": _widen,
    "link": _link,
    "tell": _tell,
}
_SHOWN = {
    "compare": "compare",
    "sign": "sign",
    "search": "search",
    "anchor": "search",
    "link": "clusters",
    "tell": "events",
}
