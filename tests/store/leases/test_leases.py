"""Leases: which worker has which work, and what happens when it fails, dies or stops its heartbeat."""

import threading

import pytest

from nearsim_db import Index
from nearsim_db.errors import DatabaseError
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.records import silent
from nearsim_db.store.driver import Connection, statements
from nearsim_db.store.driver.locks import Lock, release_lock, take_transaction_lock
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import leases, queue
from nearsim_db.store.work.queue import WorkQueue
from tests.builders.leased_work import BODIES, context_of, edit, read, run, signed, take, take_batch, write


@pytest.mark.slow("starts processes")
def test_concurrent_workers_take_disjoint_batches(
    index: Index, leaves: Leaves, connection: Connection, other: Connection
) -> None:
    write(index, *BODIES * 4)
    one, two = leases.open_lease(connection, "one"), leases.open_lease(other, "two")
    (first,), (second,) = take(connection, leaves, one, 5), take(other, leaves, two, 5)
    assert first == list(range(1, 6)) and second == list(range(6, 11))
    connection.commit()
    other.commit()
    assert take(connection, leaves, one, 5) == [[11, 12]]
    assert take(other, leaves, two, 5) == []


def test_lost_lease_takes_nothing(index: Index, leaves: Leaves, connection: Connection) -> None:
    write(index, *BODIES)
    lease_id = leases.open_lease(connection, "taken for dead")
    connection.execute("DELETE FROM nearsim_index.lease")
    assert take(connection, leaves, lease_id) == []
    assert not leases.renew_lease(connection, lease_id)


def test_finish_returns_only_work_still_leased(
    index: Index, leaves: Leaves, connection: Connection, other: Connection
) -> None:
    write(index, *BODIES)
    one = leases.open_lease(connection, "one")
    lost = take_batch(connection, leaves, one)
    assert lost.doc_ids == [1, 2, 3]
    connection.commit()
    release_lock(connection, Lock.WORKER_LEASE, one)
    connection.commit()
    assert leases.release_lost_work(other) == 3
    two = leases.open_lease(other, "two")
    (held,) = WorkQueue(other, leaves).take("sign", two, 16)
    assert held.doc_ids == [1]  # each may be what the first one died of
    other.commit()
    assert WorkQueue(connection, leaves).lock(lost) == []
    assert WorkQueue(connection, leaves).finish(lost) == []
    assert WorkQueue(connection, leaves).fail(lost, "late") == ([], [])
    connection.commit()
    assert WorkQueue(other, leaves).finish(held) == [1]


def test_lease_of_a_running_worker_is_not_released(
    index: Index, leaves: Leaves, connection: Connection, other: Connection
) -> None:
    write(index, *BODIES)
    lease_id = leases.open_lease(connection, "alive")
    batch = take_batch(connection, leaves, lease_id)
    connection.commit()
    assert leases.release_lost_work(other) == 0
    other.commit()
    assert WorkQueue(connection, leaves).finish(batch) == [1, 2, 3]


def test_changes_during_work_are_queued_again(index: Index, leaves: Leaves, connection: Connection) -> None:
    write(index, *BODIES)
    lease_id = leases.open_lease(connection, "one")
    batch = take_batch(connection, leaves, lease_id)
    connection.commit()
    run(index, "UPDATE nearsim.document SET body = 'edited meanwhile' WHERE doc_id = 2")
    dispatch_changes(index.database.engine)
    assert WorkQueue(connection, leaves).finish(batch) == [1, 2, 3]
    connection.commit()
    again = take_batch(connection, leaves, lease_id)
    assert again.doc_ids == [2]
    assert WorkQueue(connection, leaves).finish(again) == [2]
    assert WorkQueue(connection, leaves).count() == (0, 0)


