"""Sweeps of the tables that collections are attached to."""

import logging
from collections.abc import Callable
from contextlib import suppress

from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import attached_sweep
from nearsim_db.store.attached import attachments
from nearsim_db.worker.scope import Scope

_log = logging.getLogger("nearsim.worker")


class AttachedTables:
    """Sweeps attached tables when due, and logs each problem once while it lasts.

    `between` is called after each slice of a sweep.
    """

    def __init__(self, scope: Scope, between: Callable[[], None]) -> None:
        self._scope = scope
        self._between = between
        self._problems: set[tuple[str, str]] = set()

    def sweep_due(self) -> None:
        """Sweep the tables whose sweep is due, and log those that cannot be read."""
        scope = self._scope
        with scope.engine.connect() as connection:
            due = attachments.find_due_sweeps(connection, scope.collection_id)
        for collection_id in due:
            # The sweep stores the problem of a table, and all workers log it from there.
            with suppress(NotFoundError):
                attached_sweep.sweep(
                    scope.engine, collection_id, wait=False, meanwhile=self._between, stopping=scope.stopping
                )
        self._log_problems()

    def _log_problems(self) -> None:
        with self._scope.engine.connect() as connection:
            attached = attachments.list_attachments(connection, self._scope.collection_id)
        problems = {(one.collection, one.problem) for one in attached if one.problem is not None}
        for collection, problem in sorted(problems - self._problems):
            _log.error(problem, extra={"event": "not_followed", "facts": {"collection": collection}})
        self._problems = problems
