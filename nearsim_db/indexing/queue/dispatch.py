"""Dispatch: turn captured changes into work for every generation of a collection."""

from collections.abc import Mapping, Sequence

from nearsim_db.indexing import attached_table
from nearsim_db.records import GenerationId
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import retry_conflicts
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.work import queue
from nearsim_db.store.work.queue import Batch, Dispatched

_CHANGES_PER_BATCH = 20_000
_LEASED_PER_BATCH = 1_000  # the rest is for other workers
_DISCARDED_PER_BATCH = 50_000
_VACUUM_FROM = 5_000  # autovacuum would come within a minute


def dispatch_changes(engine: Engine) -> int:
    """Turn captured changes into work; return how many.

    Changes of attached tables become changes of their documents first. After a TRUNCATE every generation is queued to
    be compared with its documents.
    """
    dispatched, taken = attached_table.catch_up(engine), _CHANGES_PER_BATCH
    with engine.connect() as connection:
        while taken == _CHANGES_PER_BATCH:
            taken = _dispatch(connection, _CHANGES_PER_BATCH).changes
            dispatched += taken
    if dispatched:
        engine.notify()
    return dispatched


def dispatch_leased(
    engine: Engine, lease_id: int, generation_ids: Sequence[GenerationId]
) -> tuple[int, Mapping[GenerationId, Batch]]:
    """Turn captured changes into work, new work to sign of these generations into batches under a worker's lease.

    Returns the number of changes, and the batches.
    """
    compared = attached_table.catch_up(engine)
    with engine.connect() as connection:
        dispatched = _dispatch(connection, _LEASED_PER_BATCH, lease_id, generation_ids)
    if compared or dispatched.changes:
        engine.notify()
    return compared + dispatched.changes, dispatched.batches


def _dispatch(
    connection: Connection,
    max_changes: int,
    lease_id: int | None = None,
    generation_ids: Sequence[GenerationId] = (),
) -> Dispatched:
    """Dispatch a batch of changes and commit; a change that means every document is queued for each generation."""
    dispatched = retry_conflicts(
        connection, queue.dispatch, connection, max_changes, lease_id, generation_ids
    )
    if dispatched.whole:
        for generation in generation_rows.list_generations(connection):
            generation.tables(connection).work.add("compare", [queue.WHOLE])
    connection.commit()
    return dispatched


def discard_indexed(engine: Engine, generation: Generation) -> None:
    """Discard, in few statements, captured writes and queued work that a build has just indexed.

    The rest is dispatched and processed.
    """
    with engine.connect() as connection:
        work = generation.tables(connection).work
        discarded = retry_conflicts(connection, work.discard_indexed_changes, generation.collection_id)
        connection.commit()
        last: int | None = 0
        while last is not None:
            last = retry_conflicts(connection, _discard_work, connection, generation, last)
    if discarded >= _VACUUM_FROM:
        with engine.connect(autocommit=True) as connection:
            queue.vacuum_changes(connection)


def _discard_work(connection: Connection, generation: Generation, after: int) -> int | None:
    """Discard work that other processes dispatched during the build, a batch in a transaction."""
    work = generation.tables(connection).work
    if not work.has_unfinished("sign", queue.server_time(connection)):
        connection.commit()
        return None
    queue.await_dispatchers(connection)
    last = work.discard_indexed_work(generation.collection_id, after, _DISCARDED_PER_BATCH)
    connection.commit()
    return last
