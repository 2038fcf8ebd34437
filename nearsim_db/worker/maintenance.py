"""Services that keep the tables small, their statistics current, and attached tables followed."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import attached_sweep, drop_generation, retention
from nearsim_db.search import events
from nearsim_db.store import generation_rows, lookup_requests, partitions
from nearsim_db.store.attached import attachments, obstacles
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Engine
from nearsim_db.worker.contexts import Scope
from nearsim_db.worker.metrics import Monitor

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


_PAUSES_PER_CHECK = 20.0  # so that checks of many tables use at most a twentieth of the time


class AttachedTables:
    """Sweeps attached tables when due, and logs each problem once while it lasts.

    `between` is called after each slice of a sweep. `problems` are those of the last check, by collection.
    """

    def __init__(self, scope: Scope, monitor: Monitor, between: Callable[[], None]) -> None:
        self.problems: dict[str, str] = {}
        self._scope = scope
        self._monitor = monitor
        self._between = between
        self._check_at = 0.0

    def sweep_due(self) -> None:
        """Sweep the tables whose sweep is due."""
        scope = self._scope
        with scope.engine.connect() as connection:
            due = attachments.find_due_sweeps(connection, scope.collection_id)
        for collection_id in due:
            # The sweep stores the problem of a table, and all workers log it from there.
            with suppress(NotFoundError):
                attached_sweep.sweep(
                    scope.engine, collection_id, wait=False, meanwhile=self._between, stopping=scope.stopping
                )

    def check_if_due(self) -> None:
        """Check the tables, unless the last check took long and was recent."""
        if time.monotonic() >= self._check_at:
            began = time.monotonic()
            self.check()
            self._check_at = time.monotonic() + _PAUSES_PER_CHECK * (time.monotonic() - began)

    def check(self) -> None:
        """Log tables that are not followed, and record why, for the commands of users with other rights."""
        scope = self._scope
        with scope.engine.connect() as connection:
            problems = obstacles.list_problems(connection, scope.collection_id)
            for one in attachments.list_attachments(connection, scope.collection_id) if problems else ():
                if one.collection in problems and one.trouble is None:
                    attachments.record_trouble(connection, one.collection_id, problems[one.collection])
            connection.commit()
        for collection, problem in sorted(problems.items() - self.problems.items()):
            _log.error(problem, extra={"event": "not_followed", "facts": {"collection": collection}})
        self.problems = problems
        self._monitor.not_followed = list(problems.values())
