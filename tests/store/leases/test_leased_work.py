"""Work under a lease from its dispatch on, and from signing to the search that follows."""

import threading

import numpy as np

from nearsim_db import Index
from nearsim_db.indexing import work_queue
from nearsim_db.indexing.dispatch import dispatch_changes, dispatch_leased
from nearsim_db.store import purges
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import leases, queue
from tests.builders.leased_work import BODIES, context_of, insert, read, run, take, write
from tests.builders.workers import BLOCKED, application, wait_until


def test_dispatch_leases_new_work_to_sign(
    index: Index, leaves: Leaves, connection: Connection, other: Connection
) -> None:
    one = leases.open_lease(connection, "one")
    connection.commit()
    insert(index, *BODIES)
    changes, leased = dispatch_leased(index.database.engine, one, [leaves.generation_id])
    assert changes == 3
    assert [[task.doc_id for task in tasks] for tasks in leased.values()] == [[1, 2, 3]]
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


def test_work_to_search_takes_the_place_of_work_to_sign(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    lease_id = leases.open_lease(connection, "one")
    connection.commit()
    insert(index, *BODIES, "")
    tasks = dispatch_leased(index.database.engine, lease_id, [leaves.generation_id])[1]
    (leased,) = tasks.values()
    queued_at = read(index, "SELECT doc_id, queued_at FROM nearsim.work WHERE doc_id IN (1, 3)")
    queue.queue_work(connection, leaves, "sign", [3])
    connection.commit()
    searching: list[queue.Task] = []
    work_queue.sign_batch(index.database.engine, context_of(index), lease_id, searching, leased)
    assert [task.doc_id for task in searching] == [1, 3]
    work = read(index, "SELECT stage, doc_id, lease_id FROM nearsim.work ORDER BY 1, 2")
    mine = [("search", doc_id, lease_id) for doc_id in (1, 3)]
    assert work == [("link", 2, None), *mine, ("sign", 3, None)]
    assert queued_at[0] in read(index, "SELECT doc_id, queued_at FROM nearsim.work WHERE stage = 'search'")


def test_worker_searches_what_it_signed(index: Index, connection: Connection, other: Connection) -> None:
    """No other worker takes the search while the lease is valid; once it is lost, any worker does it."""
    write(index, *BODIES, f"{BODIES[0]} seven")
    engine, context = index.database.engine, context_of(index)
    lease_id, searching = leases.open_lease(connection, "one"), list[queue.Task]()
    connection.commit()
    with index.database.lease() as second:
        assert work_queue.sign_batch(engine, context, lease_id, searching) == 4
        assert [task.doc_id for task in searching] == [1, 3, 4]
        assert work_queue.work_batch(engine, context, "search", second) == 0
        assert work_queue.search_leased(engine, context, lease_id, searching) == 3
    assert read(index, "SELECT left_id, right_id FROM nearsim.similar_pair") == [(1, 4)]
    assert read(index, "SELECT FROM nearsim.work WHERE stage = 'search'") == []


def test_search_of_a_lost_lease_is_done_by_another_worker(index: Index, connection: Connection) -> None:
    write(index, *BODIES, f"{BODIES[0]} seven")
    engine, context = index.database.engine, context_of(index)
    lease_id, searching = leases.open_lease(connection, "one"), list[queue.Task]()
    connection.commit()
    work_queue.sign_batch(engine, context, lease_id, searching)
    run(index, "UPDATE nearsim.lease SET beat_at = beat_at - interval '1 hour'")
    with index.database.transaction() as freeing:
        assert leases.release_lost_work(freeing) == 3
    assert work_queue.search_leased(engine, context, lease_id, searching) == 3
    index.build()
    assert read(index, "SELECT left_id, right_id FROM nearsim.similar_pair") == [(1, 4)]


def test_search_is_queued_without_a_lease_that_was_lost(index: Index, connection: Connection) -> None:
    leaves = index.serving().context.generation.leaves
    assert queue.queue_leased(connection, leaves, "search", 999, [1, 2]) == []
    connection.commit()
    assert read(index, "SELECT DISTINCT lease_id FROM nearsim.work") == [(None,)]
