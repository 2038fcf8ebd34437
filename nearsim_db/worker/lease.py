"""The lease under which a worker takes work."""

import logging
import os
import socket
import time
from functools import partial

from nearsim_db.errors import count_of
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import retry_conflicts
from nearsim_db.store.driver.locks import Lock, release_lock
from nearsim_db.store.work import leases

HEARTBEAT_SECONDS = 1.0

_log = logging.getLogger("nearsim.worker")


class WorkerLease:
    """A lease on a connection of its own: while its heartbeat is recent, no other worker takes its work.

    Work of leases without a heartbeat for `silence_seconds` is released. `lost` are leases that this process could not
    close; no attempt is counted for their work.
    """

    def __init__(self, connection: Connection, silence_seconds: float, lost: list[int]) -> None:
        self._connection = connection
        self._lost = lost
        self._silence_seconds = silence_seconds
        self._due_at = 0.0
        self.lease_id = self._open()

    def keep_alive(self) -> None:
        """Send a heartbeat if the last one is a second old. An expired lease is replaced by a new one."""
        if time.monotonic() < self._due_at:
            return
        is_valid = leases.renew_lease(self._connection, self.lease_id)
        self._connection.commit()
        if not is_valid:
            release_lock(self._connection, Lock.WORKER_LEASE, self.lease_id)
            self.lease_id = self._open()
            _log.warning(
                f"this worker's lease expired: no heartbeat for {self._silence_seconds:g} s; its work was released to "
                "other workers, and it continues under a new lease",
                extra={"event": "lease_lost"},
            )
        self._due_at = time.monotonic() + HEARTBEAT_SECONDS

    def release_lost_work(self) -> None:
        """Release the work of workers that died or sent no heartbeat."""
        released = leases.release_lost_work(self._connection, self._silence_seconds)
        self._connection.commit()
        if released:
            _log.warning(
                f"work on {count_of(released, 'document')} of workers without a heartbeat was released",
                extra={"event": "freed", "facts": {"documents": released}},
            )

    def close(self) -> None:
        """End the lease and release its work."""
        try:
            leases.end_lease(self._connection, self.lease_id)
        except (
            BaseException
        ):  # the lease is lost whatever kept it from being closed, an interruption included
            self._lost.append(self.lease_id)
            raise

    def _open(self) -> int:
        if self._lost:
            retry_conflicts(self._connection, partial(leases.forgive, self._connection, self._lost))
            self._connection.commit()
            self._lost.clear()
        lease_id = leases.open_lease(self._connection, f"{socket.gethostname()}:{os.getpid()}")
        self._connection.commit()
        return lease_id
