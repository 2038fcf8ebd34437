"""Citus clusters that tests start on this machine: a coordinator and nodes, each a PostgreSQL server of its own."""

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from nearsim_db.errors import ServerError
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.embedded.binaries import Binaries
from nearsim_db.store.embedded.cluster import PostgresCluster
from nearsim_db.store.generations import partitions
from nearsim_db.store.schema import revisions
from tests.servers.databases import SETTINGS, Fill, Server
from tests.servers.homes import server_home

_SETTINGS = {
    **SETTINGS,
    "shared_preload_libraries": "citus",
    "max_connections": "120",
    "max_prepared_transactions": "120",
    "citus.enable_statistics_collection": "off",
    # Nodes are reached through their sockets, in folders that only their user may enter.
    "citus.node_conninfo": "sslmode=disable",
    # Commits that a node missed are completed when it is back.
    "citus.recover_2pc_interval": "1s",
}
_PORT = 5432
_ATTEMPTS = 3


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
    """A coordinator and its nodes; a database has the first `nodes` of them, or as many as are named."""

    def __init__(self, home: Path, nodes: int) -> None:
        self._home = home
        self._usual = nodes
        self._numbers = itertools.count()
        self._filled: dict[tuple[Fill | None, int], str] = {}
        self.coordinator = _started(home / "coordinator")
        self.nodes: list[PostgresCluster] = []
        self.start_nodes(nodes)

    @property
    def cluster(self) -> PostgresCluster:
        """The server that clients connect to."""
        return self.coordinator

    def start_nodes(self, amount: int) -> None:
        """Start nodes until there are so many; databases that exist already cannot use the new ones."""
        while len(self.nodes) < amount:
            node = _started(self._home / f"node{len(self.nodes) + 1}")
            # Citus does not create roles that are older than a database's extension.
            for role in _roles(self.coordinator):
                _run(node, sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
            self.nodes.append(node)

    @contextmanager
    def database(
        self, fill: Fill | None = None, nodes: int | None = None, hosts: Sequence[Path] = ()
    ) -> Iterator[str]:
        """The URL of a database whose band rows are on the nodes: with the schema only, or filled by `fill`.

        It is a copy until nodes are started that copies do not have.
        """
        if nodes is None and not hosts and len(self.nodes) == self._usual:
            with self._copy(self._filled_by(fill)) as url:
                yield url
        else:
            with self.empty_database(nodes, hosts) as url:
                _prepare(url, fill)
                yield url

    @contextmanager
    def empty_database(self, nodes: int | None = None, hosts: Sequence[Path] = ()) -> Iterator[str]:
        """The URL of a database with the extension and the nodes, without the schema.

        Nodes are reached through the folders `hosts` of other sockets, if there are any.
        """
        amount = nodes or self._usual
        self.start_nodes(amount)
        with self._copy("template0") as url:
            self._connect_nodes(url, (hosts or [node.socket_directory for node in self.nodes])[:amount])
            yield url

    @contextmanager
    def _copy(self, template: str) -> Iterator[str]:
        clusters = self._clusters()
        name = self._create(template)
        try:
            yield self.coordinator.dsn(name)
        finally:
            for cluster in clusters:
                cluster.start()  # unless it runs: a test that failed may have killed it
                _run_alone(cluster, name, sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))

    def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        command = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        for cluster in self._clusters():
            _run_alone(cluster, template, command.format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def _filled_by(self, fill: Fill | None) -> str:
        """The database that copies are made of, on the coordinator and each node."""
        kind = fill, partitions.MAX_SHARED_DOCUMENTS  # which determines what tables generations have
        if kind not in self._filled:
            name = self._create("template0")
            url = self.coordinator.dsn(name)
            self._connect_nodes(url, [node.socket_directory for node in self.nodes])
            _prepare(url, fill)
            for cluster in self._clusters():
                closing = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name))
                _run(cluster, closing)
            self._filled[kind] = name
        return self._filled[kind]

    def _connect_nodes(self, url: str, hosts: Sequence[Path]) -> None:
        name = conninfo_to_dict(url)["dbname"]
        for cluster in self._clusters():
            with psycopg.connect(cluster.dsn(str(name)), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION citus")
        with psycopg.connect(url, autocommit=True) as connection:
            coordinator = str(self.coordinator.socket_directory)
            connection.execute("SELECT citus_set_coordinator_host(%s, %s)", [coordinator, _PORT])
            for host in hosts:
                add_node(connection, host)

    def _clusters(self) -> list[PostgresCluster]:
        return [self.coordinator, *self.nodes]

    @contextmanager
    def plain_database(self) -> Iterator[str]:
        """The URL of a database of the coordinator's server with the schema, without Citus."""
        with self.bare_database() as url:
            engine = open_engine(url)
            revisions.upgrade(engine)
            engine.dispose()
            yield url

    @contextmanager
    def bare_database(self) -> Iterator[str]:
        """The URL of an empty database of the coordinator's server, without Citus."""
        name = f"plain_{next(self._numbers)}"
        _run(self.coordinator, sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        yield self.coordinator.dsn(name)
        _run(self.coordinator, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


AnyServer = Server | CitusServer


@contextmanager
def citus_server(nodes: int) -> Iterator[CitusServer]:
    """A running coordinator whose databases have so many nodes; a test that uses it is skipped without Citus."""
    if reason := why_no_citus():
        pytest.skip(reason)
    with server_home() as home:
        yield CitusServer(home, nodes)


def add_node(connection: psycopg.Connection[tuple[object, ...]], host: Path) -> None:
    """Add the node with its socket in a folder to the database of a coordinator; it has the database, with Citus."""
    # The user of the tests has the schema's name; found on the path, its types would be sent to the node without it.
    connection.execute("SET search_path = pg_catalog")
    connection.execute("SELECT citus_add_node(%s, %s)", [str(host), _PORT])


def _started(folder: Path) -> PostgresCluster:
    # By which the rebalancer connects to its own server
    settings = {**_SETTINGS, "citus.local_hostname": str(folder / "socket")}
    cluster = PostgresCluster(_binaries(), folder / "data", folder / "socket", settings)
    cluster.initialise()
    cluster.start()
    return cluster


def _prepare(url: str, fill: Fill | None) -> None:
    Database.initialise(url, citus="yes")
    if fill is not None:
        fill(url)


def _run_alone(cluster: PostgresCluster, name: str, command: sql.Composed) -> None:
    """Copy or drop a database once nothing is connected to it; Citus's daemon may start between the two commands."""
    for _ in range(_ATTEMPTS):
        _end_sessions(cluster, name)
        with suppress(psycopg.errors.ObjectInUse):
            return _run(cluster, command)
    return _run(cluster, command)


def _end_sessions(cluster: PostgresCluster, name: str) -> None:
    """End what is connected to a database, also Citus's daemon, which may have been starting when it was closed."""
    ending = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = {}"
    _run(cluster, sql.SQL(ending).format(sql.Literal(name)))


def _roles(cluster: PostgresCluster) -> list[str]:
    with psycopg.connect(cluster.dsn("postgres")) as connection:
        query = "SELECT rolname FROM pg_roles WHERE rolname LIKE 'nearsim\\_%'"
        return [name for (name,) in connection.execute(query)]


def _run(cluster: PostgresCluster, command: sql.Composed) -> None:
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute(command)
