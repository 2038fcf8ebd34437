"""Upgrades of a schema in use: sessions continue during a transaction that has read every table."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from queue import Queue

import psycopg
import pytest
from psycopg import IsolationLevel, sql

from nearsim_db import Document, Index
from nearsim_db.errors import SchemaError
from nearsim_db.records import GenerationId
from nearsim_db.store.citus.placement import is_distributed
from nearsim_db.store.driver import Engine
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN, Leaves, statement
from nearsim_db.store.generations.tables import GenerationTables
from nearsim_db.store.schema import revisions
from tests.builders.command_line import CommandLine
from tests.builders.relations import identifier
from tests.builders.workers import BLOCKED, Application, application, ask, wait_until
from tests.schema.later_revisions import REVISIONS, later_release

__all__ = ["later_release"]

RELATIONS = (
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'v') "
    "AND relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace)"
)
WRITE = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, 'text')"
INVALID = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
LONGEST_WAIT = "1s"
STORIES = [
    Document("a", body="a story of some length that is told in exactly the same words twice over"),
    Document("b", body="a story of some length that is told in exactly the same words twice more"),
]
UNATTACHED = Leaves(GenerationId(FIRST_OWN + 77))


@pytest.fixture
def engine(database_url: str, later_release_after_filling: None) -> Iterator[Engine]:
    """A database on the newest major with a live generation, one that is being built, and revisions to come."""
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def later_release_after_filling(database_url: str, request: pytest.FixtureRequest) -> None:
    """Index two documents with this release, and then have the next one."""
    with Index.connect(database_url) as index:
        index.add(STORIES)
        with index.database.transaction() as connection:
            GenerationTables(connection, replace(UNATTACHED, distributed=is_distributed(connection))).create()
    request.getfixturevalue("later_release")


@pytest.fixture
def upgrader() -> Iterator[ThreadPoolExecutor]:
    """Threads that upgrade."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


@contextmanager
def reader_of_everything(url: str) -> Iterator[Application]:
    """A session whose transaction has read every table and view, and stays open."""
    with psycopg.connect(url, application_name="long report") as reader:
        for (name,) in reader.execute(RELATIONS).fetchall():
            reader.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(identifier(str(name))))
        yield reader


def wait_for(other: Application, step: Future[str]) -> bool:
    """Wait until the upgrade waits for a lock, or is done without one."""
    while not step.done():
        if ask(other, BLOCKED):
            return True
    return False


def go_on(url: str, name: str) -> None:
    """Assert that another reader and a writer do not wait long."""
    with application(url) as other:
        other.execute(f"SET lock_timeout = '{LONGEST_WAIT}'")
        other.execute("SELECT count(*) FROM nearsim.document")
        other.execute("SELECT count(*) FROM nearsim.similar_pair")
        other.execute(WRITE, (name,))


@pytest.mark.slow("load")
def test_readers_and_writers_wait_briefly_for_a_revision(
    engine: Engine, database_url: str, upgrader: ThreadPoolExecutor
) -> None:
    with application(database_url) as other:
        waited = set()
        for revision in REVISIONS:
            with reader_of_everything(database_url):
                step = upgrader.submit(revisions.upgrade, engine, revision)
                if wait_for(other, step):
                    waited.add(revision)
                go_on(database_url, revision)
            assert step.result(30) == revision
        assert waited == set(REVISIONS)
        assert ask(other, "SELECT count(*) FROM nearsim.document WHERE language = 'en'") == 2 + len(REVISIONS)
        assert ask(other, "SELECT count(*) FROM nearsim.pairs") == 1
        assert ask(other, INVALID) == 0
    with engine.connect() as connection:
        assert revisions.check(connection) == REVISIONS[-1]
        assert not connection.execute(statement("list_unvalidated")).fetchall()


def test_detached_partitions_are_upgraded_too(engine: Engine) -> None:
    revisions.upgrade(engine)
    with engine.begin() as connection:
        GenerationTables(connection, UNATTACHED).attach()
        read = sql.SQL("SELECT note FROM {}").format(UNATTACHED.table("signature"))
        assert connection.execute(read).fetchall() == []


def test_an_older_schema_is_refused(engine: Engine) -> None:
    with (
        engine.connect() as connection,
        pytest.raises(SchemaError, match="needs 0004; run: nearsim schema init"),
    ):
        revisions.check(connection)


@pytest.mark.slow("waits for a lock")
def test_upgrade_with_a_timeout_names_the_session_and_continues_later(
    engine: Engine, database_url: str
) -> None:
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": database_url})
    with reader_of_everything(database_url) as reader:
        holder = f"process {reader.info.backend_pid} (nearsim, long report)"
        outcome = nearsim.run("schema", "init", "--patience", 1)
    assert outcome.exit_code == 1
    first, *between, last = outcome.err.splitlines()
    assert first == "applying revision 0002"
    assert set(between) == {f"revision 0002 waits for {holder}"}
    assert last.startswith("error: revision 0002 was not applied") and holder in last
    with engine.connect() as connection:
        assert revisions.current_revision(connection) == "0001"
    nearsim.succeed("schema", "init")
    with engine.connect() as connection:
        assert revisions.check(connection) == revisions.newest_revision() == REVISIONS[-1]


def test_a_second_upgrade_waits_for_the_first(
    engine: Engine, database_url: str, upgrader: ThreadPoolExecutor
) -> None:
    said: Queue[str] = Queue()
    with reader_of_everything(database_url), application(database_url) as other:
        first = upgrader.submit(revisions.upgrade, engine)
        wait_until(other, BLOCKED)
        with pytest.raises(SchemaError, match=r"is being upgraded by process \d+ \(nearsim, nearsim\)"):
            revisions.upgrade(engine, patience_seconds=0)
        report: Callable[[str], None] = said.put
        second = upgrader.submit(revisions.upgrade, engine, report=report)
        assert said.get(timeout=30).startswith("waiting for another upgrade by process ")
    assert first.result(30) == second.result(30) == revisions.newest_revision()


def test_an_interrupted_index_build_is_repeated(engine: Engine, database_url: str) -> None:
    with psycopg.connect(database_url) as snapshot, application(database_url) as other:
        snapshot.isolation_level = IsolationLevel.REPEATABLE_READ
        snapshot.execute("SELECT 1")
        with pytest.raises(SchemaError, match=f"process {snapshot.info.backend_pid}"):
            revisions.upgrade(engine, "0003", patience_seconds=0.2)
        assert ask(other, INVALID) == 1
        snapshot.rollback()
        assert revisions.upgrade(engine, "0003") == "0003"
        assert ask(other, INVALID) == 0


@pytest.mark.slow("waits for a lock")
def test_committed_part_is_not_repeated(engine: Engine, database_url: str) -> None:
    revisions.upgrade(engine, "0003")
    with (
        reader_of_everything(database_url),
        pytest.raises(SchemaError, match="revision 0004 was not applied"),
    ):
        revisions.upgrade(engine, patience_seconds=0.2)
    with application(database_url) as other:
        assert ask(other, "SELECT count(*) FROM nearsim.collection_name") == 1
        assert ask(other, "SELECT version_num FROM nearsim.alembic_version") == "0003"
    assert revisions.upgrade(engine) == "0004"
