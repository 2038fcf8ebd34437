"""A session of a database, above psycopg, and the values that Python's types cannot hold."""

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
    """A session of the database; closing it rolls back, and returns it to its engine."""

    is_borrowed = False
    cursor_prefix = "nearsim"

    def __init__(self, backend: Backend, give_back: Callable[[Backend], None]) -> None:
        self._backend: Backend | None = backend
        self._give_back = give_back
        self._savepoints = 0

    @property
    def backend(self) -> Backend:
        """Return the psycopg connection. Raises InterfaceError once this one is closed."""
        if self._backend is None:
            raise psycopg.InterfaceError("this connection was returned to its engine")
        return self._backend

    @property
    def is_superuser(self) -> bool:
        """Whether the current user is a superuser, as the server reports with each change."""
        return self.backend.info.parameter_status("is_superuser") != "off"

    @property
    def place(self) -> str:
        """The database and its server as messages name them."""
        info = self.backend.info
        if info.host.startswith("/"):  # the folder of a socket, such as the embedded server's
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
        """Subscribe to notifications; the connection must be in autocommit."""
        autocommitting(self).execute("LISTEN nearsim")

    def await_notice(self, seconds: float) -> bool:
        """Wait up to some seconds for a notification; return whether one arrived.

        Notifications are hints that carry no data; polling is the guarantee.
        """
        return any(True for _ in autocommitting(self).notifies(timeout=seconds, stop_after=1))

    def begin_nested(self) -> "Savepoint":
        """Set a savepoint in the transaction, which begins if none has."""
        self._savepoints += 1
        return Savepoint(self.backend, sql.Identifier(f"nearsim_{self._savepoints}"))

    def invalidate(self) -> None:
        """Close the session, so that settings made in it are gone."""
        self.backend.close()

    def close(self) -> None:
        """Return the session to its engine; without effect if that was done."""
        backend, self._backend = self._backend, None
        if backend is not None:
            self._give_back(backend)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Savepoint:
    """A savepoint: as a block it is released at the end, and rolled back to after an error."""

    def __init__(self, backend: Backend, name: sql.Identifier) -> None:
        self._backend, self._name = backend, name
        self._run("SAVEPOINT {}")

    def commit(self) -> None:
        """Release the savepoint and keep what followed it."""
        self._run("RELEASE {}")

    def rollback(self) -> None:
        """Undo what followed the savepoint, and release the locks taken since."""
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
    """Return the psycopg connection below one in autocommit, for commands that must not run in a transaction."""
    assert connection.backend.autocommit
    return connection.backend


_ATTEMPTS = 5
# A second client of a pool in session mode may have to wait for a session.
_PATIENCE_SECONDS = 3.0
# These settings end with the transaction, so no other client of a pool gets them.
_SESSION = b"SET LOCAL statement_timeout = 0; SET LOCAL jit = off; SELECT pg_catalog.pg_backend_pid()"


def refuse_transaction_pool(connection: Backend, connect: Callable[[], Backend]) -> None:
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


def _session_of(connection: Backend) -> int | None:
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


_INTEGER_DIGITS = 4_000  # Python refuses to parse or print integers of 4,300 digits


def parse_json(text: str | bytes) -> object:
    """Parse JSON; a number that neither int nor float represents exactly becomes a Decimal."""
    return json.loads(text, parse_int=_integer, parse_float=_number)


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _INTEGER_DIGITS else Decimal(digits)


def _number(digits: str) -> float | Decimal:
    nearest, exact = float(digits), Decimal(digits)
    return nearest if Decimal(repr(nearest)) == exact else exact


def _or_text(loader: type[Loader]) -> type[Loader]:
    """Return a loader that loads what Python's type cannot hold as PostgreSQL writes it.

    Such as infinity, or 0044-03-15 00:00:00+00 BC.
    """

    class OrText(loader):  # type: ignore[misc, valid-type]
        def load(self, data: Buffer) -> object:
            try:
                return super().load(data)
            except psycopg.DataError:
                return bytes(data).decode()

    return OrText


_MomentLoader = _or_text(TimestamptzLoader)


def load_moments(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection read every timestamptz, in text format."""
    connection.adapters.register_loader("timestamptz", _MomentLoader)


def load_dates(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection read every date and timestamp, in text format."""
    connection.adapters.register_loader("date", _or_text(DateLoader))
    connection.adapters.register_loader("timestamp", _or_text(TimestampLoader))
