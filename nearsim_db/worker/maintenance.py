"""Services that keep the tables small and their statistics current."""

import logging
from collections.abc import Callable

from nearsim_db.indexing import drop_generation, retention
from nearsim_db.search import events
from nearsim_db.store import generation_rows, lookup_requests, partitions
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Engine
from nearsim_db.worker.scope import Scope

_EVENTS_AT_ONCE = 100_000

_log = logging.getLogger("nearsim.worker")


def drop_old_lookup_requests(database: Database) -> None:
    """Delete lookup requests whose deadline passed an hour ago."""
    with database.transaction() as connection:
        lookup_requests.drop_old(connection)


def prune_events(engine: Engine, age_seconds: int | None) -> None:
    """Delete events older than an age; none if it is None."""
    if age_seconds is not None:
        events.prune(engine, age_seconds, _EVENTS_AT_ONCE)


def analyze_tables(engine: Engine) -> None:
    """Update the planner's statistics once the tables of generations have doubled."""
    with engine.connect(autocommit=True) as connection:
        partitions.analyze_if_stale(connection)


def drop_generations(scope: Scope) -> None:
    """Drop generations that were in use when their drop was requested."""
    with scope.engine.connect() as connection:
        generations = generation_rows.list_generations(connection, scope.collection_id)
    for one in generations:
        if one.dropping and drop_generation.finish(scope.engine, one, patience_seconds=0.0).finished:
            _log.info(
                f"dropped generation {one.generation_id} of profile {one.profile}",
                extra={
                    "event": "dropped",
                    "facts": {"profile": one.profile, "generation": one.generation_id},
                },
            )


def remove_expired_documents(scope: Scope, between: Callable[[], None]) -> None:
    """Remove documents past their retention from all indexes; `between` is called after each slice."""
    with scope.engine.connect() as connection:
        generations = generation_rows.list_generations(connection, scope.collection_id)
        contexts = [scope.contexts.find(connection, one.generation_id) for one in generations]
    for context in contexts:
        if context is not None and not scope.stopping():
            retention.sweep(scope.engine, context, between)
