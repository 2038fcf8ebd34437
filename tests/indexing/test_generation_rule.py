"""A generation is committed before the snapshot of its build, so that no document is missed."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import IsolationLevel, sql
from psycopg.errors import DeadlockDetected, SerializationFailure

from nearsim_db import Document, Index
from nearsim_db.indexing import profiles
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.search.answers import list_newest
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.work import queue
from tests.builders.selection import some

Backend = psycopg.Connection[tuple[Any, ...]]

LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]
RECIPES = {"pairs": "shingle.k=2", "words": "shingle.k=1", "letters": "shingle.scheme=char"}
WORDS = ["the", "council", "voted", "to", "close", "the", "old", "bath", "at", "last"]


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    """Forty documents under one profile."""
    with Index.connect(database_url) as index:
        rng = random.Random(1)
        index.add(Document(f"d{number}", body=words(rng)) for number in range(40))
        yield index


def words(rng: random.Random) -> str:
    """A short text that is often the twin of another."""
    return " ".join(WORDS[: rng.randrange(3, len(WORDS))])


def create_profile(index: Index, name: str) -> None:
    """Make a profile, and build its index."""
    index.create_profile(name, override(Recipe(), [RECIPES[name]]))


def assert_holds_the_documents(index: Index) -> None:
    """Every profile's index has each document as it is now, and no other."""
    with index.database.transaction() as connection:
        rows = read(connection, "SELECT doc_id, revision, body FROM nearsim.document ORDER BY doc_id")
        for generation in list_newest(index.database, index.collection):
            encoded = index._contexts.make(generation).encoder.encode([body for _, _, body in rows])
            rows_of = generation.leaves.rows("signature")
            signed = connection.execute(
                sql.SQL("SELECT doc_id, revision, feature_digest FROM {} AS own ORDER BY doc_id").format(
                    rows_of
                )
            )
            assert signed.fetchall() == [
                (doc_id, revision, UUID(bytes=digest.tobytes()))
                for (doc_id, revision, _), digest in zip(rows, encoded.digests, strict=True)
            ]


def read(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """The result of a query."""
    return [tuple(row) for row in connection.execute(query.encode())]


def write(backend: Backend, rng: random.Random) -> None:
    """Insert, update or delete a document or two."""
    name = f"d{rng.randrange(60)}"
    for _ in range(rng.choice([1, 1, 2])):
        command, values = rng.choice(
            [
                (
                    "INSERT INTO nearsim.document (collection_id, external_id, body) SELECT collection_id, %s, %s"
                    " FROM nearsim.collection"
                    " ON CONFLICT (collection_id, external_id) DO UPDATE SET body = excluded.body",
                    (name, words(rng)),
                ),
                ("UPDATE nearsim.document SET body = %s WHERE external_id = %s", (words(rng), name)),
                ("DELETE FROM nearsim.document WHERE external_id = %s", (name,)),
            ]
        )
        backend.execute(command, values)


def write_all_day(url: str, level: IsolationLevel, seed: int, over: threading.Event) -> None:
    """An application with short and long transactions, some of them rolled back."""
    rng = random.Random(seed)
    with psycopg.connect(url) as backend:
        backend.isolation_level = level
        while not over.is_set():
            # Whoever writes under these levels has to expect that, and deadlocks under any.
            with suppress(SerializationFailure, DeadlockDetected), backend.transaction() as transaction:
                for _ in range(rng.choice([1, 1, 3, 30])):
                    write(backend, rng)
                if rng.random() < 0.1:
                    raise psycopg.Rollback(transaction)


def dispatch_all_day(url: str, over: threading.Event) -> None:
    """Another process that turns changes into work, for generations that it may not know."""
    engine = open_engine(url)
    while not over.is_set():
        dispatch_changes(engine)
    engine.dispose()


@contextmanager
def in_the_background(*actions: tuple[Any, ...]) -> Iterator[None]:
    """Threads that run until the block ends; their exceptions are raised."""
    over = threading.Event()
    with ThreadPoolExecutor(len(actions)) as pool:
        running = [pool.submit(partial(one[0], *one[1:], over)) for one in actions]
        try:
            yield
        finally:
            over.set()
    for one in running:
        one.result()


@pytest.mark.slow("writers of every isolation level")
def test_profiles_created_under_concurrent_writers_miss_nothing(index: Index, database_url: str) -> None:
    writers = [(write_all_day, database_url, level, seed) for seed, level in enumerate([*LEVELS, LEVELS[0]])]
    with in_the_background(*writers, *[(dispatch_all_day, database_url)] * 2):
        for name in RECIPES:
            with psycopg.connect(database_url) as long:
                long.isolation_level = LEVELS[len(name) % 3]
                long.execute(
                    "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, 'long')",
                    [name],
                )
                create_profile(index, name)
    index.build()
    assert len(index.profiles()) == 1 + len(RECIPES)
    assert_holds_the_documents(index)


@pytest.mark.parametrize("level", some(LEVELS, "every isolation level"), ids=lambda level: level.name)
def test_transactions_open_during_the_whole_build_are_indexed_after_it(
    index: Index, database_url: str, level: IsolationLevel
) -> None:
    with psycopg.connect(database_url) as writer:
        writer.isolation_level = level
        writer.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, 'new', 'late words')"
        )
        writer.execute("UPDATE nearsim.document SET body = 'edited' WHERE external_id = 'd1'")
        writer.execute("DELETE FROM nearsim.document WHERE external_id = 'd2'")
        create_profile(index, "words")
        assert_holds_the_documents(index)
        writer.commit()
    with index.database.transaction() as connection:
        assert len(read(connection, "SELECT FROM nearsim.change")) == 3
    index.build()
    assert_holds_the_documents(index)


