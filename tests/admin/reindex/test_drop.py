"""Dropping generations: sessions do not wait, and no table or row stays behind."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg
import pytest

from nearsim_db import Database, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.indexing import drop_generation
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.store.driver.statements import FIRST_OWN, run
from nearsim_db.store.generations import generation_rows, tables
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.generations.tables import GenerationTables
from tests.builders.filled import address_of
from tests.builders.reindex_world import Killed, coming, fill, pairs_of, reader, states, stored, stories
from tests.builders.relations import identifier
from tests.builders.selection import some
from tests.builders.workers import application, running, wait_until

pytestmark = pytest.mark.each_major

SHORTLY = 0.3
OWN = FIRST_OWN + 1  # the first generation with tables of its own


def two_generations(url: str) -> None:
    """A retired generation and a live one."""
    fill(url)
    with Database.connect(url) as database:
        one = Reindex(database, "default")
        one.start()
        one.promote()


# A retired generation and a live one; how partitions are detached depends on the major.
url = address_of(two_generations)


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
    """Whether only the live generation is there, with its tables or rows, and nothing is queued for another."""
    rest = (
        "SELECT count(*) FROM nearsim.work "
        "WHERE generation_id NOT IN (SELECT generation_id FROM nearsim.live_generations)"
    )
    pending = "SELECT count(*) FROM pg_inherits WHERE inhdetachpending"
    with database.transaction() as connection:
        counts = [run(connection, query).value() for query in (rest, pending)]
    live = coming(database).generation_id
    return states(database) == {live: "live"} and stored(database) == {live} and counts == [0, 0]


@pytest.mark.usefixtures("own_tables")
@pytest.mark.parametrize("table", some([f"band_{OWN}", "signature"], "either table"))
def test_readers_are_not_blocked_by_a_drop_and_are_named(url: str, database: Database, table: str) -> None:
    with reader(url, table) as reading:
        (dropped,) = Reindex(database, "default").drop(patience_seconds=SHORTLY)
        assert not dropped.finished
        assert any(
            f"process {reading.info.backend_pid}" in one and "dashboard" in one for one in dropped.held_by
        )
        assert list(states(database).values()) == ["abandoned", "live"] and retired(database).dropping
        assert pairs_of(database, coming(database).generation_id)
    (dropped,) = Reindex(database, "default").drop()
    assert dropped.finished and nothing_is_left(database)


def test_rows_are_dropped_beside_readers_and_writers(url: str, database: Database) -> None:
    """Where tables are shared, a drop waits for nobody, nobody waits for it, and a snapshot keeps its rows."""
    query = "SELECT count(*), sum(similarity) FROM nearsim.similar_pair WHERE generation_id = %s"
    former, tables = retired(database).generation_id, ("signature", "band", "similar_pair", "cluster_member")
    with (
        reader(url, *tables, *(f"{one}_shared" for one in tables)),
        Index.connect(url, collection="other") as other,
        psycopg.connect(url) as reading,
    ):
        reading.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        before = reading.execute(query, [former]).fetchone()
        reading.execute("SET lock_timeout = '50ms'")
        other.add(stories(8))
        (dropped,) = Reindex(database, "default").drop(patience_seconds=0.0)
        assert dropped.finished
        assert reading.execute(query, [former]).fetchone() == before != (0, None)
    delete_collection(other.database, "other")
    assert nothing_is_left(database)


@pytest.mark.usefixtures("own_tables")
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
                    query = "SELECT count(*) FROM nearsim.{} WHERE generation_id = %s"
                    named = psycopg.sql.SQL(query).format(psycopg.sql.Identifier(table))
                    other.execute(named, [OWN + 1])
                other.execute("UPDATE nearsim.document SET title = title || 'x' WHERE external_id = 'd1'")
                other.execute("SELECT count(*) FROM nearsim.pairs")
                rounds += 1
            assert not waiting.result()[0].finished
        assert rounds > 5
    assert drop_generation.finish(database.engine, retired(database)).finished
    assert nothing_is_left(database)


@pytest.mark.usefixtures("own_tables")
@pytest.mark.parametrize("leaf", [f"band_{OWN}", f"band_{OWN + 1}"])
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


@pytest.mark.usefixtures("own_tables")
def test_a_drop_killed_at_any_step_is_finished(database: Database) -> None:
    with database.transaction() as connection:
        run(
            connection,
            "UPDATE nearsim.generation SET state = 'abandoned', dropping = true WHERE state = 'retired'",
        )
    with database.engine.connect(autocommit=True) as connection:
        retired(database).tables(connection).detach()
        retired(database).tables(connection).detach()
    assert stored(database) == {OWN, OWN + 1}
    reindex = Reindex(database, "default")
    assert reindex.drop(reindex.find_droppable(every=True))[0].finished
    assert nothing_is_left(database)
    assert reindex.drop(reindex.find_droppable(every=True)) == []


def test_a_drop_of_rows_killed_many_times_is_finished(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_ROWS_PER_DELETION", 500)
    delete_slice = GenerationTables._delete_slice
    turns = count()

    def die_every_third_time(self: GenerationTables) -> int:
        if next(turns) % 3 == 2:
            raise Killed
        return delete_slice(self)

    monkeypatch.setattr(GenerationTables, "_delete_slice", die_every_third_time)
    reindex, kills, before = Reindex(database, "default"), 0, pairs_of(database, 2)
    while droppable := reindex.find_droppable(every=True):
        try:
            reindex.drop(droppable)
        except Killed:
            kills += 1
            assert states(database) == {1: "abandoned", 2: "live"} and pairs_of(database, 2) == before
    assert kills > 5 and nothing_is_left(database)


@pytest.mark.slow("fifteen builds")
def test_the_space_of_dropped_rows_is_reused(database: Database) -> None:
    """Without autovacuum, which the servers of tests have off."""
    size = (
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
        "WHERE relname ~ '_shared$' AND relkind = 'r' AND relnamespace = CAST('nearsim_index' AS regnamespace)"
    )
    reindex, sizes = Reindex(database, "default"), []
    for _ in range(15):
        reindex.start()
        reindex.promote()
        assert all(one.finished for one in reindex.drop())
        with database.transaction() as connection:
            sizes.append(int(run(connection, size).value()))
    assert max(sizes) <= 2 * sizes[0], sizes


@pytest.mark.usefixtures("either_tables")
def test_two_sessions_drop_the_same_generation(
    url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_ROWS_PER_DELETION", 100)
    generation = retired(database)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(drop_generation.drop, database.engine, generation) for _ in range(2)]
        assert [one.result().finished for one in both] == [True, True]
    assert nothing_is_left(database)


@pytest.mark.usefixtures("own_tables")
@pytest.mark.slow("starts a process")
def test_a_worker_drops_a_generation_that_was_in_use(database_url: str) -> None:
    two_generations(database_url)
    with Database.connect(database_url) as database, running(database_url) as worker:
        with reader(database_url, f"signature_{OWN}"):
            assert not Reindex(database, "default").drop(patience_seconds=SHORTLY)[0].finished
        worker.wait_for_line(f"dropped generation {OWN}")
        with application(database_url) as other:
            wait_until(other, "SELECT count(*) = 1 FROM nearsim.generation")
        assert nothing_is_left(database)
        assert coming(database).state == "live"
