"""Draining a long queue, and waiting for work that is postponed for a moment."""

import pytest

from nearsim_db import Document, Index
from nearsim_db.indexing.queue import runner
from nearsim_db.search.answers import list_newest
from nearsim_db.store.driver import Connection
from nearsim_db.store.work import queue
from nearsim_db.store.work.queue import WorkQueue

QUEUED, BATCH = 3_200, 500


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[str]:
    """A list that gets an entry with each call of a function."""
    calls: list[str] = []
    function = getattr(owner, name)

    def counted(*given: object) -> object:
        calls.append(name)
        return function(*given)

    monkeypatch.setattr(owner, name, counted)
    return calls


def test_a_long_queue_is_taken_without_a_look_before_each_batch(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end is looked for once a second and after a small batch; what was done is vacuumed."""
    looks = count_calls(monkeypatch, WorkQueue, "has_unfinished")
    vacuums = count_calls(monkeypatch, queue, "vacuum_work")
    monkeypatch.setattr(runner, "_CHECK_SECONDS", 60.0)
    monkeypatch.setattr(runner, "_DOCUMENTS_BETWEEN_VACUUMS", 1_000)
    monkeypatch.setitem(runner._BATCH_DOCUMENTS, "link", BATCH)
    with Index.connect(database_url) as index, index.database.lease() as lease_id:
        index.add([Document("a", body="one two three")])
        context = index.serving().context
        with index.database.transaction() as connection:
            context.tables(connection).work.add("link", range(1, QUEUED + 1))
        looks.clear()
        steps: list[tuple[str, int]] = []
        runner.Runner(index.database.engine, context).drain(
            lease_id, lambda step, done, total: steps.append((step, done))
        )
    assert steps == [("clusters", done) for done in (500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_200)]
    assert len(looks) == len(queue.STAGES) + 1
    assert len(vacuums) == 3


def test_documents_queued_again_meanwhile_stay_queued(database_url: str) -> None:
    """All that is under the lease is returned; what was queued again waits as new."""
    with Index.connect(database_url) as index, index.database.lease() as lease_id:
        index.add([Document("a", body="one two three")])
        (generation,) = list_newest(index.database, index.collection)
        with index.database.transaction() as connection:
            work = generation.tables(connection).work
            work.add("link", [1, 2, 3])
            (batch,) = work.take("link", lease_id, 10)
            work.add("link", [2])
            assert work.finish(batch) == [1, 2, 3]
            (again,) = work.take("link", lease_id, 10)
            assert again.doc_ids == [2]


def test_build_waits_for_postponed_work(database_url: str, connection: Connection) -> None:
    body = "The storm closed the ferry to the island for a second day, the harbour master said."
    with Index.connect(database_url) as index:
        index.add([Document("a", None, body), Document("b", None, body.replace("master", "office"))])
        (before,) = index.pairs()
        (generation,) = list_newest(index.database, index.collection)
        connection.execute("DELETE FROM nearsim.similar_pair")
        generation.tables(connection).work.add("search", [1, 2], 0.3)
        connection.commit()
        assert list(index.pairs()) == []
        index.build()
        assert list(index.pairs()) == [before]
        assert index.stats()["queued"] == 0