def test_changes_dispatched_before_the_generation_are_in_its_snapshot(
    index: Index, connection: Connection
) -> None:
    """The dispatching statement began before the generation was committed; its transaction ends after."""
    with index.database.transaction() as writer:
        writer.execute("UPDATE nearsim.document SET body = 'edited' WHERE external_id = 'd1'")
    dispatched = queue.dispatch(connection, 100)
    assert (dispatched.changes, dispatched.whole) == (1, False)
    profile = resolve(override(Recipe(), [RECIPES["words"]]))
    with index.database.transaction() as creating:
        generation = profiles.create(creating, index._get_collection().collection_id, "words", profile)
    connection.commit()
    assert generation.tables(connection).work.count() == (0, 0)
    connection.commit()
    index.build()
    assert_holds_the_documents(index)


def test_changes_invisible_to_a_dispatcher_are_left_to_the_next(index: Index, connection: Connection) -> None:
    """A change that commits after the dispatching statement began stays queued, even if an older one is taken."""
    with index.database.transaction() as open_writer:
        open_writer.execute("UPDATE nearsim.document SET body = 'first' WHERE external_id = 'd1'")
        with index.database.transaction() as writer:
            writer.execute("UPDATE nearsim.document SET body = 'second' WHERE external_id = 'd2'")
        assert queue.dispatch(connection, 100).changes == 1
    assert queue.dispatch(connection, 100).changes == 1  # with a smaller change_id than that before
    connection.rollback()
    dispatch_changes(index.database.engine)
    index.build()
    assert_holds_the_documents(index)


def test_work_of_a_generation_waits_for_its_build(index: Index, connection: Connection) -> None:
    profile = resolve(override(Recipe(), [RECIPES["words"]]))
    generation = profiles.create(connection, index._get_collection().collection_id, "words", profile)
    connection.execute("UPDATE nearsim.document SET body = 'edited' WHERE external_id = 'd1'")
    connection.commit()
    dispatch_changes(index.database.engine)
    assert generation.tables(connection).work.count() == (1, 0)
    found = queue.find_work(connection, None)
    assert {generation_id for generation_id, _ in found} == {1} and generation.generation_id != 1
    connection.commit()
    index.build()
    assert generation.tables(connection).work.count() == (0, 0)
    connection.commit()
    assert_holds_the_documents(index)
