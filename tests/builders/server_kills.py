"""A server that is killed before the n-th statement or commit of a session."""

from typing import Any

import psycopg

from nearsim_db.store.driver import Engine
from nearsim_db.store.driver.connection import Backend
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.engine_hooks import before_commits, on_connect


def kill(cluster: PostgresCluster) -> None:
    """kill -9 the postmaster."""
    postmaster = cluster.status()
    assert postmaster is not None
    postmaster.process.kill()
    postmaster.process.wait()


class ServerKill:
    """Kills the server before a statement or commit of an engine. After that, `is_done` is true."""

    def __init__(self, cluster: PostgresCluster, before_step: int) -> None:
        self._cluster, self._left = cluster, before_step
        self.is_done = False

    def watch(self, engine: Engine) -> None:
        """Count the statements and commits of new connections from here on."""
        # Sessions that are already in the pool have cursors that do not count.
        engine.dispose()

        class Cursor(psycopg.Cursor[Any]):
            def execute(cursor, *arguments: Any, **parameters: Any) -> Any:
                self._step()
                return super().execute(*arguments, **parameters)

        def connected(backend: Backend) -> None:
            backend.cursor_factory = Cursor

        on_connect(engine, connected)
        before_commits(engine, self._step)

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            kill(self._cluster)
            self.is_done = True
