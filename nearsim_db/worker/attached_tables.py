"""Sweeps of the tables that collections are attached to, and checks that they are followed."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import attached_sweep
from nearsim_db.store.attached import attachments, obstacles
from nearsim_db.worker.metrics import Monitor
from nearsim_db.worker.scope import Scope

_PAUSES_PER_CHECK = 20.0  # so that checks of many tables use at most a twentieth of the time

_log = logging.getLogger("nearsim.worker")


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
