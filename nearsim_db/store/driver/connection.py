"""Pooled sessions of a database, with psycopg below them; pools in transaction mode are refused."""

import re
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from select import select
from types import TracebackType
from typing import Any, LiteralString, Self
from urllib.parse import parse_qsl, unquote

import psycopg
from psycopg import IsolationLevel, sql
from psycopg.pq import TransactionStatus

from nearsim_db.errors import NearsimError, PoolError

_LOCATION = re.compile(
    r"(?:(?P<user>[^:/?@]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:\[(?P<address>[^]]*)\]|(?P<host>[^:/?]*))(?::(?P<port>\d*))?"
    r"(?:/(?P<dbname>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_ENCODED = ("user", "password", "dbname")


def parse_url(url: str) -> dict[str, str]:
    """Return libpq's parameters of a PostgreSQL URL; those of its query win.

    A scheme such as `postgresql+psycopg` may name a Python driver, which is ignored. Several hosts, as in
    `host=a:5432&host=b`, are tried in turn. Raises NearsimError, without quoting a password, for another kind of URL.
    """
    scheme, found, location = url.partition("://")
    parts = _LOCATION.fullmatch(location)
    if not found or not re.fullmatch(r"[\w+]+", scheme) or parts is None:
        raise NearsimError(
            "NEARSIM_DATABASE_URL is not a database URL; expected something like postgresql://user@host/database"
        )
    backend = scheme.partition("+")[0]
    if backend not in ("postgresql", "postgres"):
        raise NearsimError(f"nearsim needs PostgreSQL; the URL names {backend}")
    named = parts.groupdict()
    query = parse_qsl(named.pop("query") or "")
    named["host"] = named.pop("address") or named["host"]
    given = {name: unquote(value) if name in _ENCODED else value for name, value in named.items() if value}
    return given | dict(query) | _several_hosts([value for name, value in query if name == "host"])


def _several_hosts(hosts: list[str]) -> dict[str, str]:
    """Return the hosts of a query as libpq's lists, with their ports where they name one."""
    if len(hosts) < 2 and not (hosts and re.fullmatch(r"[^:/]+:\d+", hosts[0])):
        return {}
    pairs = [one.rpartition(":") if re.fullmatch(r"[^:/]+:\d+", one) else (one, "", "") for one in hosts]
    ports = {"port": ",".join(port for _, _, port in pairs)} if any(port for _, _, port in pairs) else {}
    return {"host": ",".join(host for host, _, _ in pairs), **ports}


Backend = psycopg.Connection[tuple[Any, ...]]
Query = LiteralString | bytes | sql.SQL | sql.Composed

_KEPT_SESSIONS = 5
_TRUSTED_SECONDS = 30.0


class Engine:
    """Opens sessions of one database and keeps some of them for reuse; thread-safe.

    `open_session` connects and sets what every session relies on. There is no limit: a thread that holds one session
    may need another, so threads could wait for each other.
    """

    is_borrowed = False  # whether its sessions are an application's

    def __init__(self, url: str, open_session: Callable[[], Backend]) -> None:
        self.url = url
        self.open_session = open_session
        self.connection_type: type[Connection] = Connection
        self._kept: deque[tuple[Backend, float]] = deque()
        self._epoch = 0
        weakref.finalize(self, _close_all, self._kept)

    def connect(self, *, autocommit: bool = False) -> "Connection":
        """Return a session, to be closed; its first statement begins a transaction, unless in autocommit."""
        return self._connect(autocommit, None, None)

    def snapshot(self, *, read_only: bool | None = True) -> "Connection":
        """Return a session, to be closed, in which every statement of a transaction sees the same data.

        With `read_only` None it may write, unless the server is a standby.
        """
        return self._connect(False, IsolationLevel.REPEATABLE_READ, read_only)

    def _connect(
        self, autocommit: bool, isolation_level: IsolationLevel | None, read_only: bool | None
    ) -> "Connection":
        backend = self._take() or self.open_session()
        if backend.autocommit != autocommit:
            backend.autocommit = autocommit
        if backend.isolation_level != isolation_level:
            backend.isolation_level = isolation_level
        if backend.read_only != read_only:
            backend.read_only = read_only
        return self.connection_type(backend, partial(self._keep, epoch=self._epoch))

    @contextmanager
    def begin(self) -> Iterator["Connection"]:
        """Return a session for the block, whose transaction is committed at its end."""
        with self.connect() as connection:
            yield connection
            connection.commit()

    def dispose(self) -> None:
        """Close the sessions that are not in use, and those in use once they are returned."""
        self._epoch += 1
        _close_all(self._kept)

    def _keep(self, backend: Backend, epoch: int) -> None:
        """Keep a session for the next use, without its transaction, or close it."""
        status = backend.pgconn.transaction_status
        try:
            if status == TransactionStatus.INTRANS:
                # Below psycopg, which would discard all prepared statements; they do not depend on transactions.
                backend.pgconn.exec_(b"ROLLBACK")
            elif status == TransactionStatus.INERROR:  # perhaps as a prepared statement has other columns now
                backend.rollback()
            elif status != TransactionStatus.IDLE:  # a rollback beside a running COPY would wait for ever
                backend.close()
        except psycopg.Error:
            backend.close()
        if epoch == self._epoch and not backend.closed and len(self._kept) < _KEPT_SESSIONS:
            self._kept.append((backend, time.monotonic()))
        else:
            backend.close()

    def _take(self) -> Backend | None:
        """Return the session that was used last, if it is alive."""
        for backend, since in _taken(self._kept):
            if _is_alive(backend, time.monotonic() - since):
                return backend
            backend.close()
        return None


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

    def execute(self, query: Query, parameters: Any = None) -> "psycopg.Cursor[tuple[Any, ...]]":
        """Execute one statement."""
        return self.backend.execute(query, parameters)

    def commit(self) -> None:
        """Commit the transaction, if one has begun."""
        self.backend.commit()

    def rollback(self) -> None:
        """Roll the transaction back, if one has begun."""
        self.backend.rollback()

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


def _taken(kept: deque[tuple[Backend, float]]) -> Iterator[tuple[Backend, float]]:
    """Yield what was kept, the last first, each taken out before other threads can."""
    with suppress(IndexError):
        while True:
            yield kept.pop()


def _close_all(kept: deque[tuple[Backend, float]]) -> None:
    for backend, _ in _taken(kept):
        backend.close()


def _is_alive(backend: Backend, idle_seconds: float) -> bool:
    """Whether the server still has a session: a closed socket is readable; one idle for long is asked."""
    try:
        inner = backend.pgconn
        while select([inner.socket], [], [], 0)[0]:
            inner.consume_input()
        if idle_seconds > _TRUSTED_SECONDS:
            backend.autocommit = True
            backend.execute("")
    except (psycopg.Error, OSError, ValueError):
        return False
    return not backend.closed


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
