"""Sessions and savepoints on top of psycopg, and what makes a session usable for nearsim.

nearsim refuses connection pools in transaction mode, and reads values that Python's types cannot represent as text.
"""

import json
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from select import select
from types import TracebackType
from typing import Any, LiteralString, Self

import psycopg
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader

from nearsim_db.errors import PoolError

Backend = psycopg.Connection[tuple[Any, ...]]
Query = LiteralString | bytes | sql.SQL | sql.Composed


class Connection:
    """A session of the database; `close` rolls its transaction back and returns the session to its engine."""

    is_borrowed = False  # whether the session and its transaction are an application's
    cursor_prefix = "nearsim"

    def __init__(self, backend: Backend, give_back: Callable[[Backend], None]) -> None:
        self._backend: Backend | None = backend
        self._give_back = give_back
        self._savepoints = 0

    @property
    def backend(self) -> Backend:
        """Return the psycopg connection. Raises InterfaceError after `close`."""
        if self._backend is None:
            raise psycopg.InterfaceError("this connection was returned to its engine")
        return self._backend

    @property
    def is_superuser(self) -> bool:
        """Whether the current user is a superuser; the server reports every change of this."""
        return self.backend.info.parameter_status("is_superuser") != "off"

    @property
    def place(self) -> str:
        """The database and its server, in the words of messages."""
        info = self.backend.info
        # The host may be the folder of a socket, such as that of the embedded server.
        if info.host.startswith("/"):
            return (
                f"database {info.dbname} of the server in {info.host} (NEARSIM_DATABASE_URL selects another)"
            )
        return f"database {info.dbname} at {info.host}:{info.port}"

    def execute(self, query: Query, parameters: Any = None) -> "psycopg.Cursor[tuple[Any, ...]]":
        """Execute one statement."""
        return self.backend.execute(query, parameters)

    def commit(self) -> None:
        """Commit the transaction, if one has begun."""
        self.backend.commit()

    def rollback(self) -> None:
        """Roll the transaction back, if one has begun."""
        self.backend.rollback()

    def listen(self) -> None:
        """Subscribe to notifications; the connection must be in autocommit mode."""
        autocommitting(self).execute("LISTEN nearsim")

    def await_notice(self, seconds: float) -> bool:
        """Wait up to `seconds` for a notification, and return whether one arrived.

        Notifications are hints without data. They may be missed, so callers also poll.
        """
        return any(True for _ in autocommitting(self).notifies(timeout=seconds, stop_after=1))

    def begin_nested(self) -> "Savepoint":
        """Set a savepoint in the transaction; begin a transaction if none is open."""
        self._savepoints += 1
        return Savepoint(self.backend, sql.Identifier(f"nearsim_{self._savepoints}"))

    def invalidate(self) -> None:
        """Close the session itself, so that nobody reuses it with the settings made in it."""
        self.backend.close()

    def close(self) -> None:
        """Return the session to its engine; a second call has no effect."""
        backend, self._backend = self._backend, None
        if backend is not None:
            self._give_back(backend)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Savepoint:
    """A savepoint; the end of a `with` block releases it, or rolls it back after an error."""

    def __init__(self, backend: Backend, name: sql.Identifier) -> None:
        self._backend, self._name = backend, name
        self._run("SAVEPOINT {}")

    def commit(self) -> None:
        """Release the savepoint and keep the changes made since."""
        self._run("RELEASE {}")

    def rollback(self) -> None:
        """Undo the changes made since the savepoint, and release the locks taken since."""
        self._run("ROLLBACK TO {name}; RELEASE {name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        elif not self._backend.closed:
            self.rollback()

    def _run(self, command: LiteralString) -> None:
        self._backend.execute(sql.SQL(command).format(self._name, name=self._name))


def autocommitting(connection: Connection) -> Backend:
    """Return the psycopg connection of a session in autocommit mode, for commands that cannot run in a transaction."""
    assert connection.backend.autocommit
    return connection.backend


_POOL_PROBES = 5
# A second client of a pool in session mode may have to wait until a session is free.
_PROBE_TIMEOUT_SECONDS = 3.0
# SET LOCAL lasts until the end of the transaction, so no other client of a pool gets these settings.
_READ_SERVER_PROCESS = (
    b"SET LOCAL statement_timeout = 0; SET LOCAL jit = off; SELECT pg_catalog.pg_backend_pid()"
)


def refuse_transaction_pool(connection: Backend, connect: Callable[[], Backend]) -> None:
    """Raise PoolError if a new connection leads to a pool in transaction mode; `connect` opens another one to compare.

    A pool such as PgBouncer makes up the process ids that it announces to clients. In transaction mode, two idle
    clients get the same server session, or one client gets several sessions. In session mode neither happens.
    """
    process_id = _server_process(connection)
    # Without a pool, the server process announces its real id.
    if process_id in (None, connection.info.backend_pid):
        return

    with closing(connect()) as second:
        for _ in range(_POOL_PROBES):
            second_id = _server_process(second)
            if second_id is None:
                return
            if second_id == process_id or _server_process(connection) != process_id:
                raise PoolError(
                    "the address leads to a connection pool in transaction mode; nearsim needs sessions of its own, "
                    "for locks, settings and notifications: connect to the server directly, or to a pool in session "
                    "mode (PgBouncer: pool_mode = session). Applications that only write documents may use this pool"
                )


def _server_process(connection: Backend) -> int | None:
    """Return the id of the server process that runs a new transaction; None if a pool has no free session in time."""
    # This calls libpq, because psycopg would wait without a limit.
    session = connection.pgconn
    session.send_query(_READ_SERVER_PROCESS)
    session.flush()

    process_id = None
    while select([session.socket], [], [], _PROBE_TIMEOUT_SECONDS)[0]:
        session.consume_input()
        while not session.is_busy():
            result = session.get_result()
            if result is None:
                return process_id
            # Every command has a result, but only the SELECT has a row.
            value = result.get_value(0, 0) if result.ntuples else None
            process_id = None if value is None else int(value)
    return None


# By default, Python does not convert integers of more than 4,300 digits from or to text.
_MAX_INTEGER_DIGITS = 4_000


def parse_json(text: str | bytes) -> object:
    """Parse JSON; numbers that neither int nor float can represent exactly become Decimal."""
    return json.loads(text, parse_int=_integer, parse_float=_number)


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else Decimal(digits)


def _number(digits: str) -> float | Decimal:
    nearest, exact = float(digits), Decimal(digits)
    return nearest if Decimal(repr(nearest)) == exact else exact


def _or_text(loader: type[Loader]) -> type[Loader]:
    """Return a loader that returns a value as text if Python's type cannot represent it, as in 0044-03-15 BC."""

    class OrText(loader):  # type: ignore[misc, valid-type]
        def load(self, data: Buffer) -> object:
            try:
                return super().load(data)
            except psycopg.DataError:
                return bytes(data).decode()

    return OrText


_MomentLoader = _or_text(TimestamptzLoader)


def load_moments(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection able to read every timestamptz, as text if datetime cannot represent it."""
    connection.adapters.register_loader("timestamptz", _MomentLoader)


def load_dates(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection able to read every date and timestamp, as text if Python's types cannot represent it."""
    connection.adapters.register_loader("date", _or_text(DateLoader))
    connection.adapters.register_loader("timestamp", _or_text(TimestampLoader))
