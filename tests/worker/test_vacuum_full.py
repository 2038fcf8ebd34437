"""VACUUM FULL of the index's tables while an application writes and two workers follow."""

from threading import Event, Thread

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from nearsim_db.store.driver.statements import PARENTS
from tests.builders.reindex_world import RECIPE, jaccard_pairs, pairs_of, texts_of, words
from tests.builders.relations import identifier, leaves_of
from tests.builders.workers import IDLE, application, ask, running, wait_until

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
