"""A build discards the captured writes that it has indexed, and only those."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Thread

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.indexing import build
from nearsim_db.indexing.queue import dispatch
from nearsim_db.indexing.queue.dispatch import discard_indexed, dispatch_changes
from nearsim_db.records import WorkStage
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.generations.generation_rows import Generation, list_generations
from nearsim_db.store.work import queue
from nearsim_db.store.work.queue import Batch, WorkQueue
from tests.builders.followed_table import pairs
from tests.builders.interleaving import Actor, Schedule
from tests.builders.living_world import World
from tests.builders.selection import some
from tests.builders.workers import BLOCKED, application, ask, wait_until
from tests.indexing.test_interleavings import WORLDS, check, monitor

__all__ = ["monitor"]

RECIPE = Recipe()
ALIKE = "one two three four five six"
WAITING = "SELECT coalesce(array_agg(doc_id ORDER BY doc_id), '{}') FROM nearsim.change WHERE doc_id > 0"
QUEUED = "SELECT coalesce(array_agg(DISTINCT doc_id ORDER BY doc_id), '{}') FROM nearsim.work"


@pytest.fixture
def kept(index: Index, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Discarding that a build leaves to the test; call it when the time has come."""
    built: list[Generation] = []
    monkeypatch.setattr(build, "discard_indexed", lambda engine, generation: built.append(generation))
    monkeypatch.setattr("nearsim_db.index.dispatch_changes", lambda engine: 0)

    def discard() -> None:
        monkeypatch.undo()
        for generation in built:
            discard_indexed(index.database.engine, generation)

    return discard


def documents(*texts: str) -> list[Document]:
    """Documents named by their place: a, b, ..."""
    return [Document(name, body=text) for name, text in zip("abcdefgh", texts, strict=False)]


