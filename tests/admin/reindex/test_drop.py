"""Dropping generations: sessions do not wait, and no table or row stays behind."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from nearsim_db import Database
from nearsim_db.admin.reindex import Reindex
from nearsim_db.indexing import drop_generation
from nearsim_db.store import generation_rows, partitions
from nearsim_db.store.driver.statements import run
from nearsim_db.store.generation_rows import Generation
from tests.builders.reindex_world import coming, fill, leaf_tables, pairs_of, reader, states
from tests.builders.relations import identifier
from tests.builders.workers import application, running, wait_until
from tests.servers.databases import Server

pytestmark = [pytest.mark.each_major, pytest.mark.usefixtures("own_tables")]

SHORTLY = 0.3


def two_generations(url: str) -> None:
    """A retired generation and a live one."""
    fill(url)
    with Database.connect(url) as database:
        one = Reindex(database, "default")
        one.start()
        one.promote()


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """A retired generation and a live one; how partitions are detached depends on the major."""
    with server.database(two_generations) as url:
        yield url


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """The same database, opened by nearsim."""
    with Database.connect(url) as database:
        yield database


def retired(database: Database) -> Generation:
    """The oldest generation."""
    with database.transaction() as connection:
        return generation_rows.list_generations(connection)[0]


def nothing_is_left(database: Database) -> bool:
    """Whether only the live generation is there, with its four tables, and nothing is queued for another."""
    rest = "SELECT count(*) FROM nearsim.work WHERE generation_id = 1"
    pending = "SELECT count(*) FROM pg_inherits WHERE inhdetachpending"
    with database.transaction() as connection:
        counts = [run(connection, query).value() for query in (rest, pending)]
    return states(database) == {2: "live"} and leaf_tables(database) == 4 and counts == [0, 0]


@pytest.mark.parametrize("table", ["band_100000001", "similar_pair"])
def test_readers_are_not_blocked_by_a_drop_and_are_named(url: str, database: Database, table: str) -> None:
    with reader(url, table) as reading:
        (dropped,) = Reindex(database, "default").drop(patience_seconds=SHORTLY)
        assert not dropped.finished
        assert any(
            f"process {reading.info.backend_pid}" in one and "dashboard" in one for one in dropped.held_by
        )
        assert states(database) == {1: "abandoned", 2: "live"} and retired(database).dropping
        assert pairs_of(database, 2)
    (dropped,) = Reindex(database, "default").drop()
    assert dropped.finished and nothing_is_left(database)


@pytest.mark.slow("waits for a lock")
def test_a_waiting_drop_blocks_no_session(url: str, database: Database) -> None:
    """While a drop waits for a reader, other sessions read every parent and write through the triggers."""
    with reader(url, "signature", "band", "similar_pair", "cluster_member"), application(url) as other:
        other.execute("SET statement_timeout = '2s'")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(Reindex(database, "default").drop, None, 1.0)
            rounds = 0
            while not waiting.done():
                for table in ("signature", "band", "similar_pair", "cluster_member"):
                    query = "SELECT count(*) FROM nearsim.{} WHERE generation_id = 2"
                    other.execute(psycopg.sql.SQL(query).format(psycopg.sql.Identifier(table)))
                other.execute("UPDATE nearsim.document SET title = title || 'x' WHERE external_id = 'd1'")
                other.execute("SELECT count(*) FROM nearsim.pairs")
                rounds += 1
            assert not waiting.result()[0].finished
        assert rounds > 5
    assert drop_generation.finish(database.engine, retired(database)).finished
    assert nothing_is_left(database)


@pytest.mark.parametrize("leaf", ["band_100000001", "band_100000002"])
def test_an_interrupted_detach_is_finished_by_the_next_drop(url: str, database: Database, leaf: str) -> None:
    with reader(url, "band"), application(url) as other:
        other.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            name = identifier(leaf)
            other.execute(
                psycopg.sql.SQL("ALTER TABLE nearsim.band DETACH PARTITION {} CONCURRENTLY").format(name)
            )
    (dropped,) = Reindex(database, "default").drop()
    assert dropped.finished and nothing_is_left(database)


def test_a_drop_killed_at_any_step_is_finished(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(
            "UPDATE nearsim.generation SET state = 'abandoned', dropping = true WHERE generation_id = 1"
        )
    with database.engine.connect(autocommit=True) as connection:
        partitions.detach(connection, retired(database).leaves)
        partitions.detach(connection, retired(database).leaves)
    assert leaf_tables(database) == 8
    reindex = Reindex(database, "default")
    assert reindex.drop(reindex.find_droppable(every=True))[0].finished
    assert nothing_is_left(database)
    assert reindex.drop(reindex.find_droppable(every=True)) == []


def test_two_sessions_drop_the_same_generation(url: str, database: Database) -> None:
    generation = retired(database)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(drop_generation.drop, database.engine, generation) for _ in range(2)]
        assert [one.result().finished for one in both] == [True, True]
    assert nothing_is_left(database)


@pytest.mark.slow("starts a process")
def test_a_worker_drops_a_generation_that_was_in_use(database_url: str) -> None:
    two_generations(database_url)
    with Database.connect(database_url) as database, running(database_url) as worker:
        with reader(database_url, "similar_pair_100000001"):
            assert not Reindex(database, "default").drop(patience_seconds=SHORTLY)[0].finished
        worker.wait_for_line("dropped generation 1")
        with application(database_url) as other:
            wait_until(other, "SELECT NOT EXISTS (SELECT FROM nearsim.generation WHERE generation_id = 1)")
        assert nothing_is_left(database)
        assert coming(database).state == "live"
