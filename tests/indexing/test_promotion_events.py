"""Events of a promoted generation are published in batches, each once and in order, under concurrent changes."""

import random
from threading import Thread

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.reindex.reindex import promote
from nearsim_db.indexing import queue_stages
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.work import leases, queue
from nearsim_db.worker.worker import Worker
from tests.builders.event_world import State, Watcher, snapshot
from tests.builders.scrambling import INSERT_PAIR, change, scramble
from tests.builders.selection import some
from tests.builders.workers import BLOCKED, IDLE, application, ask, wait_until
from tests.search.test_events import RULES, alike, at_work, unlike, write_often

LIVE = "UPDATE nearsim.generation SET state = 'live'"
RETIRED = "UPDATE nearsim.generation SET state = 'retired'"
TO_PUBLISH = "SELECT count(*) > 0 FROM nearsim.work WHERE stage = 'publish'"
ALIKE = "one two three four five six"


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices are of two pairs or clusters."""
    monkeypatch.setattr(queue_stages, "_ROWS_PER_SLICE", 2)


@pytest.mark.parametrize("seed", some(range(4), "every seed"))
def test_changes_between_batches_are_published_once(
    index: Index, database_url: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events equal the difference between committed states, whether a batch or a change commits first."""
    rng, slices = random.Random(seed), 0
    index.add(unlike(14))
    (generation, _), *_ = index.profiles()
    with (
        psycopg.connect(database_url) as writing,
        application(database_url) as reading,
        index.database.lease() as lease_id,
    ):
        for _ in range(12):
            scramble(writing, rng)
        writing.commit()
        watcher = Watcher(index.database, reading)
        for state in (RETIRED, LIVE):
            reading.execute(state)
            watcher.catch_up()
        assert watcher.state == State()
        while ask(reading, TO_PUBLISH):
            scramble(writing, rng)
            before = rng.random() < 0.5
            if before:
                writing.commit()
                watcher.look()
            monkeypatch.setattr(queue_stages, "_ROWS_PER_SLICE", rng.choice([1, 2, 5]))
            slices += queue_stages.publish_batch(index.database.engine, generation.leaves, lease_id)
            watcher.look()
            if not before:
                rng.choice([writing.commit, writing.rollback])()
                watcher.look()
        assert slices > 3
        assert watcher.consumer.survivors == watcher.state.survivors()
        assert ask(reading, "SELECT published_left_id FROM nearsim.generation") is None


@pytest.mark.usefixtures("slices")
def test_processes_killed_between_batches_publish_nothing_twice(
    index: Index, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add(Document(f"d{number}", body=ALIKE) for number in range(6))
    (generation, _), *_ = index.profiles()
    engine, leaves = index.database.engine, generation.leaves
    with application(database_url) as reading, engine.connect() as holding:
        watcher = Watcher(index.database, reading)
        for state in (RETIRED, LIVE):
            reading.execute(state)
        with index.database.lease() as lease_id:
            queue_stages.publish_batch(engine, leaves, lease_id)
        watcher.catch_up()
        before = watcher.consumer.last

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, index.database.lease() as lease_id:
            patch.setattr(queue, "continue_later", die)
            with pytest.raises(KeyboardInterrupt):
                queue_stages.publish_batch(engine, leaves, lease_id)
        # Another takes it over while the first is about to publish.
        lost = leases.open_lease(holding, "lost")
        queue.take(holding, leaves, "publish", lost, 1)
        queue.take(holding, leaves, "publish", lost, 1)
        leases.close_lease(holding, lost)
        holding.commit()
        queue_stages.publish_promotion_batch(holding, leaves, lost)
        watcher.catch_up()
        assert watcher.consumer.last == before
        index.build()
        watcher.catch_up()
        assert len(watcher.consumer.pairs) == 5
        assert not ask(reading, TO_PUBLISH)


@pytest.mark.usefixtures("slices")
def test_promotion_writes_two_events(index: Index, database_url: str) -> None:
    index.create_profile("default", override(Recipe(), RULES))
    index.add(Document(f"d{number}", body=alike(random.Random(number))) for number in range(12))
    reindex = Reindex(index.database, "default")
    with application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        watcher.catch_up()
        first, _ = index.profiles()[0]
        made = reindex.start(settings=["match.threshold=0.3"])
        for generation, others in ((made, first), (first, made)):
            last, watcher.generation_id = watcher.consumer.last, generation.generation_id
            promote(index.database, generation, ["ready", "retired"])
            assert [(one.kind, one.generation_id) for one in index.events(last)] == [
                ("generation_gone", others.generation_id),
                ("generation_live", generation.generation_id),
            ]
            watcher.catch_up()
            assert watcher.state == State()
            index.build()
            watcher.catch_up()
            assert watcher.state.pairs and watcher.state == snapshot(reading, generation.generation_id)
        # Taken back and promoted in full, nothing is left to be published.
        watcher.generation_id = made.generation_id
        reindex.rollback()
        assert not ask(reading, TO_PUBLISH)
        watcher.catch_up()


def test_changes_committed_during_promotion_are_published(index: Index, database_url: str) -> None:
    """The promotion waits for the writer, whose changes are published with the generation."""
    index.add(unlike(4))
    with application(database_url) as reading, psycopg.connect(database_url) as writing:
        watcher = Watcher(index.database, reading)
        reading.execute(RETIRED)
        change(writing, INSERT_PAIR, True, 1, 2, 0.5)
        # It has made sure from here on that it need not publish.
        writing.execute("SET CONSTRAINTS ALL IMMEDIATE")
        promoting = Thread(target=reading.execute, args=(LIVE,))
        promoting.start()
        with application(database_url) as looking:
            wait_until(looking, BLOCKED)
        writing.commit()
        promoting.join()
        index.build()
        watcher.catch_up()
        assert watcher.consumer.pairs == {(1, 2): (0.5, True)}


@pytest.mark.slow("under load")
@pytest.mark.usefixtures("slices")
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
        assert {"generation_gone", "generation_live", "pair_found"} <= watcher.kinds
