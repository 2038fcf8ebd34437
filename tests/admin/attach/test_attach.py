"""An attached collection: its index equals that of a collection that ingested the same rows."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.indexing import attached_sweep
from nearsim_db.store.attached import source_rows
from nearsim_db.store.attached.source_rows import AttachedSource
from nearsim_db.store.database import Database
from nearsim_db.store.documents import documents
from nearsim_db.store.driver.statements import run
from nearsim_db.worker.worker import Worker
from tests.builders.followed_table import (
    LATER_PARTITION,
    PARTITIONED,
    PLAIN,
    RECIPE,
    TRIGGERS,
    assert_as_ingested,
    attached,
    pairs,
    twin,
    words,
    write,
)
from tests.builders.relations import leaves_of
from tests.builders.selection import some
from tests.builders.workers import Application, application, ask


def scramble(app: Application, rng: random.Random) -> None:
    """Writes of all kinds, some in one transaction, some rolled back."""
    for _ in range(12):
        number, text = rng.randrange(60), words(rng.randrange(3), rng.randrange(9))
        command = rng.choice(
            [
                *3 * ["INSERT INTO story VALUES (%(id)s, 'new', %(text)s) ON CONFLICT DO NOTHING"],
                "INSERT INTO story VALUES (%(id)s, 'new', %(text)s) ON CONFLICT (id) DO UPDATE SET body = 'some'",
                *2 * ["UPDATE story SET body = %(text)s WHERE id = %(id)s"],
                "UPDATE story SET id = (SELECT max(id) + 1 FROM story) WHERE id = %(id)s",
                "UPDATE story SET seen = seen + 1",
                "UPDATE story SET body = body || ' and more', headline = 'x' WHERE id %% 7 = %(id)s %% 7",
                *2 * ["DELETE FROM story WHERE id = %(id)s"],
                "DELETE FROM story WHERE id %% 9 = %(id)s %% 9",
            ]
        )
        # Two writers may move rows to one id, or each wait for rows that the other has: the server refuses one of them.
        refused = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected)
        with suppress(*refused), app.transaction(force_rollback=rng.random() < 0.15):
            app.execute(command, {"id": number, "text": text})


@pytest.mark.parametrize("table", some([PARTITIONED, PLAIN], "every kind of table"))
def test_an_attached_table_is_indexed_like_an_ingested_one(
    where: str, database: Database, table: str
) -> None:
    rng = random.Random(table)
    with application(where) as app:
        app.execute(table.encode())
        for number in range(10):
            write(app, number, words(number % 2, number))
        if table == PARTITIONED:
            index = attached(database)
            app.execute(LATER_PARTITION)
        else:
            index = attached(database)
            app.execute("ALTER TABLE story ADD COLUMN later jsonb, DROP COLUMN seen")
            app.execute("ALTER TABLE story ADD COLUMN seen integer NOT NULL DEFAULT 1")
        if table == PARTITIONED:
            app.execute("ALTER TABLE story_rest SET (fillfactor = 90)")
        for at in range(3):
            scramble(app, rng)
            if at == 1:
                app.execute("TRUNCATE story")
                scramble(app, rng)
            index.build()
            assert_as_ingested(database, app, index)
        if table == PARTITIONED:
            assert "story_rest" in str(ask(app, TRIGGERS))


def test_a_sweep_without_changes_writes_nothing(story: Index, app: Application) -> None:
    app.execute("UPDATE story SET seen = seen + 1")
    assert ask(app, "SELECT count(*) FROM nearsim.change") == 0
    app.execute("UPDATE story SET body = body || ''")
    assert ask(app, "SELECT count(*) FROM nearsim.change") == 0
    before = ask(app, "SELECT max(revision) FROM nearsim.document")
    app.execute(
        "INSERT INTO nearsim.change (collection_id, external_id) SELECT collection_id, '3' FROM nearsim.collection"
    )
    swept = story.sweep()
    assert (swept.new, swept.changed, swept.gone) == (0, 0, 0)
    assert ask(app, "SELECT max(revision) FROM nearsim.document") == before


def test_null_is_not_empty(story: Index, app: Application) -> None:
    title = "SELECT title FROM nearsim.document WHERE external_id = '3'"
    for value in ("", None, ""):
        app.execute("UPDATE story SET headline = %s WHERE id = 3", (value,))
        assert ask(app, "SELECT array_agg(external_id) FROM nearsim.change") == ["3"]
        story.build()
        assert ask(app, title) == value
        assert ask(app, "SELECT count(*) FROM nearsim.change") == 0


def test_texts_are_not_copied(story: Index, app: Application) -> None:
    assert ask(app, "SELECT count(*) FROM nearsim.document WHERE body IS NOT NULL") == 0
    assert story.get("3")["body"] == words(1, 3)
    assert "body_digest" not in story.get("3")
    assert ask(app, "SELECT nearsim.body_of(doc_id) FROM nearsim.document WHERE external_id = '3'") in (
        words(1, 3),
        None,
    )
    app.execute("GRANT SELECT ON story TO PUBLIC")
    assert ask(app, "SELECT nearsim.body_of(doc_id) FROM nearsim.document WHERE external_id = '3'") == words(
        1, 3
    )
    assert {match.external_id for match in story.similar("3")} == {"1", "5", "7", "9"}
    found = {match.external_id for match in story.similar_to_text(words(0, 2), "title 2")}
    assert found == {"2", "4", "6", "8", "10"}


def test_rows_with_unusable_ids_are_skipped(app: Application, database: Database) -> None:
    app.execute(
        "ALTER TABLE story DROP CONSTRAINT story_pkey, ALTER id TYPE text, ALTER id DROP NOT NULL, ADD UNIQUE (id)"
    )
    app.execute("INSERT INTO story VALUES (NULL, 'nobody')")
    index = attached(database)
    app.execute("INSERT INTO story VALUES (NULL, 'nobody')")
    app.execute("UPDATE story SET body = 'nobody at all' WHERE id IS NULL")
    for odd in ("x" * 1025, "", "ü" * 513):
        app.execute("INSERT INTO story (id, body) VALUES (%s, 'odd')", (odd,))
        app.execute("UPDATE story SET body = 'odder' WHERE id = %s", (odd,))
    index.build()
    assert index.sweep().unusable == 5
    app.execute("UPDATE story SET id = 'fine' WHERE id = ''")
    index.build()
    assert index.get("fine")["body"] == "odder"
    found = app.execute("SELECT external_id FROM nearsim.document").fetchall()
    assert {name for (name,) in found} == {*map(str, range(1, 11)), "fine"}


@pytest.mark.slow("several builds")
def test_a_sweep_finds_changes_that_triggers_missed(where: str, database: Database) -> None:
    with application(where) as app:
        app.execute(PARTITIONED.encode())
        for number in range(30):
            write(app, number, words(number % 2, number))
        index = attached(database)
        app.execute("TRUNCATE story_low")
        app.execute("CREATE TABLE story_more (LIKE story INCLUDING ALL)")
        app.execute("INSERT INTO story_more SELECT id + 40, headline, body FROM story")
        app.execute("ALTER TABLE story ATTACH PARTITION story_more FOR VALUES FROM (40) TO (90)")
        app.execute("ALTER TABLE story DISABLE TRIGGER ALL")
        app.execute("UPDATE story SET body = 'unseen ' || body WHERE id = 25")
        app.execute("ALTER TABLE story ENABLE TRIGGER ALL")
        swept = index.sweep()
        assert (swept.new, swept.changed, swept.gone) == (10, 1, 20)
        assert_as_ingested(database, app, index)
        write(app, 60, words(0, 1)) if ask(app, "SELECT count(*) = 0 FROM story WHERE id = 60") else None
        app.execute("ALTER TABLE story DETACH PARTITION story_more")
        index.sweep()
        assert_as_ingested(database, app, index)
        assert "story_more" not in str(ask(app, TRIGGERS))


def unseen(app: Application, command: str) -> None:
    """A statement that fires no trigger."""
    app.execute("ALTER TABLE story DISABLE TRIGGER ALL")
    app.execute(command.encode())
    app.execute("ALTER TABLE story ENABLE TRIGGER ALL")


@pytest.mark.slow("several builds")
def test_changed_texts_are_detected_when_read(
    story: Index, app: Application, database: Database, database_url: str
) -> None:
    """By a build, and by workers that sign or verify, without waiting for the hourly sweep."""
    unseen(app, "UPDATE story SET body = 'changed where nobody looked' WHERE id IN (1, 2)")
    unseen(app, "DELETE FROM story WHERE id = 10")
    story.create_profile("other", RECIPE)
    for _ in range(2):
        story.build()
    other = Index(database, "story", "other")
    first = Index(database, "story", "default")
    reference = twin(database, app)
    assert pairs(other) == pairs(reference) == pairs(first)
    unseen(app, "UPDATE story SET body = 'changed again where nobody looked' WHERE id = 3")
    write(app, 20, words(1, 20))
    worker = Worker(database_url)
    assert worker.drain() == 0
    assert pairs(first) == pairs(other) == pairs(twin(database, app))
    unseen(app, "UPDATE story SET body = 'back' WHERE id = 5")
    app.execute("UPDATE nearsim.document SET attributes = '{\"touched\": 1}' WHERE external_id = '5'")
    assert worker.drain() == 0
    unseen(app, "UPDATE story SET body = 'back again' WHERE id = 5")
    app.execute("UPDATE nearsim.document SET attributes = '{\"touched\": 2}' WHERE external_id = '5'")
    assert worker.drain() == 0
    assert pairs(first) == pairs(twin(database, app))


def test_an_interrupted_load_continues(
    app: Application, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    slice_of = source_rows.update_slice
    left = [3]

    def interrupted(
        connection: object, source: AttachedSource, start: str, amount: int
    ) -> tuple[int, int, int]:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        found = slice_of(connection, source, start, amount)  # type: ignore[arg-type]
        app.execute("UPDATE story SET body = body || ' at last' WHERE id = 9")
        app.execute("DELETE FROM story WHERE id = 2")
        app.execute("INSERT INTO story VALUES (20, 'x', 'a text that comes between') ON CONFLICT DO NOTHING")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(attached_sweep, "_ROWS_PER_SLICE", 2)
        patched.setattr(source_rows, "update_slice", interrupted)
        left[:] = [1, 1, 1]
        with pytest.raises(KeyboardInterrupt):
            attached(database)
        assert 0 < int(str(ask(app, "SELECT count(*) FROM nearsim.document"))) < 10
    index = attached(database)
    assert_as_ingested(database, app, index)


@pytest.mark.slow("several builds")
def test_primary_key_of_the_table_is_used(
    story: Index, app: Application, database: Database, where: str
) -> None:
    app.execute(
        "INSERT INTO story SELECT n, 'x', 'text ' || n FROM generate_series(100, 3000) AS n; ANALYZE story"
    )
    story.sweep()
    app.execute("ANALYZE nearsim.document")
    (leaves,) = leaves_of(where)
    with database.transaction() as connection:
        collection_id = run(connection, "SELECT collection_id FROM nearsim.collection").value()
        source = source_rows.get_source(connection, collection_id)
        statements: dict[str, dict[str, object]] = {
            "read_source_documents": {"doc_ids": list(range(1, 900)), "age": None},
            "read_unsigned_source_documents": {"after": 0, "through": 9999, "age": None, "amount": 500},
            "delete_orphans_in_slice": {"after": 0, "amount": 500},
            "copy_texts": {"after": 0, "amount": 500},
            "delete_orphans": {"ids": [str(number) for number in range(900)], "former_values": [""] * 900},
        }
        for name, parameters in statements.items():
            command = psycopg.sql.SQL("EXPLAIN ") + source.statement(
                name,
                signature=leaves.rows("signature"),
                generation_id=psycopg.sql.Literal(leaves.generation_id),
            )
            parameters |= {"collection_id": collection_id, **source.collections}
            plan = "\n".join(str(row[0]) for row in connection.execute(command, parameters))
            assert "story_pkey" in plan and "Seq Scan on story" not in plan, (name, plan)


@pytest.mark.slow("builds twice")
def test_split_batches_give_the_same_pairs(
    story: Index, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_SOURCE_SLICE_ROWS", 3)
    story.create_profile("sliced", RECIPE)
    assert pairs(Index(database, "story", "sliced")) == pairs(Index(database, "story", "default"))


@pytest.mark.slow("load")
def test_concurrent_writes_and_workers_reach_the_expected_state(
    app: Application, database: Database, where: str
) -> None:
    """Two writers, a worker and sweeps run concurrently; after the queue is drained nothing is missing."""
    index = attached(database)
    worker = Worker(where)
    (attachment,) = attach.list_attachments(database)

    def sweep() -> None:
        for _ in range(4):
            attached_sweep.sweep(database.engine, attachment.collection_id)

    def writer(seed: int) -> None:
        with application(where) as connection:
            for _ in range(4):
                scramble(connection, random.Random(seed))
                seed += 2

    with ThreadPoolExecutor() as pool:
        running = pool.submit(worker.run)
        try:
            for done in [pool.submit(writer, 0), pool.submit(writer, 1), pool.submit(sweep)]:
                done.result()
        finally:
            worker.stop()
        running.result()
    assert Worker(where).drain() == 0
    assert_as_ingested(database, app, index)
