"""Failures of the server while documents are indexed count no attempt, whatever becomes of the worker's lease."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nearsim_db import Index
from nearsim_db.errors import DatabaseError
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import leases, queue
from nearsim_db.worker.worker import Worker
from tests.builders.leased_work import BODIES, insert, read, run, signed, take, write
from tests.builders.logins import login, user_of
from tests.builders.selection import some
from tests.builders.workers import IDLE, application, wait_until

FAIL = """
CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'as if' USING ERRCODE = TG_ARGV[0];
END $$
"""
# Disk full, out of memory, too many connections, a limit, read-only, idle in transaction too long, shutdown, crash,
# starting, connection failure.
STATES = ("53100", "53200", "53300", "53400", "25006", "25P03", "57P01", "57P02", "57P03", "08006")
DISK_FULL = "53100"
END_SESSIONS = """
CREATE FUNCTION public.end_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE application_name = 'nearsim' AND datname = current_database() AND pid <> pg_backend_pid();
    PERFORM pg_terminate_backend(pg_backend_pid());
    RETURN NULL;
END $$;
CREATE TRIGGER end_sessions BEFORE INSERT ON {} EXECUTE FUNCTION public.end_sessions()
"""

END_SESSION_OF_LEASE = """
CREATE OR REPLACE FUNCTION public.end_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_terminate_backend(pid, 60000) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND objid IN (SELECT lease_id FROM nearsim_index.lease)
        AND pid <> pg_backend_pid();
    RETURN NULL;
END $$
"""


@pytest.fixture
def signatures(index: Index, leaves: Leaves) -> str:
    """The table in which a worker stores signatures, in a database where three documents wait."""
    run(index, FAIL)
    insert(index, *BODIES)
    return leaves.qualified("signature")


@contextmanager
def refused(index: Index, state: str, *tables: str) -> Iterator[None]:
    """Storing signatures, and splitting a batch of nearsim.work, fails with this SQLSTATE during the block."""
    for table in tables:
        event = "INSERT"
        if table == "nearsim.work":
            event, table = "DELETE", f"{table} FOR EACH ROW WHEN (OLD.doc_ids IS NOT NULL)"
        run(index, f"CREATE TRIGGER refuse BEFORE {event} ON {table} EXECUTE FUNCTION public.fail('{state}')")
    yield
    for table in tables:
        run(index, f"DROP TRIGGER refuse ON {table}")


def drain(index: Index) -> int:
    """Work until the queue is empty; return how many documents are set aside."""
    return Worker(index.database.engine.url).drain()


def attempts(index: Index) -> list[tuple[object, ...]]:
    """The attempts of each queued document, and whether it is under a lease."""
    return read(index, "SELECT attempts, lease_id IS NOT NULL FROM nearsim_index.queued_work ORDER BY doc_id")


@pytest.mark.parametrize("states", some([2, len(STATES)], "every state"))
def test_failures_of_the_server_count_no_attempt(
    index: Index, signatures: str, monkeypatch: pytest.MonkeyPatch, states: int
) -> None:
    monkeypatch.setattr(queue, "DELAYS_SECONDS", (0.0, 0.0, 0.0, 0.0))
    for state in STATES[:states]:
        with refused(index, state, signatures), pytest.raises(DatabaseError):
            drain(index)
        assert attempts(index) == [(0, False)] * 3, state
    with refused(index, "22000", signatures):
        assert drain(index) == 3
    assert attempts(index) == [(5, False)] * 3


def release(index: Index) -> int:
    """Release the work of lost leases, as another worker would; return the number of documents."""
    with index.database.transaction() as connection:
        return leases.release_lost_work(connection)


def test_a_lease_that_cannot_be_released_for_want_of_space_counts_no_attempt(
    index: Index, signatures: str
) -> None:
    with refused(index, DISK_FULL, signatures, "nearsim.work"), pytest.raises(DatabaseError, match="is full"):
        drain(index)
    assert attempts(index) == [(0, True)] * 3
    assert release(index) == 3
    assert attempts(index) == [(0, False)] * 3
    assert drain(index) == 0 and signed(index) == 3


def test_a_lease_lost_with_the_server_counts_no_attempt(
    index: Index, leaves: Leaves, connection: Connection
) -> None:
    write(index, *BODIES)
    with index.database.engine.connect() as holding:
        take(holding, leaves, leases.open_lease(holding, "ended with the server"))
        holding.commit()
        holding.invalidate()
    run(index, "UPDATE nearsim_index.lease SET beat_at = pg_postmaster_start_time() - interval '1 s'")
    assert release(index) == 3
    assert attempts(index) == [(0, False)] * 3


def test_a_worker_whose_sessions_are_ended_takes_back_the_attempts(
    index: Index, signatures: str, database_url: str
) -> None:
    """Another worker released its work first, and counted an attempt, since it cannot know that the process lives."""
    worker = Worker(database_url)
    with application(database_url) as app:
        app.execute(END_SESSIONS.format(signatures).encode())
        with pytest.raises(DatabaseError):
            worker.drain()
        app.execute(f"DROP TRIGGER end_sessions ON {signatures}".encode())
    assert release(index) == 3
    assert attempts(index) == [(1, False)] * 3
    with refused(index, DISK_FULL, signatures), pytest.raises(DatabaseError):
        worker.drain()
    assert attempts(index) == [(0, False)] * 3
    assert read(index, "SELECT DISTINCT error, lost_lease_id FROM nearsim.work") == [(None, None)]
    assert worker.drain() == 0 and signed(index) == 3


@pytest.mark.parametrize("ends", some(["every session", "that of the lease"], "either way"))
def test_a_command_whose_sessions_are_ended_counts_no_attempt(
    index: Index, signatures: str, database_url: str, ends: str
) -> None:
    with application(database_url) as app:
        app.execute(END_SESSIONS.format(signatures).encode())
        if ends == "that of the lease":
            app.execute(END_SESSION_OF_LEASE)
            index.build()
        else:
            with pytest.raises(DatabaseError):
                index.build()
        app.execute(f"DROP TRIGGER end_sessions ON {signatures}".encode())
    assert release(index) == 0
    assert read(index, "SELECT FROM nearsim_index.lease") == []
    if ends == "every session":
        assert attempts(index) == [(0, False)] * 3
        index.build()
    assert signed(index) == 3


def test_work_goes_on_when_the_cause_is_gone(index: Index, signatures: str, database_url: str) -> None:
    worker = Worker(database_url)
    working = threading.Thread(target=worker.run)
    with application(database_url) as app:
        with refused(index, DISK_FULL, signatures):
            working.start()
            while b'nearsim_database_lost_total{cause="disk_full"} 0' in worker.monitor.exposition():
                app.execute("SELECT pg_sleep(0.02)")
        wait_until(app, IDLE)
    worker.stop()
    working.join()
    assert signed(index) == 3


@pytest.mark.slow("several workers")
def test_too_few_connections_count_no_attempt(index: Index, signatures: str, database_url: str) -> None:
    """A worker has two sessions throughout, and a third one for all that it does."""
    with login(database_url, "nearsim_admin") as keeper:
        name = user_of(keeper)
        for limit in (1, 2):
            run(index, f"ALTER ROLE {name} CONNECTION LIMIT {limit}")
            with pytest.raises(DatabaseError, match="too many connections"):
                Worker(keeper).drain()
            assert attempts(index) == []  # the changes are not dispatched yet
        run(index, f"ALTER ROLE {name} CONNECTION LIMIT -1")
        assert Worker(keeper).drain() == 0
    assert signed(index) == 3
