"""Leases: which worker processes which work, and how the work of a dead worker is released.

A lease is valid as long as the session of its worker has an advisory lock and sends heartbeats.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import is_transient, retry_conflicts
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.driver.statements import run, statement

# A worker that sends no heartbeat for this long loses its lease.
SILENCE_SECONDS = 300.0
# A worker sends a heartbeat every second, but none while it works on a batch.
_RESPONSIVE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A connected process with a lease."""

    worker: str  # the process, as host:process
    silent_seconds: float  # time since its last heartbeat

    @property
    def is_responsive(self) -> bool:
        """Whether the last heartbeat is recent."""
        return self.silent_seconds < _RESPONSIVE_SECONDS


def open_lease(connection: Connection, worker: str) -> int:
    """Open a lease for this session; `worker` identifies it as host:process."""
    lease_id = int(run(connection, "open_lease", worker=worker).value())
    take_lock(connection, Lock.WORKER_LEASE, lease_id)
    return lease_id


def close_lease(connection: Connection, lease_id: int) -> None:
    """Close a lease and release its work."""
    _release_batches(connection, [lease_id])
    run(connection, "close_lease", lease_id=lease_id)
    release_lock(connection, Lock.WORKER_LEASE, lease_id)


def end_lease(connection: Connection, lease_id: int) -> None:
    """Close a lease and commit.

    If the server has no disk space for this, the lease is marked as closed, and its work is released later. Raises the
    error of the server if this is not possible either.
    """
    try:
        connection.rollback()
        retry_conflicts(connection, close_lease, connection, lease_id)
    except Exception as error:
        if not is_transient(error):
            raise
        # Marking the lease needs no disk space.
        connection.rollback()
        run(connection, "mark_lease_closed", lease_id=lease_id)
    connection.commit()


def forgive(connection: Connection, lease_ids: Sequence[int]) -> None:
    """Release leases that this process lost because the server failed, and take back the attempts counted for them."""
    for lease_id in lease_ids:
        close_lease(connection, lease_id)
    run(connection, "forgive_lost_work", lease_ids=list(lease_ids))


def renew_lease(connection: Connection, lease_id: int) -> bool:
    """Record a heartbeat; return False if the lease had expired."""
    return run(connection, "renew_lease", lease_id=lease_id).count == 1


def list_workers(connection: Connection) -> list[LeaseHolder]:
    """Return the running workers, whether they are responsive or not."""
    rows = run(connection, "list_workers", kind=Lock.WORKER_LEASE.value).rows()
    return [LeaseHolder(worker, float(seconds)) for worker, seconds in rows]


def count_responsive(connection: Connection) -> int:
    """Return the number of workers whose last heartbeat is recent."""
    return sum(worker.is_responsive for worker in list_workers(connection))


def release_lost_work(connection: Connection, silence_seconds: float = SILENCE_SECONDS) -> int:
    """Release the work of workers that died, or that sent no heartbeat for `silence_seconds`.

    Returns the number of documents.
    """
    parameters = {"kind": Lock.WORKER_LEASE.value, "silence": silence_seconds}
    rows = run(connection, "find_expired_leases", **parameters).rows()
    if not rows:
        return 0

    # The work itself may have killed the worker. In this case an attempt is counted.
    expired = [lease_id for lease_id, _ in rows]
    suspect = [lease_id for lease_id, is_suspect in rows if is_suspect]
    released = _release_batches(connection, expired, suspect, wait=False)
    run(connection, "delete_expired_leases", lease_ids=expired)
    return released


def _release_batches(
    connection: Connection, lease_ids: Sequence[int], suspect: Sequence[int] = (), *, wait: bool = True
) -> int:
    """Turn the batches of leases into separate work for each document; return the number of documents.

    An attempt is counted for the work of `suspect` leases. If `wait` is False, batches that a running transaction has
    locked are skipped.
    """
    command = statement("release_batches", skipping_locked=sql.SQL("" if wait else "SKIP LOCKED"))
    return int(run(connection, command, lease_ids=list(lease_ids), suspect=list(suspect)).value())
