"""The schema is upgraded while a reader stays in a transaction that has read everything: everybody else goes on."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from runpy import run_path

import orjson
import psycopg
import pytest
from alembic.script import ScriptDirectory
from psycopg import IsolationLevel, sql
from sqlalchemy import Connection, Engine, text

from nearsim_db.errors import SchemaError
from nearsim_db.similarity.recipe import Recipe, to_mapping
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.schema import migration_locks, revisions
from tests.acceptance.command_line import CommandLine
from tests.migration.test_other_metrics import describe
from tests.workers import BLOCKED, Application, application, ask, wait_until

# A live generation with two documents, a pair and a cluster, as the first revision knows them.
FILL = """
INSERT INTO nearsim.collection (name) VALUES ('news');
INSERT INTO nearsim.document (collection_id, external_id, body)
    SELECT 1, 'd' || n, 'text' FROM generate_series(1, 9) AS n;
INSERT INTO nearsim.profile (collection_id, name) VALUES (1, 'default');
INSERT INTO nearsim.generation (profile_id, state, stage, recipe, fingerprint)
    SELECT 1, 'live', 'done', CAST({recipe} AS jsonb), '';
CREATE TABLE nearsim.signature_1 PARTITION OF nearsim.signature FOR VALUES IN (1);
ALTER TABLE nearsim.signature_1 ADD PRIMARY KEY (doc_id);
CREATE TABLE nearsim.band_1 PARTITION OF nearsim.band FOR VALUES IN (1);
CREATE TABLE nearsim.similar_pair_1 PARTITION OF nearsim.similar_pair FOR VALUES IN (1);
ALTER TABLE nearsim.similar_pair_1 ADD PRIMARY KEY (left_id, right_id);
CREATE TABLE nearsim.cluster_member_1 PARTITION OF nearsim.cluster_member FOR VALUES IN (1);
ALTER TABLE nearsim.cluster_member_1 ADD PRIMARY KEY (doc_id);
INSERT INTO nearsim.signature
    SELECT 1, n, 1, 1, CAST(md5(CAST(n AS text)) AS uuid), '\\x00', 0, n FROM generate_series(1, 2) AS n;
