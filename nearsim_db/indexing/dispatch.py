"""Dispatch: turn captured changes into work for every generation of a collection."""

from functools import partial

from nearsim_db.indexing import attached_table
from nearsim_db.store import generation_rows
from nearsim_db.store.driver import Engine, notify
from nearsim_db.store.driver.engine import retry_conflicts
from nearsim_db.store.work import queue

_CHANGES_PER_BATCH = 20_000


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
