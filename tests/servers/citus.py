"""Citus clusters that tests start on this machine: a coordinator and nodes, each a PostgreSQL server of its own."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from nearsim_db.errors import ServerError
from nearsim_db.store.citus import placement
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.embedded.binaries import Binaries
from nearsim_db.store.embedded.cluster import Cluster
from nearsim_db.store.schema import revisions
from tests.servers.databases import SETTINGS, Fill
from tests.servers.homes import server_home

_SETTINGS = {
    **SETTINGS,
    "shared_preload_libraries": "citus",
    "max_connections": "120",
    "max_prepared_transactions": "120",
    "citus.shard_count": "4",
    "citus.enable_statistics_collection": "off",
    # Nodes are reached through their sockets, in folders that only their user may enter.
    "citus.node_conninfo": "sslmode=disable",
    # Commits that a node missed are completed when it is back.
    "citus.recover_2pc_interval": "1s",
}
_PORT = 5432

# Tests that cannot run on a cluster, by a part of their id, with the reason
DIFFERENT = {
    "test_verify_index.py::test_faults_are_reported_and_repaired[pg15-a band row too many]": (
        "Citus refuses the damage: a subquery in VALUES"
    ),
    "test_verify_index.py::test_faults_are_reported_and_repaired[pg15-a band row of another hash]": (
        "Citus refuses the damage: an update of the distribution column"
    ),
    "test_verify_index.py::test_damaged_tables_are_reported_and_the_index_rebuilt[pg15-an index misses a row]": (
        "the damage is done in the catalog of one server; the index is on the nodes"
    ),
}


def why_no_citus() -> str:
    """The reason why there is no Citus on this machine, empty if there is."""
    folder = os.environ.get("NEARSIM_CITUS_PG")
    if not folder:
        return "NEARSIM_CITUS_PG does not name the bin folder of a PostgreSQL with Citus"
    if not (Path(folder) / "postgres").exists():
        return f"NEARSIM_CITUS_PG={folder} has no program postgres"
    return ""


def citus_major() -> int:
    """The major of the PostgreSQL with Citus."""
    return _binaries().major


def _binaries() -> Binaries:
    if reason := why_no_citus():
        raise ServerError(reason)
    return Binaries(Path(os.environ["NEARSIM_CITUS_PG"]))


class CitusServer:
    """A coordinator and nodes; every database of the coordinator has all nodes."""

    def __init__(self, coordinator: Cluster, nodes: list[Cluster]) -> None:
        self.coordinator = coordinator
        self.nodes = nodes
        self._numbers = itertools.count()

    @contextmanager
    def database(self, fill: Fill | None = None) -> Iterator[str]:
        """The URL of a database whose band rows are on the nodes, filled by `fill`."""
        with self.empty_database() as url:
            engine = open_engine(url)
            revisions.upgrade(engine)
            with engine.begin() as connection:
                assert placement.distribute(connection, "yes")
            engine.dispose()
            if fill is not None:
                fill(url)
            yield url

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """The URL of a database with the extension and all nodes, without the schema."""
        name = f"test_{next(self._numbers)}"
        clusters = [self.coordinator, *self.nodes]
        for cluster in clusters:
            _run(cluster, sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
            with psycopg.connect(cluster.dsn(name), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION citus")
        with psycopg.connect(self.coordinator.dsn(name), autocommit=True) as connection:
            connection.execute("SELECT citus_set_coordinator_host(%s, %s)", [_host(self.coordinator), _PORT])
            for node in self.nodes:
                connection.execute("SELECT citus_add_node(%s, %s)", [_host(node), _PORT])
        yield self.coordinator.dsn(name)
        for cluster in clusters:
            _run(cluster, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def plain_database(self) -> Iterator[str]:
        """The URL of a database of the coordinator's server with the schema, without Citus."""
        name = f"plain_{next(self._numbers)}"
        _run(self.coordinator, sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        engine = open_engine(self.coordinator.dsn(name))
        revisions.upgrade(engine)
        engine.dispose()
        yield self.coordinator.dsn(name)
        _run(self.coordinator, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def citus_server(nodes: int) -> Iterator[CitusServer]:
    """A running coordinator with so many nodes."""
    with server_home() as home:
        clusters = [
            Cluster(_binaries(), home / name / "data", home / name / "socket", _SETTINGS)
            for name in ("coordinator", *(f"node{number}" for number in range(1, nodes + 1)))
        ]
        for cluster in clusters:
            cluster.initialise()
            cluster.start()
        yield CitusServer(clusters[0], clusters[1:])


def _host(cluster: Cluster) -> str:
    return str(cluster.socket_directory)


def _run(cluster: Cluster, command: sql.Composed) -> None:
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute(command)
