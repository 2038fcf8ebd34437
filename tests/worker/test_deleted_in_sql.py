"""Tables of the index that others delete or vacuum in plain SQL while workers follow."""

from threading import Event, Thread

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.indexing import drop_generation, steps
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import PARENTS, Leaves, run
from nearsim_db.store.generations import tables
from nearsim_db.worker.worker import Worker
from tests.builders.reindex_world import RECIPE, jaccard_pairs, pairs_of, texts_of, words
from tests.builders.relations import identifier, leaves_of
from tests.builders.workers import IDLE, application, ask, running, wait_until

WORDS = " ".join(f"word{number}" for number in range(60))


def rows(url: str, leaves: Leaves) -> list[int | None]:
    """The number of rows that a generation has in each table; None for a table that does not exist."""
    count = sql.SQL("SELECT count(*) FROM {} WHERE generation_id = %s")
    found: list[int | None] = []
    with psycopg.connect(url) as connection:
        for parent in PARENTS:
            exists = connection.execute("SELECT to_regclass(%s)", [leaves.qualified(parent)]).fetchone()
            if exists == (None,):
                found.append(None)
            else:
                (number,) = connection.execute(
                    count.format(leaves.table(parent)), [leaves.generation_id]
                ).fetchone() or (None,)
                found.append(number)
    return found


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("either_tables")
def test_a_worker_drops_what_deleted_collections_leave(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_ROWS_PER_DELETION", 10)
    for collection in ("gone", "kept", "profile gone"):
        with Index.connect(database_url, collection=collection) as index:
            index.add(Document(f"d{number}", body=f"{WORDS} {number}") for number in (1, 2))
    gone, kept, without = leaves_of(database_url)
    before = rows(database_url, kept)
    assert all(before) and all(rows(database_url, gone))
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM nearsim.collection WHERE name = 'gone'")
        connection.execute(
            "DELETE FROM nearsim.profile USING nearsim.collection WHERE "
            "profile.collection_id = collection.collection_id AND collection.name = 'profile gone'"
        )
    assert all(rows(database_url, gone))
    Worker(database_url).drain()
    assert not any([*rows(database_url, gone), *rows(database_url, without)])
    assert rows(database_url, kept) == before
    with psycopg.connect(database_url) as connection:
        functions = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'nearsim_index'::regnamespace AND proname ~ %s",
            [f"_{gone.generation_id}$"],
        ).fetchall()
    assert functions == []


def test_deleted_twins_leave_with_their_head(database_url: str) -> None:
    """Otherwise each batch of a large family gives the twins of later batches another head."""
    with Index.connect(database_url) as index:
        index.add(Document(f"d{number}", body=WORDS) for number in range(6))
        context = index.serving().context
        with index.database.transaction() as connection:
            deleted = run(
                connection, "DELETE FROM nearsim.document WHERE external_id < 'd4' RETURNING doc_id"
            ).values()
            steps.store_signatures(connection, context, deleted[:1], steps.sign_documents(context, []))
            found = run(connection, "SELECT doc_id, head_id FROM nearsim_index.signed").rows()
        assert sorted(found) == [(one, deleted[-1] + 1) for one in (deleted[-1] + 1, deleted[-1] + 2)]
        Worker(database_url).drain()
        assert [(one.left, one.right) for one in index.pairs()] == [("d4", "d5")]


@pytest.mark.slow("several workers")
@pytest.mark.usefixtures("own_tables")
def test_remains_that_are_read_are_left_to_the_next_run(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.add([Document("1", body="some words")])
    (leaves,) = leaves_of(database_url)
    engine = open_engine(database_url)
    with psycopg.connect(database_url) as reader, psycopg.connect(database_url) as other:
        other.execute("DELETE FROM nearsim.collection")
        other.commit()
        reader.execute(sql.SQL("SELECT FROM {}").format(leaves.table("signature")))
        assert drop_generation.drop_remains(engine) == []
        reader.rollback()
        assert drop_generation.drop_remains(engine) == [leaves.generation_id]
        assert drop_generation.drop_remains(engine) == []
    assert rows(database_url, leaves) == [0 if leaves.is_shared(parent) else None for parent in PARENTS]
    engine.dispose()


_TABLES = ("document", "work", "change", "event")
_ROUNDS = 3
_WRITE = (
    "INSERT INTO nearsim.document (collection_id, external_id, body) SELECT collection_id, %s, %s "
    "FROM nearsim.collection ON CONFLICT (collection_id, external_id) DO UPDATE SET body = excluded.body"
)


def write(url: str, stopped: Event) -> None:
    """An application that writes and edits forty documents until it is stopped."""
    number = 0
    with psycopg.connect(url, autocommit=True) as connection:
        while not stopped.wait(0.005):
            connection.execute(_WRITE, (f"d{number % 40}", words(number % 40, number // 40 % 2)))
            number += 1


@pytest.mark.slow("writes and vacuums for seconds")
@pytest.mark.each_major
@pytest.mark.usefixtures("either_tables")
def test_vacuum_full_of_partitions_under_load(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), RECIPE))
        index.build()
    (leaves,) = leaves_of(database_url)
    stopped = Event()
    writer = Thread(target=write, args=(database_url, stopped))
    with running(database_url), running(database_url), application(database_url) as app:
        writer.start()
        wait_until(app, "SELECT count(*) > 0 FROM nearsim.similar_pair")
        for _ in range(_ROUNDS):
            for table in (*map(leaves.name, PARENTS), *_TABLES):
                app.execute(psycopg.sql.SQL("VACUUM (FULL, ANALYZE) {}").format(identifier(table)))
        stopped.set()
        writer.join()
        wait_until(app, IDLE)
        assert ask(app, "SELECT count(*) FROM nearsim.document") == 40
    with Database.connect(database_url) as database:
        assert pairs_of(database, leaves.generation_id) == jaccard_pairs(texts_of(database), 0.5)
        assert verify_index(database, sample=None).found.faults == ()
