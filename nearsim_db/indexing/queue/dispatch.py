"""Dispatch captured changes: turn them into work for every generation of the changed documents' collections.

After a build, discard the changes and the work of documents that the build has indexed already.
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
# A worker that dispatches takes this many changes at once, and leaves all others to other workers.
_MAX_LEASED_CHANGES = 1_000
_DISCARDED_PER_BATCH = 50_000
# If fewer changes were discarded, autovacuum removes them within a minute.
_MIN_VACUUMED_CHANGES = 5_000


def dispatch_changes(engine: Engine) -> int:
    """Turn captured changes into work; return the number of changes.

    Changes of attached tables first become changes of documents. After a TRUNCATE, every generation is queued for the
    stage compare, which compares it with its documents.
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
    """Turn captured changes into work, and take the new sign work of these generations under a lease.

    Returns the number of changes, and a batch for each of these generations that has new work.
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
    """Dispatch a batch of changes, and commit; a change of the whole table is queued as compare for each generation."""
    dispatched = retry_conflicts(
        connection, queue.dispatch, connection, max_changes, lease_id, generation_ids
    )
    if dispatched.whole:
        for generation in generation_rows.list_generations(connection):
            generation.tables(connection).work.add("compare", [queue.WHOLE_GENERATION])
    connection.commit()
    return dispatched


def discard_indexed(engine: Engine, generation: Generation) -> None:
    """Discard the captured changes and the queued work of documents that a build has just indexed.

    Later changes are dispatched and processed as usual.
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
    """Discard a batch of work that other processes dispatched during the build, and commit.

    `after` is the last doc_id of the previous batch. Returns the last doc_id of this batch, or None if it is the last.
    """
    work = generation.tables(connection).work
    if not work.has_unfinished("sign", queue.server_time(connection)):
        connection.commit()
        return None
    # Keep dispatchers from adding work until the commit.
    queue.await_dispatchers(connection)
    last = work.discard_indexed_work(generation.collection_id, after, _DISCARDED_PER_BATCH)
    connection.commit()
    return last
