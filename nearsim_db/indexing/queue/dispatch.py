"""Dispatch captured changes: turn them into work for every generation of their collection.

After a build, discard the changes and the work whose documents the build has indexed already.
"""

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
# A worker that dispatches takes so many documents at once; it leaves the rest to other workers.
_MAX_LEASED_CHANGES = 1_000
_DISCARDED_PER_BATCH = 50_000
# Fewer are left to autovacuum, which comes within a minute.
_MIN_VACUUMED_CHANGES = 5_000


def dispatch_changes(engine: Engine) -> int:
    """Turn captured changes into work; return how many.

    Changes of attached tables become changes of their documents first. After a TRUNCATE, every generation gets the work
    to compare itself with its documents.
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
    """Turn captured changes into work, and put the new work of these generations in the stage sign under a lease.

    Returns the number of changes, and a batch for each generation that has new work.
    """
    compared = attached_table.catch_up(engine)
    with engine.connect() as connection:
        dispatched = _dispatch(connection, _MAX_LEASED_CHANGES, lease_id, generation_ids)
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
            generation.tables(connection).work.add("compare", [queue.WHOLE_GENERATION])
    connection.commit()
    return dispatched


def discard_indexed(engine: Engine, generation: Generation) -> None:
    """Discard, in few statements, captured changes and queued work that a build has just indexed.

    What it has not indexed is dispatched and processed as usual.
    """
    with engine.connect() as connection:
        work = generation.tables(connection).work
        discarded = retry_conflicts(connection, work.discard_indexed_changes, generation.collection_id)
        connection.commit()

        last_doc_id: int | None = 0
        while last_doc_id is not None:
            last_doc_id = retry_conflicts(connection, _discard_work, connection, generation, last_doc_id)

    if discarded >= _MIN_VACUUMED_CHANGES:
        # VACUUM cannot run in a transaction.
        with engine.connect(autocommit=True) as connection:
            queue.vacuum_changes(connection)


def _discard_work(connection: Connection, generation: Generation, after: int) -> int | None:
    """Discard a batch of work that other processes dispatched during the build; commit.

    `after` is the last doc_id of the batch before. Returns the last doc_id of this one, None if it is the last batch.
    """
    work = generation.tables(connection).work
    if not work.has_unfinished("sign", queue.server_time(connection)):
        connection.commit()
        return None
    # From here to the commit no dispatcher may add work.
    queue.await_dispatchers(connection)
    last = work.discard_indexed_work(generation.collection_id, after, _DISCARDED_PER_BATCH)
    connection.commit()
    return last
