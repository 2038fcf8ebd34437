"""Purging while workers sign and search: a text they have read does not return."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.indexing import purge as purging
from nearsim_db.indexing import steps
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.records import WorkStage
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Engine
from nearsim_db.store.driver.engine import open_engine
from tests.builders.interleaving import Actor, Schedule, step_through
from tests.builders.purged_secret import NAME, assert_whole, doc_id_of, traces, with_secret
from tests.builders.selection import some


@contextmanager
def queued(database_url: str) -> Iterator[Index]:
    """An index whose documents were written by another application and are not signed yet."""
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), ["match.threshold=0.5"]))
        index.add([Document("first", body="something else altogether")])
        index.delete(["first"])
        with index.database.transaction() as connection:
            for one in with_secret():
                connection.execute(
                    "INSERT INTO nearsim.document (collection_id, external_id, title, body) VALUES (1, %s, %s, %s)",
                    (one.external_id, one.title, one.body),
                )
        dispatch_changes(index.database.engine)
        yield index


def test_workers_do_not_store_texts_purged_after_reading(database_url: str) -> None:
    with queued(database_url) as index, index.database.lease() as lease_id:
        doc_id = doc_id_of(database_url, NAME)
        context, engine = index.serving().context, index.database.engine
        with engine.connect() as connection:
            (batch,) = context.tables(connection).work.take("sign", lease_id, 100)
            assert doc_id in batch.doc_ids
            (read,) = documents.stream_documents(connection, context.collection_id, batch.doc_ids)
            rows = steps.sign_documents(context, read)
            connection.commit()
            assert _purge_only(index, engine) == [NAME]
            held = context.tables(connection).work.lock(batch)
            assert held == [one for one in batch.doc_ids if one != doc_id]
            searching = steps.store_signatures(
                connection, context, held, rows.take(rows.doc_ids != doc_id), batch
            )
            connection.commit()
        assert searching is not None
        Runner(engine, context).run(searching)
        index.build()
        assert traces(database_url, doc_id) == {}
        assert_whole(index)


def _purge_only(index: Index, engine: Engine) -> list[str]:
    """A purge without indexing other changes, which would wait for other sessions."""
    collection_id = index._get_collection().collection_id
    return purging.purge(engine, collection_id, [NAME], [], index._contexts, lambda: None).deleted


@pytest.mark.parametrize("seed", some(range(6), "every seed"))
def test_purged_texts_do_not_return_in_any_interleaving(database_url: str, major: int, seed: int) -> None:
    """Two workers at every stage and a purge, one statement at a time."""
    rng = random.Random(100 * major + seed)
    with queued(database_url) as index, psycopg.connect(database_url, autocommit=True) as monitor:
        doc_id = doc_id_of(database_url, NAME)
        engine = open_engine(database_url)
        step_through(engine)
        stages: list[WorkStage] = ["sign", "search", "anchor", "link"]
        if seed % 2:
            index.build()
            with psycopg.connect(database_url) as connection:
                for stage in stages:
                    connection.execute(
                        "INSERT INTO nearsim.work (generation_id, doc_id, stage) "
                        "SELECT generation_id, doc_id, %s FROM nearsim.document, nearsim.generation",
                        [stage],
                    )
                connection.execute("UPDATE nearsim.document SET body = body || ' more'")

        def work() -> None:
            with Database(engine, index.database.settings).lease() as lease_id:
                dispatch_changes(engine)
                runner = Runner(engine, index.serving().context)
                for stage in stages:
                    runner.work(stage, lease_id)

        def purge() -> None:
            _purge_only(index, engine)

        actions = {"worker 1": work, "worker 2": work, "purge": purge}
        schedule = Schedule(rng, monitor)
        schedule.run([Actor(name, action) for name, action in actions.items()], lambda killed: None)
        index.build()
        assert traces(database_url, doc_id) == {}, schedule.listing()
        assert_whole(index)
        engine.dispose()
