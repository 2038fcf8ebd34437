"""Which tests run and on which server, and a fresh database for each."""

import gc
import logging
import os
import signal
from collections.abc import Iterator, Set
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from nearsim_db import Index
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.generations import partitions
from tests.builders.selection import some
from tests.builders.workers import WorkerLog
from tests.servers.citus import AnyServer, CitusServer, citus_major, citus_server, why_no_citus
from tests.servers.databases import Servers, own_server
from tests.servers.npm_programs import VERSIONS, why_not_fetched
from tests.servers.on_citus import database_tests
from tests.servers.programs import newest_major, oldest_major, programs

pytest_plugins = ["tests.builders.attached_collection"]

# The speed at which examples are generated depends on the machine's load.
_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("per change", _ANY_MACHINE, max_examples=20)
settings.register_profile("all", _ANY_MACHINE, max_examples=100)

# Kernels are compiled in one process while others run packages that need none; then the longest packages first.
_ORDER = (
    "similarity/test_encoder.py",  # calls the kernels that other packages need
    "similarity",
    "readers",
    "schema",
    "store",
    "indexing",
    "admin",
    "sql",
    "worker",
    "search",
    "cli",
    "contract",
    "deduplication",
    "analysis",
    "scale_out",
    "examples",
    "benchmarks",
    "fuzz",
    "endurance",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of `make test-all`, and that which runs database tests on a Citus cluster."""
    parser.addoption("--all", action="store_true", help="every test, on several majors")
    parser.addoption(
        "--citus", action="store_true", help="database tests on a Citus coordinator with two nodes"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the examples' profile; let processes that tests start receive SIGINT, which background jobs ignore."""
    if config.getoption("citus") and (reason := why_no_citus()):
        raise pytest.UsageError(reason)
    settings.load_profile("all" if config.getoption("all") else "per change")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep modules and tests, which live to the end, out of garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """The servers of this run, and the majors that are missing."""
    if config.getoption("citus"):
        return [f"Citus on PostgreSQL {citus_major()}; tests without a database are left out"]
    if not config.getoption("all"):
        return [f"PostgreSQL {newest_major()} (--all: also others)"]
    missing = [f"{major} left out: {why_not_fetched(major)}" for major in VERSIONS if major not in programs()]
    return [f"PostgreSQL {', '.join(map(str, programs()))}", *missing]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Repeat at the end which majors were missing; if no test ran, say what left tests out."""
    for line in pytest_report_header(config) if config.getoption("all") else []:
        terminalreporter.write_line(line)
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        for line in _why_left_out(config):
            terminalreporter.write_line(line)


def _why_left_out(config: pytest.Config) -> Iterator[str]:
    if not config.getoption("all"):
        yield "tests marked slow were left out, all of tests/scale_out among them; --all runs them"
    if reason := why_no_citus():
        yield f"tests on Citus need it, too: {reason}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than cores, as tests wait for servers and other processes."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep a module in one process, and all of tests/similarity in one, so that kernels are compiled once."""
    schedule = LoadScopeScheduling(config, log)
    schedule._split_scope = _scope
    return schedule


def _scope(nodeid: str) -> str:
    return "similarity" if nodeid.startswith("tests/similarity/") else nodeid.rsplit("::", 1)[0]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a database test on the newest major; with --all on the oldest too, or if marked each_major on every one."""
    if "major" not in metafunc.fixturenames:
        return
    if metafunc.config.getoption("citus"):
        majors = {citus_major()}
    elif not metafunc.config.getoption("all"):
        majors = {newest_major()}
    elif metafunc.definition.get_closest_marker("each_major"):
        majors = set(programs())
    else:
        majors = {newest_major(), oldest_major()}
    metafunc.parametrize(
        "major", sorted(majors, reverse=True), indirect=True, ids="pg{}".format, scope="module"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests in the order of their packages, and leave out the slow ones unless --all is given."""
    items.sort(key=_place)
    if config.getoption("citus"):
        _keep(config, items, set(database_tests(items)))
    slow = {item for item in items for mark in item.iter_markers("slow") if _reason(item, mark)}
    if not config.getoption("all"):
        _keep(config, items, set(items) - slow)


def _keep(config: pytest.Config, items: list[pytest.Item], kept: Set[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _reason(item: pytest.Item, mark: pytest.Mark) -> str:
    if len(mark.args) != 1 or not mark.args[0]:
        raise pytest.UsageError(f"{item.nodeid}: slow takes one argument, the reason")
    return str(mark.args[0])


def _place(item: pytest.Item) -> int:
    return next(place for place, start in enumerate(_ORDER) if item.nodeid.startswith(f"tests/{start}"))


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """All servers of this test session."""
    with ExitStack() as stack:
        yield Servers(stack)


@pytest.fixture(scope="module")
def major(request: pytest.FixtureRequest) -> int:
    """The server's major; also a seed, so that each major runs different random histories."""
    return int(request.param)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, servers: Servers, major: int) -> AnyServer:
    """The server that this test runs on, chosen by its mark, or the Citus cluster of this session."""
    if request.config.getoption("citus"):
        cluster: CitusServer = request.getfixturevalue("citus")
        return cluster
    return servers.of_major(major)


@pytest.fixture(scope="module")
def server_to_kill(request: pytest.FixtureRequest, major: int) -> Iterator[AnyServer]:
    """A server that no other module uses, or the Citus cluster, whose coordinator may be killed and started again."""
    if request.config.getoption("citus"):
        yield request.getfixturevalue("citus")
    else:
        with own_server(major) as server:
            yield server


@pytest.fixture(scope="session")
def citus() -> Iterator[CitusServer]:
    """A Citus coordinator with two nodes; a test that takes it is skipped where there is no Citus."""
    with citus_server(2) as cluster:
        yield cluster


@pytest.fixture
def own_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each generation that this process creates has tables of its own, however small its collection."""
    monkeypatch.setattr(partitions, "MAX_SHARED_DOCUMENTS", -1)


@pytest.fixture(params=some(["shared", "own"], "both kinds of tables"))
def either_tables(request: pytest.FixtureRequest) -> None:
    """Generations share their tables; with --all also such that have tables of their own."""
    if request.param == "own":
        request.getfixturevalue("own_tables")


@pytest.fixture
def database_url(server: AnyServer) -> Iterator[str]:
    """A fresh database with the schema."""
    with server.database() as url:
        yield url


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


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    """An index on a fresh database."""
    with Index.connect(database_url) as index:
        yield index


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> WorkerLog:
    """What workers in this process log."""
    caplog.set_level(logging.INFO, "nearsim")
    return WorkerLog(caplog)
