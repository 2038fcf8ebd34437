"""Promotion: readers see one generation or the other, and do not wait, also under load."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest

from nearsim_db import Database
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.reindex.reindex import promote
from nearsim_db.errors import ConflictError
from nearsim_db.store.driver.statements import FIRST_OWN, PARENTS
from nearsim_db.store.generations import generation_rows
from tests.builders.filled import address_of
from tests.builders.reindex_world import LOWER, fill, pairs_of, reader, states
from tests.builders.relations import leaves_of
from tests.builders.workers import application, ask, wait_until
from tests.endurance.reindexing import evaluation, scenario
from tests.endurance.reindexing.checks import check
from tests.endurance.reindexing.scenario import Load
from tests.endurance.reindexing.texts import make_crowd
from tests.servers.programs import newest_major

SWITCHES = 50


def ready(url: str) -> None:
    """A live generation, and one that is ready."""
    fill(url)
    with Database.connect(url) as database:
        Reindex(database, "default").start(settings=LOWER)


# A live generation, and one that is ready.
url = address_of(ready)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """The same database, opened by nearsim."""
    with Database.connect(url) as database:
        yield database


def test_readers_see_exactly_one_live_generation(url: str, database: Database) -> None:
    with database.transaction() as connection:
        both = generation_rows.list_generations(connection)
    expected = {one.generation_id: len(pairs_of(database, one.generation_id)) for one in both}
    seen: list[tuple[object, ...]] = []
    done = Event()

    def read() -> None:
        query = (
            "SELECT count(*), min(generation_id), (SELECT count(*) FROM nearsim.pairs), "
            "(SELECT count(DISTINCT generation_id) FROM nearsim.pairs) FROM nearsim.live_generations"
        )
        with application(url) as reading:
            while not done.is_set():
                row = reading.execute(query).fetchone()
                assert row is not None
                seen.append(row)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        for switch in range(SWITCHES):
            promote(database, both[1 - switch % 2], ["ready", "retired"])
        done.set()
        reading.result()
    assert set(seen) <= {(1, id, count, 1) for id, count in expected.items()}
    assert len(expected) == len(set(expected.values())) == 2 and seen


@pytest.mark.usefixtures("either_tables")
def test_a_promotion_does_not_wait_for_readers(url: str, database: Database) -> None:
    old, new = leaves_of(url)
    tables = [leaves.name(parent) for leaves in (old, new) for parent in PARENTS]
    with reader(url, "generation", "profile", *PARENTS, *tables):
        assert Reindex(database, "default").promote()[1] == old.generation_id
        assert Reindex(database, "default").rollback()[1] == new.generation_id


def test_a_waiting_promotion_does_not_block_writers(url: str, database: Database) -> None:
    held = "SELECT FROM nearsim.generation FOR UPDATE"
    with psycopg.connect(url) as holding, application(url) as writing, ThreadPoolExecutor(1) as pool:
        holding.execute(held)
        promoted = pool.submit(Reindex(database, "default").promote)
        wait_until(writing, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")
        writing.execute("SET statement_timeout = '5s'")
        for number in range(20):
            writing.execute("UPDATE nearsim.document SET title = %s WHERE external_id = 'd1'", (str(number),))
            assert ask(writing, "SELECT count(*) FROM nearsim.live_generations") == 1
        assert not promoted.done()
        holding.rollback()
        assert promoted.result()[1] == 1
    assert states(database) == {1: "retired", 2: "live"}


def test_second_of_two_promotions_is_refused(database: Database) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(Reindex(database, "default").promote, 2) for _ in range(2)]
        errors = [one.exception() for one in both]
    assert {type(error) for error in errors} == {type(None), ConflictError}
    assert states(database) == {1: "retired", 2: "live"}
    assert any("is live, not ready or retired" in str(error) for error in errors)


DOCUMENTS = 10_000
MOST_MILLISECONDS = 50
LOAD = Load(searches_after=100, most_waited_ms=MOST_MILLISECONDS)


@pytest.mark.slow("load")
def test_a_reindex_under_load_causes_no_errors(
    database_url: str, major: int, request: pytest.FixtureRequest
) -> None:
    if major != newest_major():
        request.getfixturevalue("own_tables")
    world = scenario.make_world(database_url, make_crowd(DOCUMENTS - 3 * LOAD.families, LOAD.seed), LOAD)
    seen = scenario.run(world, LOAD)
    numbers = {world.generation_before, seen.generation_after}
    assert {number < FIRST_OWN for number in numbers} == {major == newest_major()}
    figures = evaluation.figures(seen, LOAD)

    # No search failed, and none saw a mixture or a generation that did not answer then.
    assert evaluation.violations(seen) == {}
    assert len(seen.searches) > 100
    for kind in figures["searches by kind"].values():
        assert kind["p95"] < 10 * kind["p50"]

    # Turns hold rows of generations in one short transaction; the quickest met the least noise.
    turns = figures["locks of each try to promote"]
    assert min(max(milliseconds) for milliseconds in turns.values()) < MOST_MILLISECONDS

    # No writer was refused while generations changed places or were dropped.
    assert not evaluation.refused_by_step(seen).keys() & {*turns, "drop"}
    assert evaluation.longest_blocking(seen.watched.held) < MOST_MILLISECONDS

    counted, wrong = check(world, seen.generation_after, seen.left)
    assert wrong == {}
    assert counted["documents"] == len(seen.left) and counted["pairs"] > 1_000
