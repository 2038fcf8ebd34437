"""The work queue of a built generation: keep its index in step with the documents, by any number of workers.

A worker takes a batch of one stage under its lease, does it, and stores the result in a transaction that checks the
lease again. Band rows are committed before their documents search, so of two workers the later to commit sees the
other's rows.
"""

from collections.abc import Callable
from functools import partial

from nearsim_db.errors import NearsimError, NotFoundError, count_of
from nearsim_db.indexing import queue_stages, steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.finish_stages import finish_stages
from nearsim_db.records import Progress, WorkStage
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import is_transient, retry_conflicts
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.work import batches, queue
from nearsim_db.store.work.queue import STAGES, Batch, Task

_BATCH_SIZES: dict[WorkStage, int] = {
    "compare": 1,
    "sign": 1_000,
    "search": 1_000,
    "anchor": 16,
    "link": 2_000,
}


def drain(engine: Engine, context: Context, lease_id: int, progress: Progress) -> None:
    """Work until everything queued for a generation is done, here or by other workers, stage after stage."""
    with engine.connect() as connection:
        queue.await_dispatchers(connection)
        connection.commit()
    work = {stage: partial(work_batch, engine, context, stage, lease_id) for stage in STAGES}
    finish_stages(engine, context.leaves, lease_id, work, progress)


def work_batch(engine: Engine, context: Context, stage: WorkStage, lease_id: int) -> int:
    """Do one batch of a stage; return how many documents were taken.

    Tasks that fail are retried later, apart from the rest, and set aside after a few attempts. Errors that do not come
    from the documents (a lost connection, a full disk) are raised.
    """
    with engine.connect() as connection:
        taken = queue.take(connection, context.leaves, stage, lease_id, _BATCH_SIZES[stage])
        connection.commit()
        for tasks in taken:
            _do_tasks(connection, context, stage, lease_id, tasks, queue_stages.STAGE_WORK[stage])
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
            sign = partial(queue_stages.sign_batch, connection, context, batch, searching)
            _do_batch(connection, context, lease_id, batch, sign)
        for tasks in retries:
            _do_tasks(connection, context, "sign", lease_id, tasks, queue_stages.sign)
    return sum(map(len, retries)) + (len(batch.doc_ids) if batch is not None else 0)


def search_batch(engine: Engine, context: Context, lease_id: int, batch: Batch) -> int:
    """Search for the documents of a batch; return their number. Failures are treated as by `work_batch`."""
    with engine.connect() as connection:
        finish = partial(batches.finish, connection, context.leaves, batch)
        search = partial(queue_stages.search_documents, connection, context, batch.doc_ids, finish)
        _do_batch(connection, context, lease_id, batch, search)
    return len(batch.doc_ids)


def _do_tasks(
    connection: Connection,
    context: Context,
    stage: WorkStage,
    lease_id: int,
    tasks: list[Task],
    work: queue_stages.Work,
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
        context.found.clear()
        work()

    try:
        retry_conflicts(connection, attempt)
    except Exception as error:
        connection.rollback()
        if is_transient(error):
            raise
        return None if _is_dropped(connection, context) else error
    return None


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
    stage: WorkStage,
    lease_id: int,
    doc_ids: list[int],
    error: Exception,
) -> None:
    """Record an error, and remove documents that cannot be signed: their stored signature is of an older text."""
    context.found.clear()
    reason = f"{type(error).__name__}: {error}"
    set_aside = queue.fail(connection, context.leaves, stage, lease_id, doc_ids, reason)
    if stage == "sign" and set_aside:
        steps.store_signatures(connection, context, set_aside, steps.sign_documents(context, []))
    connection.commit()
    context.totals.update({"failed": len(doc_ids) - len(set_aside), "set aside": len(set_aside)})
    context.warn(
        f"{stage} of {count_of(len(doc_ids), 'document')} failed, {len(set_aside)} of them set aside: {reason}"
    )