def test_a_first_build_leaves_nothing_to_sign(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents that the build has just indexed are neither taken through the queue nor compared."""
    taken = set[WorkStage]()
    take = WorkQueue.take

    def record(work: WorkQueue, stage: WorkStage, lease_id: int, most: int) -> list[Batch]:
        batches = take(work, stage, lease_id, most)
        taken.update(batch.stage for batch in batches)
        return batches

    monkeypatch.setattr(WorkQueue, "take", record)
    monkeypatch.setattr(dispatch, "_MIN_VACUUMED_CHANGES", 1)
    index.create_profile("default", RECIPE)
    index.add(documents(ALIKE, ALIKE + " seven", "something else altogether", ""))
    assert not taken
    assert pairs(index) == {frozenset("ab")}


def test_writes_around_the_statement_are_indexed(
    index: Index, kept: Callable[[], None], database_url: str
) -> None:
    """An edit, a deletion and an insertion that commit before, while and after changes are discarded."""
    index.add(documents(*(f"{ALIKE} {word}" for word in ("x", "y", "z", "u", "v", "w"))))
    with application(database_url) as before, psycopg.connect(database_url) as during:
        edit = "UPDATE nearsim.document SET body = %s WHERE external_id = %s"
        insert = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)"
        before.execute(edit, ("all other words in here", "a"))
        before.execute("DELETE FROM nearsim.document WHERE external_id = 'b'")
        during.execute(edit, ("no word of this is elsewhere", "c"))
        during.execute("DELETE FROM nearsim.document WHERE external_id = 'd'")
        during.execute(insert, ("g", "no word of this is elsewhere"))
        kept()
        during.commit()
        before.execute(edit, ("all other words in here", "e"))
        # All but f, once each: the captured insertions are discarded.
        assert ask(before, WAITING) == [1, 2, 3, 4, 5, 7]
    index.build()
    assert pairs(index) == {frozenset("ae"), frozenset("cg")}


def test_changes_taken_by_a_dispatcher_are_waited_for(
    index: Index, kept: Callable[[], None], database_url: str
) -> None:
    """A dispatcher that took changes before commits after: its work is discarded as the changes would have been."""
    index.add(documents(ALIKE, ALIKE + " seven"))
    with psycopg.connect(database_url) as dispatcher, application(database_url) as watching:
        taken = dispatcher.execute("DELETE FROM nearsim.change WHERE doc_id = 1 RETURNING doc_id").fetchall()
        discarding = Thread(target=kept)
        discarding.start()
        wait_until(watching, BLOCKED)
        dispatcher.execute("INSERT INTO nearsim.work (generation_id, doc_id, stage) VALUES (1, 1, 'sign')")
        dispatcher.commit()
        discarding.join()
        assert taken == [(1,)]
        assert (ask(watching, WAITING), ask(watching, QUEUED)) == ([], [])
    assert pairs(index) == {frozenset("ab")}


def test_work_dispatched_during_the_build_is_discarded(
    index: Index, kept: Callable[[], None], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work of documents that are as they were signed; not that of documents edited or deleted since, nor failures."""
    monkeypatch.setattr(dispatch, "_DISCARDED_PER_BATCH", 2)
    long = f"{ALIKE} seven eight nine ten"
    index.add(documents(*(f"{long} {word}" for word in ("x", "y", "z", "u", "v"))))
    with application(database_url) as writing:
        writing.execute("UPDATE nearsim.document SET body = 'all other words' WHERE external_id = 'b'")
        writing.execute("DELETE FROM nearsim.document WHERE external_id = 'c'")
        dispatch_changes(index.database.engine)
        assert ask(writing, QUEUED) == [1, 2, 3, 4, 5]
        writing.execute("UPDATE nearsim.work SET attempts = 1 WHERE doc_id = 4")
        kept()
        assert ask(writing, QUEUED) == [2, 3, 4]
    index.build()
    assert pairs(index) == {frozenset("ad"), frozenset("ae"), frozenset("de")}


def test_work_found_queued_by_a_dispatcher_is_not_discarded(
    index: Index, kept: Callable[[], None], database_url: str
) -> None:
    """A dispatcher that takes an edit leaves the work as it is queued already; discarding waits for its commit."""
    index.add(documents(ALIKE, ALIKE + " seven"))
    dispatch_changes(index.database.engine)
    engine = index.database.engine
    with engine.connect() as dispatcher, application(database_url) as writing:
        writing.execute("UPDATE nearsim.document SET body = 'all other words' WHERE external_id = 'a'")
        assert queue.dispatch(dispatcher, 10).changes == 1
        discarding = Thread(target=kept)
        discarding.start()
        wait_until(writing, BLOCKED)
        dispatcher.commit()
        discarding.join()
        assert ask(writing, QUEUED) == [1]
    index.build()
    assert pairs(index) == set()


def test_changes_stay_for_another_profile(index: Index) -> None:
    """Each generation of the collection is given what the other one was built from."""
    index.create_profile("pairs", RECIPE)
    index.create_profile("words", override(RECIPE, ["shingle.k=1"]))
    index.add(documents(ALIKE, ALIKE + " seven", "six five four three two one"))
    found = {name: pairs(Index(index.database, index.collection, name)) for name in ("pairs", "words")}
    assert found["pairs"] == {frozenset("ab")}
    assert found["words"] == {frozenset("ab"), frozenset("ac"), frozenset("bc")}


def test_changes_of_what_is_not_signed_are_dispatched(index: Index) -> None:
    """Documents past their retention and verdicts go the ordinary way, and nothing is left in the queue."""
    index.create_profile("default", override(RECIPE, ["retain.age=30 days"]))
    old = datetime(2020, 1, 1, tzinfo=UTC)
    index.add([*documents(ALIKE, ALIKE), Document("c", body=ALIKE, published_at=old)])
    assert pairs(index) == {frozenset("ab")}
    with index.database.transaction() as connection:
        rows = connection.execute("SELECT doc_id FROM nearsim.change UNION SELECT doc_id FROM nearsim.work")
        assert rows.fetchall() == []


class FirstBuild(World):
    """A collection whose first build is part of the history."""

    def __init__(self, url: str, settings: list[str]) -> None:
        super().__init__(url, settings)
        self.index.delete_profile("default")
        self.index.create_profile("default", self.profile.recipe)
        with self.index.database.transaction() as connection:
            (self.generation,) = list_generations(connection)

    def builder(self) -> None:
        """A process that builds, then dispatches what is left."""
        self.index._catch_up.ensure_built(self.generation.collection_id)
        dispatch_changes(self.engine)

    def dispatcher(self) -> None:
        """A worker that does not wait for the build."""
        for _ in range(3):
            dispatch_changes(self.engine)


@pytest.mark.parametrize("seed", some(range(8), "every seed"))
def test_any_interleaving_of_a_first_build_loses_no_write(
    database_url: str, monitor: psycopg.Connection[tuple[object, ...]], major: int, seed: int
) -> None:
    """Writers, a dispatcher and a build that may be killed, statement by statement; then one worker for the rest."""
    rng = random.Random(100 * major + seed)
    world = FirstBuild(database_url, WORLDS["no limit"])
    schedule = Schedule(rng, monitor, rng.choice([0.0, 0.01]))
    with world.index:
        world.writer(rng.random().hex(), 6)()
        writers = [Actor(f"writer {one}", world.writer(rng.random().hex(), 8)) for one in (1, 2)]
        others = [Actor("builder", world.builder), Actor("dispatcher", world.dispatcher)]
        try:
            schedule.run([*writers, *others], lambda killed: None)
            world.builder()
            world.drain()
            check(world)
        except BaseException as error:
            error.add_note(f"seed {seed}, after these steps:\n{schedule.listing()}")
            raise