INSERT INTO nearsim.band (generation_id, doc_id, bucket_hash) SELECT 1, n, 7 FROM generate_series(1, 2) AS n;
INSERT INTO nearsim.similar_pair VALUES (1, 1, 2, 1, 0.9, 0.9, 9, 10);
INSERT INTO nearsim.cluster_member VALUES (1, 1, 1, true), (1, 2, 1, false);
INSERT INTO nearsim.work (generation_id, doc_id, stage) VALUES (1, 9, 'sign');
"""
RELATIONS = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'nearsim'::regnamespace AND relkind IN ('r', 'p', 'v')"
)
WRITE = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, 'text')"
OF_A_GENERATION = re.compile(r"\('(nearsim\.)?(signature|band|similar_pair|cluster_member)_\d")
LONGEST_WAIT = "1s"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A fresh database on the newest major, with the schema in place."""
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def upgrader() -> Iterator[ThreadPoolExecutor]:
    """Threads that upgrade."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


def begin_at(engine: Engine, revision: str) -> None:
    """The schema as it was installed at an earlier revision."""
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA nearsim CASCADE"))
    revisions.upgrade(engine, revision)


def all_revisions() -> list[str]:
    """All of them, the first one first."""
    scripts = ScriptDirectory(str(revisions.migrations_directory()))
    return [script.revision for script in reversed(list(scripts.walk_revisions()))]


@contextmanager
def reader_of_everything(url: str) -> Iterator[Application]:
    """Somebody whose transaction has read every table and view, and is not over."""
    with psycopg.connect(url, application_name="long report") as reader:
        for (name,) in reader.execute(RELATIONS).fetchall():
            reader.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(sql.Identifier("nearsim", str(name))))
        yield reader


def wait_for(other: Application, step: Future[str]) -> bool:
    """Wait until the upgrade waits for a lock, or is done without one."""
    while not step.done():
        if ask(other, BLOCKED):
            return True
    return False


def go_on(url: str, name: str) -> None:
    """Another reader and a writer get what they want without waiting long."""
    with application(url) as other:
        other.execute(f"SET lock_timeout = '{LONGEST_WAIT}'")
        other.execute("SELECT count(*) FROM nearsim.document")
        other.execute("SELECT count(*) FROM nearsim.similar_pair")
        other.execute(WRITE, (name,))


def test_nobody_waits_long_behind_any_step(
    engine: Engine, database_url: str, upgrader: ThreadPoolExecutor
) -> None:
    with engine.connect() as connection:
        installed = described(connection)
    first, *steps = all_revisions()
    begin_at(engine, first)
    with application(database_url) as other:
        other.execute(sql.SQL(FILL).format(recipe=orjson.dumps(to_mapping(Recipe())).decode()))
        waited = set()
        for revision in steps:
            with reader_of_everything(database_url):
                step = upgrader.submit(revisions.upgrade, engine, revision)
                if wait_for(other, step):
                    waited.add(revision)
                go_on(database_url, revision)
            assert step.result(30) == revision
        assert {"0003", "0009", "0011", "0012"} <= waited
        assert other.execute("SELECT count(*) FROM nearsim.document").fetchone() == (9 + len(steps),)
        assert other.execute("SELECT count(*) FROM nearsim.pairs").fetchone() == (1,)
        assert other.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone() == (0,)
    with engine.connect() as connection:
        revisions.check(connection)
        assert not migration_locks.count_unvalidated(connection)
        assert described(connection) == installed


def test_who_loses_patience_says_for_whom_and_goes_on_later(engine: Engine, database_url: str) -> None:
    begin_at(engine, "0011")
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": database_url})
    with reader_of_everything(database_url) as reader:
        holder = f"process {reader.info.backend_pid} (nearsim, long report)"
        outcome = nearsim.run("db", "init", "--patience", 1)
    assert outcome.exit_code == 1
    first, *between, last = outcome.err.splitlines()
    assert first == "applying revision 0012"
    assert set(between) == {f"revision 0012 waits for {holder}"}
    assert last.startswith("error: the schema stays as it was before revision 0012") and holder in last
    with engine.connect() as connection:
        assert revisions.current_revision(connection) == "0011"
    nearsim.succeed("db", "init")
    with engine.connect() as connection:
        assert revisions.check(connection) == revisions.newest_revision()


def test_a_second_upgrader_waits_for_the_first(
    engine: Engine, database_url: str, upgrader: ThreadPoolExecutor
) -> None:
    begin_at(engine, "0011")
    said: Queue[str] = Queue()
    with reader_of_everything(database_url), application(database_url) as other:
        first = upgrader.submit(revisions.upgrade, engine)
        wait_until(other, BLOCKED)
        with pytest.raises(SchemaError, match=r"is being upgraded by process \d+ \(nearsim, nearsim\)"):
            revisions.upgrade(engine, patience_seconds=0)
        tell: Callable[[str], None] = said.put
        second = upgrader.submit(revisions.upgrade, engine, told=tell)
        assert said.get(timeout=30).startswith("waiting for another upgrade by process ")
    assert first.result(30) == second.result(30) == revisions.newest_revision()


def test_what_was_broken_off_goes_on(engine: Engine, database_url: str) -> None:
    begin_at(engine, "0002")
    with psycopg.connect(database_url) as snapshot, application(database_url) as other:
        snapshot.isolation_level = IsolationLevel.REPEATABLE_READ
        snapshot.execute("SELECT 1")
        with pytest.raises(SchemaError, match=f"process {snapshot.info.backend_pid}"):
            revisions.upgrade(engine, "0003", patience_seconds=0.2)
        assert other.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone() == (1,)
        go_on_in_events(engine, other, snapshot)


def go_on_in_events(engine: Engine, other: Application, snapshot: Application) -> None:
    """Revision 0003 builds its index anew; revision 0007 goes on where it had committed before."""
    snapshot.rollback()
    revisions.upgrade(engine, "0006")
    assert other.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone() == (0,)
    created = run_path(str(revisions.migrations_directory() / "versions" / "0007_events.py"))["CREATED"]
    for name in created:
        other.execute((revisions.migrations_directory() / "sql" / "0007" / f"{name}.sql").read_bytes())
    assert revisions.upgrade(engine) == revisions.newest_revision()


def described(connection: Connection) -> dict[str, list[str]]:
    """What is in the schema but for what belongs to a generation."""
    return {
        kind: [row for row in rows if not OF_A_GENERATION.match(row)]
        for kind, rows in describe(connection).items()
    }
