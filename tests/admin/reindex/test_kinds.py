"""Reindexing with verdicts, retention and attached tables."""

import pytest

from nearsim_db import Database, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.store.driver.statements import run
from tests.builders.filled import database_of
from tests.builders.followed_table import assert_as_ingested, words, write
from tests.builders.reindex_world import LOWER, fill, jaccard_pairs, pairs_of, texts_of
from tests.builders.workers import Application

# A collection with a live index, on the newest major.
filled = database_of(fill)


def test_a_new_retention_is_applied(filled: Database) -> None:
    old = (
        "UPDATE nearsim.document SET published_at = now() - interval '60 days' "
        "WHERE external_id IN ('d0', 'd1', 'd4')"
    )
    with filled.transaction() as connection:
        connection.execute(old.encode())
    Reindex(filled, "default").start(settings=[*LOWER, "retain.age=30 days"])
    texts = {name: body for name, body in texts_of(filled).items() if name not in ("d0", "d1", "d4")}
    assert pairs_of(filled, 2) == jaccard_pairs(texts, 0.3)


@pytest.mark.slow("attaches and reindexes")
def test_both_generations_are_kept_current_with_an_attached_table(app: Application, story: Index) -> None:
    one = Reindex(story.database, story.collection)

    def progress(step: str, done: int, total: int | None) -> None:
        if step == "bands" and not app.execute("SELECT FROM story WHERE id = 11").fetchall():
            write(app, 11, words(0, 11))
            app.execute("UPDATE story SET body = %s WHERE id = 3", (words(7, 3),))
            app.execute("DELETE FROM story WHERE id = 4")

    Reindex(story.database, story.collection, progress=progress).start()
    one.promote()
    app.execute("INSERT INTO story (id, headline, body) VALUES (12, 'title 12', %s)", (words(1, 12),))
    story.build()
    assert_as_ingested(story.database, app, story)


@pytest.mark.usefixtures("own_tables")
def test_tables_of_a_new_generation_are_logged(filled: Database) -> None:
    made = Reindex(filled, "default").start()
    tables = "SELECT relpersistence, count(*) FROM pg_class WHERE relname ~ %(ending)s AND relkind = 'r' GROUP BY 1"
    with filled.transaction() as connection:
        assert run(connection, tables, ending=f"_{made.generation_id}$").rows() == [
            ("p", len(made.leaves.own))
        ]
