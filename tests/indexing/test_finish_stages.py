"""Waiting for a long queue, and for work that is postponed for a moment."""

import pytest

from nearsim_db import Document, Index
from nearsim_db.indexing import finish_stages
from nearsim_db.records import silent
from nearsim_db.store.driver import Connection
from nearsim_db.store.work import queue

QUEUED, BATCH = 3_200, 500


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """A list that gets an entry with each call of a function of the queue."""
    calls: list[str] = []
    function = getattr(queue, name)

    def counted(*given: object) -> object:
        calls.append(name)
        return function(*given)

    monkeypatch.setattr(queue, name, counted)
    return calls


def test_a_long_queue_is_taken_without_a_look_before_each_batch(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end is looked for once a second and after a small batch; what was done is vacuumed."""
    looks = count_calls(monkeypatch, "has_unfinished_work")
    vacuums = count_calls(monkeypatch, "vacuum_work")
    batches: list[int] = []
    monkeypatch.setattr(finish_stages, "_CHECK_SECONDS", 60.0)
    monkeypatch.setattr(finish_stages, "_VACUUM_EVERY", 1_000)
    with Index.connect(database_url) as index, index.database.lease() as lease_id:
        index.add([Document("a", body="one two three")])
        ((generation, _),) = index.profiles()
        leaves, engine = generation.leaves, index.database.engine
        with index.database.transaction() as connection:
            queue.queue_work(connection, leaves, "link", range(1, QUEUED + 1))
        looks.clear()

        def do_batch() -> int:
            with index.database.transaction() as connection:
                taken = queue.take(connection, leaves, "link", lease_id, BATCH)
                done = [task.doc_id for tasks in taken for task in tasks]
                assert queue.finish(connection, leaves, "link", lease_id, done) == done
            batches.append(len(done))
            return len(done)

        finish_stages.finish_stages(engine, leaves, lease_id, {"link": do_batch}, silent)
    assert batches == [500, 500, 500, 500, 500, 500, 200]
    assert len(looks) == 2
    assert len(vacuums) == 3


def test_documents_queued_again_meanwhile_stay_queued(database_url: str) -> None:
    """All that is under the lease is returned; what was queued again waits as new."""
    with Index.connect(database_url) as index, index.database.lease() as lease_id:
        index.add([Document("a", body="one two three")])
        ((generation, _),) = index.profiles()
        leaves = generation.leaves
        with index.database.transaction() as connection:
            queue.queue_work(connection, leaves, "link", [1, 2, 3])
            queue.take(connection, leaves, "link", lease_id, 10)
            queue.queue_work(connection, leaves, "link", [2])
            assert queue.finish(connection, leaves, "link", lease_id, [1, 2, 3, 4]) == [1, 2, 3]
            (again,) = queue.take(connection, leaves, "link", lease_id, 10)
            assert [task.doc_id for task in again] == [2]


def test_build_waits_for_postponed_work(database_url: str, connection: Connection) -> None:
    body = "The storm closed the ferry to the island for a second day, the harbour master said."
    with Index.connect(database_url) as index:
        index.add([Document("a", None, body), Document("b", None, body.replace("master", "office"))])
        (before,) = index.pairs()
        ((generation, _),) = index.profiles()
        connection.execute("DELETE FROM nearsim.similar_pair")
        queue.queue_work(connection, generation.leaves, "search", [1, 2], 0.3)
        connection.commit()
        assert list(index.pairs()) == []
        index.build()
        assert list(index.pairs()) == [before]
        assert index.stats()["queued"] == 0
