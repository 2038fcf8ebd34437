"""Detection of connection pools in transaction mode, whose clients get another session with each transaction."""

from collections.abc import Callable
from contextlib import closing
from select import select
from typing import Any

import psycopg

from nearsim_db.errors import PoolError

_ATTEMPTS = 5
# A second client of a pool in session mode may have to wait for a session.
_PATIENCE_SECONDS = 3.0
# These settings end with the transaction, so no other client of a pool gets them.
_SESSION = b"SET LOCAL statement_timeout = 0; SET LOCAL jit = off; SELECT pg_catalog.pg_backend_pid()"

Connection = psycopg.Connection[tuple[Any, ...]]


def refuse_transaction_pool(connection: Connection, connect: Callable[[], Connection]) -> None:
    """Raise PoolError if a new connection leads to a pool in transaction mode, as shown by a second one.

    A pool such as PgBouncer makes up the process ids that it announces. In transaction mode two idle clients get the
    same session, or one client gets several; in session mode neither happens.
    """
    own = _session_of(connection)
    if own in (None, connection.info.backend_pid):
        return
    with closing(connect()) as other:
        for _ in range(_ATTEMPTS):
            session = _session_of(other)
            if session is None:
                return
            if session == own or _session_of(connection) != own:
                raise PoolError(
                    "the address is of a connection pool in transaction mode; nearsim needs sessions of its own, for "
                    "locks, settings and notifications: connect to the server directly, or to a pool in session mode "
                    "(PgBouncer: pool_mode = session). Applications that only write documents may use this pool"
                )


def _session_of(connection: Connection) -> int | None:
    """Return the server's process of a transaction of its own; None if there is none to be had in time."""
    inner = connection.pgconn
    inner.send_query(_SESSION)
    inner.flush()
    found = None
    while select([inner.socket], [], [], _PATIENCE_SECONDS)[0]:
        inner.consume_input()
        while not inner.is_busy():
            result = inner.get_result()
            if result is None:
                return found
            value = result.get_value(0, 0) if result.ntuples else None
            found = None if value is None else int(value)
    return None
