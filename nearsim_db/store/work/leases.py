"""Leases: who is at work. A lease stands while its session holds a lock and lets itself be heard."""

from sqlalchemy import Connection

from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.locks import Lock, give_lock_back, take_lock
from nearsim_db.store.driver.statements import statement

SILENCE_SECONDS = 300.0


def open_lease(connection: Connection, worker: str) -> int:
    """Begin to work under a lease that stands as long as this session; `worker` says who it is."""
    row = driver(connection).execute(statement("open_lease"), {"worker": worker}).fetchone()
    assert row is not None
    lease_id = int(str(row[0]))
    take_lock(connection, Lock.WORKER, lease_id)
    return lease_id


def close_lease(connection: Connection, lease_id: int) -> None:
    """End it; work it still has is free at once."""
    driver(connection).execute(statement("close_lease"), {"lease_id": lease_id})
    give_lock_back(connection, Lock.WORKER, lease_id)


def beat(connection: Connection, lease_id: int) -> bool:
    """Say that the worker lives; False when it was taken for dead meanwhile."""
    return driver(connection).execute(statement("renew_lease"), {"lease_id": lease_id}).rowcount == 1


def list_workers(connection: Connection) -> list[str]:
    """Who is at work now, as host:process."""
    rows = driver(connection).execute(statement("list_workers"), {"kind": Lock.WORKER.value}).fetchall()
    return [str(row[0]) for row in rows]


def free_lost_work(connection: Connection, silence_seconds: float = SILENCE_SECONDS) -> int:
    """Free the work of workers that died, or were silent for so long; returns how many documents that were."""
    inner = driver(connection)
    parameters = {"kind": Lock.WORKER.value, "silence": silence_seconds}
    lost = [
        int(str(row[0])) for row in inner.execute(statement("find_expired_leases"), parameters).fetchall()
    ]
    if not lost:
        return 0
    freed = inner.execute(statement("release_lost_work"), {"lease_ids": lost}).rowcount
    inner.execute(statement("delete_expired_leases"), {"lease_ids": lost})
    return freed