def test_dispatcher_loses_no_change_whatever_the_state_of_work(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    write(index, *BODIES)
    edit(index, "free and new")  # stays one row each
    lease_id = leases.open_lease(connection, "one")
    run(index, "UPDATE nearsim.work SET attempts = 5, error = 'bad', set_aside_at = now() WHERE doc_id = 1")
    run(index, "UPDATE nearsim.work SET attempts = 2, due_at = now() + interval '1 h' WHERE doc_id = 2")
    held = take_batch(connection, leaves, lease_id)
    assert held.doc_ids == [3]
    connection.commit()
    edit(index, "another")
    single = "SELECT doc_id, attempts, error, set_aside_at FROM nearsim.work WHERE doc_id > 0 ORDER BY 1"
    assert read(index, single) == [(1, 0, None, None), (2, 0, None, None), (3, 0, None, None)]
    assert WorkQueue(connection, leaves).finish(held) == [3]
    assert take(connection, leaves, lease_id) == [[1, 2, 3]]


def test_failed_work_backs_off_and_is_set_aside_with_its_error(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    write(index, BODIES[0])
    lease_id = leases.open_lease(connection, "one")
    waits = []
    for _ in queue.DELAYS_SECONDS:
        assert WorkQueue(connection, leaves).fail(take_batch(connection, leaves, lease_id), "bad") == (
            [1],
            [],
        )
        wait = "SELECT round(extract(epoch FROM due_at - clock_timestamp())) FROM nearsim.work"
        waits.append(float(statements.run(connection, wait).value()))
        connection.execute("UPDATE nearsim.work SET due_at = clock_timestamp()")
    assert waits == list(queue.DELAYS_SECONDS)
    assert WorkQueue(connection, leaves).fail(take_batch(connection, leaves, lease_id), "worse") == ([], [1])
    assert take(connection, leaves, lease_id) == []
    assert WorkQueue(connection, leaves).count() == (0, 1)
    assert statements.run(connection, "SELECT error FROM nearsim.work").value() == "worse"


def test_batches_shrink_with_attempts(index: Index, leaves: Leaves, connection: Connection) -> None:
    write(index, *BODIES * 20)
    lease_id = leases.open_lease(connection, "one")
    connection.execute("UPDATE nearsim.work SET attempts = 1 WHERE doc_id > 10")
    connection.execute("UPDATE nearsim.work SET attempts = 2 WHERE doc_id > 40")
    taken = take(connection, leaves, lease_id, 160)
    assert taken == [list(range(1, 11)), list(range(11, 21)), [41]]


def test_anchors_continue_where_they_were_in_batches_of_the_same_progress(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    """One that was queued again meanwhile begins anew."""
    work, lease_id = WorkQueue(connection, leaves), leases.open_lease(connection, "one")
    work.add("anchor", [1, 2, 3, 4])
    (batch,) = work.take("anchor", lease_id, 16)
    work.add("anchor", [4])
    assert work.finish(batch) == [1, 2, 3, 4]
    work.continue_anchors({1: 70, 2: 50, 3: 70, 4: 90})
    batches = work.take("anchor", lease_id, 16)
    assert sorted((batch.reached, batch.doc_ids) for batch in batches) == [(0, [4]), (50, [2]), (70, [1, 3])]


def test_failed_work_of_a_closed_lease_keeps_its_attempts_and_its_error(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    write(index, *BODIES)
    lease_id = leases.open_lease(connection, "one")
    WorkQueue(connection, leaves).fail(take_batch(connection, leaves, lease_id), "bad")
    retried = take_batch(connection, leaves, lease_id)
    assert (retried.doc_ids, retried.attempts) == ([1, 2, 3], 1)
    leases.close_lease(connection, lease_id)
    connection.commit()
    assert read(index, "SELECT DISTINCT attempts, error, lease_id FROM nearsim.work") == [(1, "bad", None)]


def test_releasing_and_queueing_lock_work_in_the_same_order(
    index: Index, leaves: Leaves, connection: Connection, other: Connection
) -> None:
    """Whatever the physical order of rows; a deadlock would end one of the two sessions."""
    write(index, *BODIES)
    lease_id = leases.open_lease(connection, "one")
    assert take(connection, leaves, lease_id) == [[1, 2, 3]]
    connection.commit()
    write(index, "something new")
    pid = statements.run(connection, "SELECT pg_backend_pid()").value()
    WorkQueue(other, leaves).add("sign", [1])
    closing = threading.Thread(target=leases.close_lease, args=(connection, lease_id))
    closing.start()
    while not read(index, "SELECT WHERE pg_blocking_pids(%(pid)s) <> '{}'", pid=pid):
        pass
    WorkQueue(other, leaves).add("sign", [2, 3])
    other.commit()
    closing.join()
    connection.commit()
    assert read(index, "SELECT count(*) FROM nearsim.work WHERE lease_id IS NULL") == [(4,)]


def test_process_with_an_expired_lease_fails_instead_of_waiting(index: Index) -> None:
    write(index, *BODIES)
    with index.database.lease() as lease_id:
        run(index, "DELETE FROM nearsim_index.lease")
        with pytest.raises(DatabaseError, match="this process's lease expired"):
            Runner(index.database.engine, context_of(index)).drain(lease_id, silent)
    index.build()
    assert signed(index) == 3


def test_document_that_kills_workers_is_set_aside_and_leaves_the_index(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    write(index, *BODIES)
    index.build()
    run(index, "UPDATE nearsim.document SET body = body || ' and more' WHERE doc_id = 2")
    dispatch_changes(index.database.engine)
    for deaths in range(5):
        run(index, "UPDATE nearsim.work SET due_at = now()")
        lease_id = leases.open_lease(connection, f"worker {deaths}")
        assert take(connection, leaves, lease_id, 16) == [[2]]
        connection.commit()
        release_lock(connection, Lock.WORKER_LEASE, lease_id)
        connection.commit()
        assert leases.release_lost_work(connection) == 1
        connection.commit()
    assert signed(index) == 3
    with index.database.lease() as lease_id:
        assert Runner(index.database.engine, context_of(index)).work("sign", lease_id) == 1
    assert signed(index) == 2
    ((error, is_aside),) = read(
        index, "SELECT error, set_aside_at IS NOT NULL FROM nearsim.work WHERE stage = 'sign'"
    )
    assert "died" in str(error) and is_aside


def test_frozen_worker_does_not_block_others(
    index: Index, leaves: Leaves, connection: Connection, other: Connection
) -> None:
    write(index, *BODIES)
    frozen = leases.open_lease(connection, "frozen")
    (first,) = WorkQueue(connection, leaves).take("sign", frozen, 1)
    take(connection, leaves, frozen)
    connection.execute("UPDATE nearsim_index.lease SET beat_at = beat_at - interval '1 hour'")
    connection.commit()
    assert WorkQueue(connection, leaves).finish(first) == [1]
    other.execute("SET lock_timeout = '100ms'")
    assert leases.release_lost_work(other) == 2
    assert read(index, "SELECT count(*) FROM nearsim_index.lease") == [(1,)]
    other.commit()
    connection.rollback()
    assert leases.release_lost_work(other) == 1
    other.commit()
    assert read(index, "SELECT count(*) FROM nearsim_index.lease") == [(0,)]


def test_server_ends_idle_transactions_that_lock_a_generation(connection: Connection) -> None:
    take_transaction_lock(connection, Lock.STORE, 1)
    shown = "SHOW idle_in_transaction_session_timeout"
    assert statements.run(connection, shown.encode()).value() == "1min"
    connection.rollback()
    assert statements.run(connection, shown.encode()).value() == "0"
