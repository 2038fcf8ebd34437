"""A fresh database per test, cloned from a template on a server that is started on first use."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
from psycopg import sql

from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.embedded.cluster import PostgresCluster
from nearsim_db.store.generations import partitions
from nearsim_db.store.schema import revisions
from tests.servers.homes import server_home
from tests.servers.programs import programs

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "wal_level": "logical",
    # As in the embedded server: compiling a plan takes longer than any query of a test.
    "jit": "off",
    # Databases live for a second; vacuuming and analysing them would only take time from the tests.
    "autovacuum": "off",
}
_TEMPLATE = "template_nearsim"

Fill = Callable[[str], None]


class Server:
    """A running server of one major, with a template database that has the schema."""

    def __init__(self, cluster: PostgresCluster) -> None:
        self.cluster = cluster
        self._numbers = itertools.count()
        self._filled: dict[tuple[Fill, int], str] = {}

    @contextmanager
    def database(self, fill: Fill | None = None) -> Iterator[str]:
        """The URL of a database for the block: with the schema only, or a copy of one filled by `fill`."""
        with self._copy(self._filled_by(fill) if fill else _TEMPLATE) as url:
            yield url

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """The URL of a database without the schema."""
        with self._copy("template0") as url:
            yield url

    @contextmanager
    def _copy(self, template: str) -> Iterator[str]:
        name = self._create(template)
        yield self.cluster.dsn(name)
        self._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        # Copying files takes half as long as logging their blocks.
        command = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._run(command.format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def _filled_by(self, fill: Fill) -> str:
        kind = fill, partitions.MAX_SHARED_DOCUMENTS  # which determines what tables generations have
        if kind not in self._filled:
            name = self._create(_TEMPLATE)
            fill(self.cluster.dsn(name))
            self._filled[kind] = name
        return self._filled[kind]

    def _run(self, command: sql.Composed) -> None:
        with psycopg.connect(self.cluster.dsn("postgres"), autocommit=True) as connection:
            connection.execute(command)


class Servers:
    """Servers by major version, started on first use and stopped with the stack."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running: dict[int, Server] = {}

    def of_major(self, major: int) -> Server:
        """The server of a major."""
        if major not in self._running:
            self._running[major] = self._stack.enter_context(own_server(major))
        return self._running[major]


@contextmanager
def own_server(major: int) -> Iterator[Server]:
    """A server of a major that no other test uses."""
    with server_home() as home:
        cluster = PostgresCluster(programs()[major], home / "data", home / "socket", SETTINGS)
        cluster.initialise(_TEMPLATE)
        cluster.start()
        engine = open_engine(cluster.dsn(_TEMPLATE))
        revisions.upgrade(engine)
        engine.dispose()
        yield Server(cluster)
        cluster.stop()
