"""A promotion is one event; a consumer reads the views then, and every later change is an event again."""

import random
from threading import Thread

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.reindex.reindex import promote
from nearsim_db.search.answers import list_newest
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.worker.worker import Worker
from tests.builders.event_world import Watcher, snapshot
from tests.builders.scrambling import INSERT_PAIR, change, scramble
from tests.builders.selection import some
from tests.builders.workers import BLOCKED, IDLE, application, wait_until
from tests.search.test_events import RULES, alike, at_work, unlike, write_often

LIVE = "UPDATE nearsim.generation SET state = 'live'"
RETIRED = "UPDATE nearsim.generation SET state = 'retired'"


@pytest.mark.parametrize("seed", some(range(4), "every seed"))
def test_changes_around_a_promotion_are_in_the_snapshot_or_are_events(
    index: Index, database_url: str, seed: int
) -> None:
    rng = random.Random(seed)
    index.add(unlike(14))
    with psycopg.connect(database_url) as writing, application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        for _ in range(12):
            scramble(writing, rng)
            writing.commit()
            reading.execute(RETIRED)
            scramble(writing, rng)
            writing.commit()
            reading.execute(LIVE)
            if rng.random() < 0.5:
                # Committed after the promotion and before the consumer hears of it: both in its snapshot and an event.
                scramble(writing, rng)
                writing.commit()
            watcher.catch_up()
            scramble(writing, rng)
            writing.commit()
            watcher.look()


def test_a_first_build_writes_one_event(index: Index) -> None:
    index.add(Document(f"d{number}", body="one two three four five six") for number in range(6))
    assert [event.kind for event in index.events()] == ["generation_live"]
    assert len(list(index.pairs())) == 15


def test_a_promotion_writes_two_events(index: Index, database_url: str) -> None:
    index.create_profile("default", override(Recipe(), RULES))
    index.add(Document(f"d{number}", body=alike(random.Random(number))) for number in range(12))
    reindex = Reindex(index.database, "default")
    with application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        watcher.catch_up()
        (first,) = list_newest(index.database, index.collection)
        made = reindex.start(settings=["match.threshold=0.3"])
        for generation, other in ((made, first), (first, made)):
            last, watcher.generation_id = watcher.consumer.last, generation.generation_id
            promote(index.database, generation, ["ready", "retired"])
            assert [(event.kind, event.generation_id) for event in index.events(last)] == [
                ("generation_gone", other.generation_id),
                ("generation_live", generation.generation_id),
            ]
            watcher.catch_up()
            assert watcher.state.pairs and watcher.state == snapshot(reading, generation.generation_id)


def test_changes_committed_during_a_promotion_are_in_the_snapshot(index: Index, database_url: str) -> None:
    """The promotion waits for the writer."""
    index.add(unlike(4))
    with application(database_url) as reading, psycopg.connect(database_url) as writing:
        watcher = Watcher(index.database, reading)
        reading.execute(RETIRED)
        change(writing, INSERT_PAIR, True, 1, 2, 0.5)
        # The writer has decided from here on that it writes no events.
        writing.execute("SET CONSTRAINTS ALL IMMEDIATE")
        promoting = Thread(target=reading.execute, args=(LIVE,))
        promoting.start()
        with application(database_url) as looking:
            wait_until(looking, BLOCKED)
        writing.commit()
        promoting.join()
        watcher.catch_up()
        assert watcher.consumer.pairs == {(1, 2): (0.5, True)}


@pytest.mark.slow("under load")
def test_generation_is_promoted_and_retired_under_load(index: Index, database_url: str) -> None:
    index.create_profile("default", override(Recipe(), RULES))
    index.add(Document(f"d{number}", body=alike(random.Random(number))) for number in range(12))
    writers = [Thread(target=write_often, args=(database_url, seed)) for seed in range(2)]
    with at_work([Worker(database_url) for _ in range(2)]), application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            for state in (RETIRED, LIVE):
                reading.execute("SELECT pg_sleep(0.05)")
                reading.execute(state)
        wait_until(reading, IDLE)
        watcher.catch_up()
        assert {"generation_live", "pair_found"} <= watcher.kinds
