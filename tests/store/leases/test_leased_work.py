"""Batches: work under a lease from its dispatch on, and from signing to the search that follows."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nearsim_db import Index
from nearsim_db.indexing import steps
from nearsim_db.indexing.queue.dispatch import dispatch_changes, dispatch_leased
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.store.documents import purges
from nearsim_db.store.driver import Connection, statements
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import backlog, leases, queue
from nearsim_db.store.work.queue import Batch, WorkQueue
from tests.builders.leased_work import BODIES, context_of, insert, read, run, signed, take, write
from tests.builders.workers import BLOCKED, application, wait_until


def test_dispatch_leases_new_work_to_sign(
    index: Index, leaves: Leaves, connection: Connection, other: Connection
) -> None:
    one = leases.open_lease(connection, "one")
    connection.commit()
    insert(index, *BODIES)
    changes, dispatched = dispatch_leased(index.database.engine, one, [leaves.generation_id])
    assert changes == 3
    assert [batch.doc_ids for batch in dispatched.values()] == [[1, 2, 3]]
    assert read(index, "SELECT stage, doc_ids, lease_id FROM nearsim.work") == [("sign", [1, 2, 3], one)]
    assert take(other, leaves, leases.open_lease(other, "two")) == []


def test_dispatch_leases_nothing_that_is_queued_or_under_a_lost_lease(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    one, ids = leases.open_lease(connection, "one"), [leaves.generation_id]
    connection.commit()
    write(index, *BODIES)
    run(index, "UPDATE nearsim.document SET body = 'something else'")
    assert dispatch_leased(index.database.engine, one, ids) == (3, {})
    leases.close_lease(connection, one)
    connection.commit()
    insert(index, *BODIES)
    assert dispatch_leased(index.database.engine, one, ids) == (3, {})
    assert take(connection, leaves, leases.open_lease(connection, "two")) == [[1, 2, 3, 4, 5, 6]]


def test_two_processes_dispatch_changes_of_one_document(
    database_url: str, index: Index, connection: Connection
) -> None:
    insert(index, BODIES[0])
    assert queue.dispatch(connection, 10).changes == 1
    run(index, "UPDATE nearsim.document SET body = 'something else'")
    dispatching = threading.Thread(target=dispatch_changes, args=(index.database.engine,))
    dispatching.start()
    with application(database_url) as watching:
        wait_until(watching, BLOCKED)
    connection.commit()
    dispatching.join()
    assert read(index, "SELECT doc_id, lease_id FROM nearsim.work") == [(1, None)]
    assert not read(index, "SELECT FROM nearsim.change")


def test_dispatchers_take_different_changes_at_the_same_time(
    index: Index, connection: Connection, other: Connection
) -> None:
    insert(index, *BODIES)
    assert queue.dispatch(connection, 2).changes == 2
    other.execute("SET lock_timeout = '1s'")
    assert queue.dispatch(other, 10).changes == 1


def test_dispatch_does_not_wait_for_a_purge(index: Index, connection: Connection, other: Connection) -> None:
    """Nor does the purge wait for more than the changes of its documents."""
    insert(index, *BODIES)
    assert purges.delete_changes(connection, np.array([2])) == 1
    other.execute("SET lock_timeout = '1s'")
    assert queue.dispatch(other, 10).changes == 2


def test_dispatch_and_batch_write_little_log(index: Index, leaves: Leaves, connection: Connection) -> None:
    lease_id = leases.open_lease(connection, "one")
    connection.commit()
    insert(index, *["words"] * 2_000)
    before = statements.run(connection, "SELECT pg_current_wal_insert_lsn()").value()
    dispatched = queue.dispatch(connection, 2_000, lease_id, [leaves.generation_id])
    assert len(dispatched.batches[leaves.generation_id].doc_ids) == 2_000
    written = "SELECT pg_current_wal_insert_lsn() - CAST(%(before)s AS pg_lsn)"
    assert statements.run(connection, written, before=before).value() < 2_000 * 120


def test_work_to_search_takes_the_place_of_work_to_sign(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    lease_id = leases.open_lease(connection, "one")
    connection.commit()
    insert(index, *BODIES, "")
    (batch,) = dispatch_leased(index.database.engine, lease_id, [leaves.generation_id])[1].values()
    queued_at = read(index, "SELECT queued_at FROM nearsim.work")
    WorkQueue(connection, leaves).add("sign", [3])  # written again meanwhile
    WorkQueue(connection, leaves).add("search", [1])
    connection.commit()
    searching = runner_of(index).run(batch)
    assert searching is not None and searching.doc_ids == [1, 3]
    single = "SELECT stage, doc_id, lease_id FROM nearsim.work WHERE doc_ids IS NULL ORDER BY 1, 2"
    assert read(index, single) == [("link", 2, None), ("sign", 3, None)]
    assert read(index, "SELECT stage, doc_ids, lease_id FROM nearsim.work WHERE doc_id < 0") == [
        ("search", [1, 3], lease_id)
    ]
    assert read(index, "SELECT queued_at FROM nearsim.work WHERE doc_id < 0") == queued_at


def test_worker_searches_what_it_signed(index: Index, connection: Connection) -> None:
    """No other worker takes the search while the lease is valid."""
    write(index, *BODIES, f"{BODIES[0]} seven")
    lease_id, runner = leases.open_lease(connection, "one"), runner_of(index)
    connection.commit()
    with index.database.lease() as second:
        (batch,) = runner.take("sign", lease_id)
        searching = runner.run(batch)
        assert searching is not None and searching.doc_ids == [1, 3, 4]
        assert runner.work("search", second) == 0
        assert runner.run(searching) is None
    assert read(index, "SELECT left_id, right_id FROM nearsim.similar_pair") == [(1, 4)]
    assert read(index, "SELECT FROM nearsim_index.queued_work WHERE stage = 'search'") == []


def test_search_of_a_lost_lease_is_done_by_another_worker(index: Index, connection: Connection) -> None:
    write(index, *BODIES, f"{BODIES[0]} seven")
    lease_id, runner = leases.open_lease(connection, "one"), runner_of(index)
    connection.commit()
    (batch,) = runner.take("sign", lease_id)
    searching = runner.run(batch)
    lose_leases(index)
    assert read(index, "SELECT doc_id, attempts FROM nearsim.work WHERE stage = 'search'") == [
        (1, 1),
        (3, 1),
        (4, 1),
    ]
    assert searching is not None and runner.run(searching) is None
    assert read(index, "SELECT FROM nearsim.similar_pair") == []
    index.build()
    assert read(index, "SELECT left_id, right_id FROM nearsim.similar_pair") == [(1, 4)]
    assert read(index, "SELECT FROM nearsim_index.queued_work") == []


def test_batch_of_a_lost_lease_stores_no_signatures(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    lease_id = leases.open_lease(connection, "one")
    connection.commit()
    insert(index, *BODIES)
    (batch,) = dispatch_leased(index.database.engine, lease_id, [leaves.generation_id])[1].values()
    lose_leases(index)
    assert runner_of(index).run(batch) is None and signed(index) == 0
    assert read(index, "SELECT DISTINCT stage, lease_id, attempts FROM nearsim.work") == [("sign", None, 1)]
    index.build()
    assert signed(index) == 3


def test_closed_lease_releases_batches_without_counting_an_attempt(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    """Work that was queued for one of the documents meanwhile, and that another worker has, is repeated."""
    one, two = leases.open_lease(connection, "one"), leases.open_lease(connection, "two")
    connection.commit()
    insert(index, *BODIES)
    dispatch_leased(index.database.engine, one, [leaves.generation_id])
    WorkQueue(connection, leaves).add("sign", [2])
    assert take(connection, leaves, two) == [[2]]
    leases.close_lease(connection, one)
    connection.commit()
    assert read(index, "SELECT doc_id, lease_id, attempts FROM nearsim_index.queued_work ORDER BY 1, 2") == [
        (1, None, 0),
        (2, two, 0),
        (2, None, 0),
        (3, None, 0),
    ]


@pytest.mark.parametrize(
    ("write_again", "heads"),
    [
        ("UPDATE nearsim.document SET body = 'of other words' WHERE doc_id = 1", [(1, 1), (2, 2), (3, 3)]),
        ("DELETE FROM nearsim.document WHERE doc_id = 1", [(2, 2), (3, 3)]),
    ],
)
def test_document_written_again_while_its_batch_is_signed(
    index: Index, leaves: Leaves, connection: Connection, write_again: str, heads: list[tuple[int, int]]
) -> None:
    """Another worker is done with the later revision before the batch stores the earlier one."""
    one, two = leases.open_lease(connection, "one"), leases.open_lease(connection, "two")
    connection.commit()
    insert(index, *BODIES)
    engine, store = index.database.engine, steps.store_signatures

    def sign(lease_id: int) -> None:
        (batch,) = dispatch_leased(engine, lease_id, [leaves.generation_id])[1].values()
        if (searching := runner_of(index).run(batch)) is not None:
            runner_of(index).run(searching)

    def store_late(*arguments: Any) -> Batch | None:
        patched.undo()
        run(index, write_again)
        sign(two)
        return store(*arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(steps, "store_signatures", store_late)
        sign(one)
    index.build()
    assert read(index, "SELECT doc_id, head_id FROM nearsim.signature ORDER BY 1") == heads
    revisions = read(index, "SELECT doc_id, revision FROM nearsim.document ORDER BY 1")
    assert read(index, "SELECT doc_id, revision FROM nearsim.signature ORDER BY 1") == revisions


def test_failed_batch_becomes_work_of_each_document(
    index: Index, leaves: Leaves, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease_id = leases.open_lease(connection, "one")
    connection.commit()
    insert(index, *BODIES)
    (batch,) = dispatch_leased(index.database.engine, lease_id, [leaves.generation_id])[1].values()
    warnings: list[str] = []
    context = replace(context_of(index), warn=warnings.append)
    monkeypatch.setattr(steps, "store_signatures", broken)
    assert Runner(index.database.engine, context).run(batch) is None
    assert (
        len(warnings) == 1 and "sign of 3 documents failed" in warnings[0] and "out of ideas" in warnings[0]
    )
    assert read(index, "SELECT DISTINCT stage, lease_id, attempts FROM nearsim.work") == [("sign", None, 1)]


def test_documents_of_a_batch_are_listed_and_counted(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    lease_id = leases.open_lease(connection, "one")
    connection.commit()
    insert(index, *BODIES)
    dispatch_leased(index.database.engine, lease_id, [leaves.generation_id])
    assert read(index, "SELECT stage, waiting, due, leased FROM nearsim.backlog") == [("sign", 3, 0, 3)]
    assert read(index, "SELECT nearsim.document_state(generation_id, 2) FROM nearsim.generation") == [
        ("waits to be indexed",)
    ]
    assert WorkQueue(connection, leaves).count() == (3, 0)
    assert WorkQueue(connection, leaves).has_unfinished("sign", queue.server_time(connection))
    listed = backlog.stream_work(connection, None, None, failed=False)
    assert [(item.stage, item.state, item.worker) for item in listed] == [("sign", "being done", "one")] * 3


def runner_of(index: Index) -> Runner:
    """The runner of a worker for the live generation."""
    return Runner(index.database.engine, context_of(index))


def broken(*arguments: object) -> None:
    """Fail for a reason that may lie in the documents."""
    raise ValueError("out of ideas")


def lose_leases(index: Index) -> None:
    """Let all leases expire, and release their work."""
    run(index, "UPDATE nearsim_index.lease SET beat_at = beat_at - interval '1 hour'")
    with index.database.transaction() as freeing:
        leases.release_lost_work(freeing)
