"""Commits over several nodes that reach one and not another, and statements that wait on a node."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from nearsim_db.store.embedded.cluster import PostgresCluster
from nearsim_db.store.embedded.processes import end_orphans
from tests.builders.server_kills import kill
from tests.builders.workers import PATIENCE_SECONDS, Application, application, ask

_POLL_SECONDS = 0.002
PREPARED = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"
# Not by xact_start, which the transactions of one ANALYZE share
_WAITING = "SELECT pid, CAST(backend_xid AS text) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


class HalfCommit:
    """Kills a node once a transaction is prepared on it and committed on the coordinator, not yet on the nodes.

    The first `skipped` transactions over the nodes pass. For a commit to stop there, the coordinator has to wait for a
    standby, which does not exist; all other commits are released at once.
    """

    def __init__(
        self, coordinator: PostgresCluster, node: PostgresCluster, database: str, skipped: int
    ) -> None:
        self.is_done = False
        self._coordinator, self._node = coordinator, node
        self._database, self._skipped = database, skipped
        self._is_holding, self._ended = threading.Event(), threading.Event()
        self._watcher = threading.Thread(target=self._watch)

    def __enter__(self) -> "HalfCommit":
        """Hold commits from here on."""
        _set(self._coordinator, "synchronous_standby_names", "missing")
        self._watcher.start()
        with application(self._coordinator.dsn("postgres")) as connection:
            while not self._is_holding.is_set():
                connection.execute("SELECT pg_logical_emit_message(true, 'held', '')")
        return self

    def __exit__(self, *_: object) -> None:
        """Hold commits no longer."""
        self._ended.set()
        self._watcher.join(PATIENCE_SECONDS)
        if not self.is_done:
            reset(self._coordinator, "synchronous_standby_names")

    def _watch(self) -> None:
        released: set[object] = set()
        with (
            application(self._coordinator.dsn("postgres")) as connection,
            application(self._node.dsn(self._database)) as node,
        ):
            while not (self.is_done or self._ended.wait(_POLL_SECONDS)):
                for wait in set(connection.execute(_WAITING.encode()).fetchall()) - released:
                    self._is_holding.set()
                    if ask(node, PREPARED) and not self._skipped:
                        self.is_done = True
                        break
                    self._skipped -= bool(ask(node, PREPARED))
                    released.add(wait)
                    connection.execute("SELECT pg_cancel_backend(%s)", [wait[0]])
        if self.is_done:
            kill(self._node)
            end_orphans(self._node.name)
            reset(self._coordinator, "synchronous_standby_names")


@contextmanager
def locked_shards(connection: Application, node: PostgresCluster, table: str) -> Iterator[Application]:
    """Lock a table's shards on a node for the block, so that reads wait there; a session of the node."""
    query = "SELECT shard_name FROM citus_shards WHERE table_name = %s::regclass AND nodename = %s"
    shards = connection.execute(query, [table, str(node.socket_directory)]).fetchall()
    holding = psycopg.connect(node.dsn(connection.info.dbname))
    try:
        holding.execute("SET citus.enable_manual_changes_to_shards = on")
        for (name,) in shards:
            shard = sql.Identifier(*str(name).split("."))
            holding.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(shard))
        yield holding
    finally:
        holding.close()


def _set(cluster: PostgresCluster, name: str, value: str) -> None:
    command = sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(*name.split(".")), sql.Literal(value))
    _alter(cluster, command)


def reset(cluster: PostgresCluster, name: str) -> None:
    """Give a setting of a server its configured value."""
    _alter(cluster, sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(*name.split("."))))


@contextmanager
def setting(cluster: PostgresCluster, name: str, value: str) -> Iterator[None]:
    """A setting of a server for the block, where a reload is enough."""
    _set(cluster, name, value)
    try:
        yield
    finally:
        reset(cluster, name)


def _alter(cluster: PostgresCluster, command: sql.Composed) -> None:
    with application(cluster.dsn("postgres")) as connection:
        connection.execute(command)
        connection.execute("SELECT pg_reload_conf()")
