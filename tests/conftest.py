"""Real servers of every major at hand, and a fresh database for each test, cloned from a template."""

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from zlib import crc32

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Connection, Engine, text
from xdist.scheduler import LoadScopeScheduling

from nearsim_db.server.cluster import Cluster
from nearsim_db.store import schema
from nearsim_db.store.engine import open_engine
from tests.servers import server_binaries, server_home

# How fast examples come depends on what else the machine does.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_SERVERS = {binaries.major: binaries for binaries in server_binaries()}
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "wal_level": "logical",
    # As the embedded server has it: to compile a plan takes longer than any query of a test.
    "jit": "off",
}
_NUMBERS = itertools.count()

# What takes longest comes first, so that what is left for the end is short and no process waits for another.
_ORDER = ("contract", "store", "migration", "acceptance", "golden", "unit")

Fill = Callable[[str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `make load` and `make each` ask for."""
    parser.addoption("--documents", type=int, default=5_000, help="how many are reindexed under load")
    parser.addoption("--each-major", action="store_true", help="run what any major could do on each")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """A module stays in one process, and all of tests/contract in one, so that kernels are compiled once."""
    schedule = LoadScopeScheduling(config, log)
    schedule._split_scope = _scope
    return schedule


def _scope(nodeid: str) -> str:
    return "contract" if _folder(nodeid) == "contract" else nodeid.rsplit("::", 1)[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests in the order of their folders; leave each to one major, unless they are to run on each."""
    items.sort(key=lambda item: _ORDER.index(_folder(item.nodeid)))
    if config.getoption("each_major"):
        return
    alike: dict[str, list[pytest.Item]] = {}
    for item in items:
        alike.setdefault(re.sub(r"\bpg\d+\b", "", item.nodeid), []).append(item)
    kept = {id(group[crc32(name.encode()) % len(group)]) for name, group in alike.items()}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def _folder(nodeid: str) -> str:
    return nodeid.split("/")[1]


class Servers:
    """Servers by major version, started when first asked for, each with a template that has the schema in it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._clusters: dict[int, Cluster] = {}
        self._filled: dict[tuple[int, Fill], str] = {}

    def new_database(self, major: int, template: str = "template_nearsim") -> tuple[Engine, str]:
        """A database of its own with the schema in place: an administrator's engine to drop it, and its URL."""
        cluster = self._clusters.get(major) or self._start(major)
        name = f"test_{next(_NUMBERS)}"
        admin = open_engine(cluster.dsn("postgres")).execution_options(isolation_level="AUTOCOMMIT")
        # Copying files takes half as long as logging their blocks.
        _run(admin, f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        return admin, cluster.dsn(name)

    @contextmanager
    def database(self, major: int, fill: Fill | None = None) -> Iterator[str]:
        """The URL of a database for the block, with the schema in place, or a copy of one that was filled once."""
        admin, url = self.new_database(major, self._template(major, fill) if fill else "template_nearsim")
        yield url
        _run(admin, f'DROP DATABASE "{_name(url)}" WITH (FORCE)')
        admin.dispose()

    def _template(self, major: int, fill: Fill) -> str:
        if (major, fill) not in self._filled:
            admin, url = self.new_database(major)
            admin.dispose()
            fill(url)
            self._filled[major, fill] = _name(url)
        return self._filled[major, fill]

    def _start(self, major: int) -> Cluster:
        home = self._stack.enter_context(server_home())
        cluster = Cluster(_SERVERS[major], home / "data", home / "socket", _SETTINGS)
        cluster.initialise("template_nearsim")
        cluster.start()
        self._stack.callback(cluster.stop)
        engine = open_engine(cluster.dsn("template_nearsim"))
        schema.upgrade(engine)
        engine.dispose()
        self._clusters[major] = cluster
        return cluster


def _name(url: str) -> str:
    return url.split("/")[3].split("?")[0]


def _run(admin: Engine, command: str) -> None:
    with admin.connect() as connection:
        connection.execute(text(command))


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """All servers of this test session."""
    with ExitStack() as stack:
        yield Servers(stack)


@pytest.fixture(params=sorted(_SERVERS, reverse=True), ids=lambda major: f"pg{major}")
def database_url(request: pytest.FixtureRequest, servers: Servers) -> Iterator[str]:
    """A fresh database with the schema in it, on each major."""
    with servers.database(request.param) as url:
        yield url


@pytest.fixture
def newest_url(servers: Servers) -> Iterator[str]:
    """A fresh database on the newest major, for what does not depend on the major."""
    with servers.database(max(_SERVERS)) as url:
        yield url


@pytest.fixture
def major(database_url: str) -> int:
    """The server's major, which seeds what is drawn at random: each major tries other histories."""
    with psycopg.connect(database_url) as connection:
        return connection.info.server_version // 10000


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on a fresh database."""
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    """A connection to a fresh database."""
    with engine.connect() as connection:
        yield connection
