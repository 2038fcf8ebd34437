"""Dispatch: turn captured changes into work for every generation of a collection."""

from functools import partial

from nearsim_db.indexing import attached_table
from nearsim_db.store import generation_rows
from nearsim_db.store.driver import Engine, notify
from nearsim_db.store.driver.engine import retry_conflicts
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.work import queue

_CHANGES_PER_BATCH = 20_000
_VACUUM_FROM = 5_000  # autovacuum would come within a minute


def dispatch_changes(engine: Engine) -> int:
    """Turn captured changes into work; return how many.

    Changes of attached tables become changes of their documents first. After a TRUNCATE every generation is queued to
    be compared with its documents.
    """
    dispatched, taken = attached_table.catch_up(engine), _CHANGES_PER_BATCH
    with engine.connect() as connection:
        while taken == _CHANGES_PER_BATCH:
            taken, truncated = retry_conflicts(
                connection, partial(queue.dispatch, connection, _CHANGES_PER_BATCH)
            )
            if truncated:
                for generation in generation_rows.list_generations(connection):
                    queue.queue_work(connection, generation.leaves, "compare", [queue.WHOLE])
            connection.commit()
            dispatched += taken
    if dispatched:
        notify.send(engine)
    return dispatched


def discard_indexed_changes(engine: Engine, generation: Generation) -> int:
    """Discard captured writes that a build has just indexed, at once; return how many. The rest is dispatched."""
    with engine.connect() as connection:
        discard = partial(
            queue.discard_indexed_changes, connection, generation.leaves, generation.collection_id
        )
        discarded = retry_conflicts(connection, discard)
        connection.commit()
    if discarded >= _VACUUM_FROM:
        with engine.connect(autocommit=True) as connection:
            queue.vacuum_changes(connection)
    return discarded
