"""Worker leases. A lease is valid while its session holds an advisory lock and sends heartbeats."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import is_transient, retry_conflicts
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.driver.statements import run, statement

SILENCE_SECONDS = 300.0
_RESPONSIVE_SECONDS = 30.0  # a heartbeat is a second old, or as old as the current batch


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A process with a session and a lease, as host:process, and the age of its last heartbeat."""

    worker: str
    silent_seconds: float

    @property
    def is_responsive(self) -> bool:
        """Whether its last heartbeat is recent."""
        return self.silent_seconds < _RESPONSIVE_SECONDS


def open_lease(connection: Connection, worker: str) -> int:
    """Open a lease for this session; `worker` identifies it as host:process."""
    lease_id = int(run(connection, "open_lease", worker=worker).value())
    take_lock(connection, Lock.WORKER_LEASE, lease_id)
    return lease_id


def close_lease(connection: Connection, lease_id: int) -> None:
    """Close a lease; its work is released at once."""
    _release_batches(connection, [lease_id])
    run(connection, "close_lease", lease_id=lease_id)
    release_lock(connection, Lock.WORKER_LEASE, lease_id)


def end_lease(connection: Connection, lease_id: int) -> None:
    """Close a lease and commit; if the server has no space for that, mark it as closed, to be released later.

    Raises the error of the server if it can do neither.
    """
    try:
        connection.rollback()
        retry_conflicts(connection, close_lease, connection, lease_id)
    except Exception as error:
        if not is_transient(error):
            raise
        connection.rollback()
        run(connection, "mark_lease_closed", lease_id=lease_id)
    connection.commit()


def forgive(connection: Connection, lease_ids: Sequence[int]) -> None:
    """Release leases that this process lost by a failure of the server; an attempt counted for them is taken back."""
    for lease_id in lease_ids:
        close_lease(connection, lease_id)
    run(connection, "forgive_lost_work", lease_ids=list(lease_ids))


def renew_lease(connection: Connection, lease_id: int) -> bool:
    """Record a heartbeat; False if the lease had expired."""
    return run(connection, "renew_lease", lease_id=lease_id).count == 1


def list_workers(connection: Connection) -> list[LeaseHolder]:
    """Return the running workers, whether or not they are responsive."""
    rows = run(connection, "list_workers", kind=Lock.WORKER_LEASE.value).rows()
    return [LeaseHolder(worker, float(seconds)) for worker, seconds in rows]


def count_responsive(connection: Connection) -> int:
    """Return the number of workers whose last heartbeat is recent."""
    return sum(one.is_responsive for one in list_workers(connection))


def release_lost_work(connection: Connection, silence_seconds: float = SILENCE_SECONDS) -> int:
    """Release the work of workers that died or sent no heartbeat for so long; return the number of documents."""
    parameters = {"kind": Lock.WORKER_LEASE.value, "silence": silence_seconds}
    found = run(connection, "find_expired_leases", **parameters).rows()
    if not found:
        return 0
    expired = [lease_id for lease_id, _ in found]
    suspect = [lease_id for lease_id, is_suspect in found if is_suspect]
    released = _release_batches(connection, expired, suspect, wait=False)
    run(connection, "delete_expired_leases", lease_ids=expired)
    return released


def _release_batches(
    connection: Connection, lease_ids: Sequence[int], suspect: Sequence[int] = (), *, wait: bool = True
) -> int:
    """Turn the batches of leases into work; return the number of documents.

    An attempt is counted for the work of those leases that are `suspect`. Without `wait` batches locked by a running
    transaction are skipped.
    """
    command = statement("release_batches", skipping_locked=sql.SQL("" if wait else "SKIP LOCKED"))
    return int(run(connection, command, lease_ids=list(lease_ids), suspect=list(suspect)).value())
