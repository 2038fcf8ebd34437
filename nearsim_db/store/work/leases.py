"""Worker leases, each valid while its session holds an advisory lock and sends heartbeats; batches of leased work."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from psycopg import sql

from nearsim_db.records import WorkStage
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import is_transient, retry_conflicts
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.driver.rows import fetch_rows, fetch_value
from nearsim_db.store.driver.statements import Leaves, statement
from nearsim_db.store.work.queue import Batch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    lease_id = int(fetch_value(connection, statement("open_lease"), {"worker": worker}))
    take_lock(connection, Lock.WORKER_LEASE, lease_id)
    return lease_id


def close_lease(connection: Connection, lease_id: int) -> None:
    """Close a lease; its work is released at once."""
    split_leased(connection, [lease_id])
    connection.execute(statement("close_lease"), {"lease_id": lease_id})
    release_lock(connection, Lock.WORKER_LEASE, lease_id)


def end_lease(connection: Connection, lease_id: int) -> None:
    """Close a lease and commit; if the server has no space for that, mark it as closed, to be released later.

    Raises the error of the server if it can do neither.
    """
    try:
        connection.rollback()
        retry_conflicts(connection, partial(close_lease, connection, lease_id))
    except Exception as error:
        if not is_transient(error):
            raise
        connection.rollback()
        connection.execute(statement("mark_lease_closed"), {"lease_id": lease_id})
    connection.commit()


def forgive(connection: Connection, lease_ids: Sequence[int]) -> None:
    """Release leases that this process lost by a failure of the server; an attempt counted for them is taken back."""
    for lease_id in lease_ids:
        close_lease(connection, lease_id)
    connection.execute(statement("forgive_lost_work"), {"lease_ids": list(lease_ids)})


def renew_lease(connection: Connection, lease_id: int) -> bool:
    """Record a heartbeat; False if the lease had expired."""
    return connection.execute(statement("renew_lease"), {"lease_id": lease_id}).rowcount == 1


def list_workers(connection: Connection) -> list[LeaseHolder]:
    """Return the running workers, whether or not they are responsive."""
    rows = fetch_rows(connection, statement("list_workers"), {"kind": Lock.WORKER_LEASE.value})
    return [LeaseHolder(worker, float(seconds)) for worker, seconds in rows]


def count_responsive(connection: Connection) -> int:
    """Return the number of workers whose last heartbeat is recent."""
    return sum(one.is_responsive for one in list_workers(connection))


def release_lost_work(connection: Connection, silence_seconds: float = SILENCE_SECONDS) -> int:
    """Release the work of workers that died or sent no heartbeat for so long; return the number of documents."""
    parameters = {"kind": Lock.WORKER_LEASE.value, "silence": silence_seconds}
    found = fetch_rows(connection, statement("find_expired_leases"), parameters)
    if not found:
        return 0
    expired = [lease_id for lease_id, _ in found]
    suspect = [lease_id for lease_id, is_suspect in found if is_suspect]
    split_leased(connection, expired, wait=False)
    released = connection.execute(
        statement("release_lost_work"), {"lease_ids": expired, "suspect": suspect}
    ).rowcount
    connection.execute(statement("delete_expired_leases"), {"lease_ids": expired})
    return released


def take(connection: Connection, leaves: Leaves, lease_id: int, most: int) -> Batch | None:
    """Make a batch of the next documents to sign that have not failed before; None if there are none."""
    parameters = {"lease_id": lease_id, "batch": most}
    for batch_id, doc_ids in fetch_rows(connection, statement("take_batch", leaves), parameters):
        return Batch(batch_id, doc_ids)
    return None


def lock(connection: Connection, leaves: Leaves, batch: Batch) -> list[int]:
    """Lock a batch to sign until the transaction ends; return its documents, none if the lease was lost.

    Those that were purged are no longer in it.
    """
    rows = fetch_rows(connection, statement("lock_batch", leaves), {"batch_id": batch.batch_id})
    return cast(list[int], rows[0][0]) if rows else []


def continue_with_search(
    connection: Connection, leaves: Leaves, batch: Batch, doc_ids: "Sequence[int] | NDArray[np.int64]"
) -> Batch:
    """Have a locked batch of signed documents search for these; without any it is finished."""
    if not len(doc_ids):
        finish(connection, leaves, batch)
        return Batch(batch.batch_id, [])
    searching = Batch(batch.batch_id, sorted(map(int, doc_ids)))
    parameters = {"batch_id": batch.batch_id, "doc_ids": packed_ids(searching.doc_ids)}
    connection.execute(statement("continue_batch", leaves), parameters)
    return searching


def finish(connection: Connection, leaves: Leaves, batch: Batch) -> None:
    """Remove a batch, which is done."""
    connection.execute(statement("finish_batch", leaves), {"batch_id": batch.batch_id})


def split(connection: Connection, batch: Batch) -> tuple[WorkStage, list[int]] | None:
    """Turn a batch into work under its lease; return the stage and the documents, None if the lease was lost."""
    parameters = {"batch_id": batch.batch_id, "lease_ids": []}
    command = statement("split_batches", skipping_locked=sql.SQL(""))
    for stage, doc_ids in fetch_rows(connection, command, parameters):
        return stage, doc_ids
    return None


def split_leased(connection: Connection, lease_ids: Sequence[int], *, wait: bool = True) -> None:
    """Turn the batches of leases into work; without `wait` those locked by a running transaction are skipped."""
    skipping = sql.SQL("" if wait else "SKIP LOCKED")
    parameters = {"batch_id": None, "lease_ids": list(lease_ids)}
    connection.execute(statement("split_batches", skipping_locked=skipping), parameters)
