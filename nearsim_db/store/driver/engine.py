"""Engines, which open sessions of a database, check them and keep some of them for reuse."""

import re
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from select import select
from typing import Any
from urllib.parse import parse_qsl, unquote

import psycopg
from psycopg import IsolationLevel, sql
from psycopg.pq import TransactionStatus
from psycopg.types.json import set_json_loads

from nearsim_db.errors import DatabaseError, NearsimError
from nearsim_db.store.driver.connection import (
    Backend,
    Connection,
    load_moments,
    parse_json,
    refuse_transaction_pool,
)
from nearsim_db.store.driver.statements import statement

OLDEST_MAJOR, NEWEST_MAJOR = 15, 18

_MAX_IDLE_SESSIONS = 5
# A session that was idle for longer than this is tested with a query before it is reused.
_TRUSTED_SECONDS = 30.0
_LOCATION = re.compile(
    r"(?:(?P<user>[^:/?@]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:\[(?P<address>[^]]*)\]|(?P<host>[^:/?]*))(?::(?P<port>\d*))?"
    r"(?:/(?P<dbname>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_PERCENT_ENCODED = ("user", "password", "dbname")


def parse_url(url: str) -> dict[str, str]:
    """Return the libpq parameters that a PostgreSQL URL contains; parameters after `?` take precedence.

    The scheme may name a Python driver, as `postgresql+psycopg` does; the driver is ignored. If there are several
    hosts, as in `host=a:5432&host=b`, libpq tries them in turn. Raises NearsimError for other URLs; the message never
    quotes a password.
    """
    scheme, separator, location = url.partition("://")
    parts = _LOCATION.fullmatch(location)
    if not separator or not re.fullmatch(r"[\w+]+", scheme) or parts is None:
        # The message quotes only a plain word, because anything else may contain a password.
        word = f"{url!r}" if re.fullmatch(r"[\w-]+", url) else "the address"
        raise NearsimError(
            f"{word} is not a database URL such as postgresql://user@host/database; URLs come from "
            "NEARSIM_DATABASE_URL or the argument url, and a collection is named by collection="
        )
    backend = scheme.partition("+")[0]
    if backend not in ("postgresql", "postgres"):
        raise NearsimError(f"nearsim needs PostgreSQL; the URL names {backend}")

    fields = parts.groupdict()
    query = parse_qsl(fields.pop("query") or "")
    fields["host"] = fields.pop("address") or fields["host"]
    parameters = {
        name: unquote(value) if name in _PERCENT_ENCODED else value for name, value in fields.items() if value
    }
    return parameters | dict(query) | _several_hosts([value for name, value in query if name == "host"])


def _several_hosts(hosts: list[str]) -> dict[str, str]:
    """Return the `host` parameters of a URL as libpq's list of hosts and, if any host has a port, its list of ports."""
    # A single host without a port needs no conversion.
    if len(hosts) < 2 and not (hosts and re.fullmatch(r"[^:/]+:\d+", hosts[0])):
        return {}
    parts = [host.rpartition(":") if re.fullmatch(r"[^:/]+:\d+", host) else (host, "", "") for host in hosts]
    ports = {"port": ",".join(port for _, _, port in parts)} if any(port for _, _, port in parts) else {}
    return {"host": ",".join(host for host, _, _ in parts), **ports}


class Engine:
    """Opens sessions of a database and keeps some of them for reuse; an engine is thread-safe.

    `open_session` connects and makes the settings that every session relies on. The number of sessions is not limited:
    a thread that has a session may need a second one, so with a limit, threads could wait for each other.
    """

    is_borrowed = False  # whether its sessions are an application's

    def __init__(self, url: str, open_session: Callable[[], Backend]) -> None:
        self.url = url
        self.open_session = open_session
        self.connection_type: type[Connection] = Connection
        self._idle: deque[tuple[Backend, float]] = (
            deque()
        )  # sessions, each with the time at which it became idle
        self._epoch = 0  # sessions from an earlier epoch are closed when they are returned
        weakref.finalize(self, _close_all, self._idle)

    def connect(self, *, autocommit: bool = False) -> "Connection":
        """Return a session, which the caller closes.

        Its first statement begins a transaction, unless the session is in autocommit mode.
        """
        return self._connect(autocommit, None, None)

    def snapshot(self, *, read_only: bool | None = True) -> "Connection":
        """Return a session, which the caller closes; every statement of a transaction in it sees the same data.

        If `read_only` is None, the server decides whether writes are allowed; only a standby refuses them.
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
        return self.connection_type(backend, partial(self._give_back, epoch=self._epoch))

    @contextmanager
    def begin(self) -> Iterator["Connection"]:
        """Return a session for a `with` block, and commit its transaction at the end of the block."""
        with self.connect() as connection:
            yield connection
            connection.commit()

    def notify(self) -> None:
        """Wake idle workers after a commit; errors of the database are ignored, because workers also poll."""
        with suppress(psycopg.Error), self.connect() as connection:
            connection.execute("NOTIFY nearsim")
            connection.commit()

    def dispose(self) -> None:
        """Close the sessions that are not in use now, and the others as soon as they are returned."""
        self._epoch += 1
        _close_all(self._idle)

    def _give_back(self, backend: Backend, epoch: int) -> None:
        """Roll a session back and keep it for the next use, or close it."""
        status = backend.pgconn.transaction_status
        try:
            if status == TransactionStatus.INTRANS:
                # This calls libpq, because psycopg would discard all prepared statements, which the rollback of a
                # transaction does not affect.
                backend.pgconn.exec_(b"ROLLBACK")
            elif status == TransactionStatus.INERROR:
                # This also discards prepared statements: the error may be that one of them returns other columns now.
                backend.rollback()
            elif status != TransactionStatus.IDLE:
                # While a COPY is running, a rollback would wait forever.
                backend.close()
        except psycopg.Error:
            backend.close()

        if epoch == self._epoch and not backend.closed and len(self._idle) < _MAX_IDLE_SESSIONS:
            self._idle.append((backend, time.monotonic()))
        else:
            backend.close()

    def _take(self) -> Backend | None:
        """Return the most recently used idle session that is still alive, and close the dead ones before it."""
        for backend, since in _taken(self._idle):
            if _is_alive(backend, time.monotonic() - since):
                return backend
            backend.close()
        return None


def _taken(idle: deque[tuple[Backend, float]]) -> Iterator[tuple[Backend, float]]:
    """Take out idle sessions one by one, the most recent first; no other thread gets the same session."""
    with suppress(IndexError):
        while True:
            yield idle.pop()


def _close_all(idle: deque[tuple[Backend, float]]) -> None:
    for backend, _ in _taken(idle):
        backend.close()


def _is_alive(backend: Backend, idle_seconds: float) -> bool:
    """Whether the server still has a session; tested by its socket and, if it was idle for long, by a query."""
    try:
        # If the server closed the connection, the socket is readable, and reading from it fails.
        session = backend.pgconn
        while select([session.socket], [], [], 0)[0]:
            session.consume_input()
        if idle_seconds > _TRUSTED_SECONDS:
            backend.autocommit = True
            backend.execute("")
    except (psycopg.Error, OSError, ValueError):
        return False
    return not backend.closed


def open_engine(
    url: str, *, timeout_seconds: int = 10, connect: Callable[[], Backend] | None = None
) -> Engine:
    """Return an engine for a PostgreSQL URL (see `parse_url`) without connecting yet.

    `connect` opens a session in autocommit mode; by default psycopg does so, within `timeout_seconds`.
    """
    parameters: dict[str, Any] = {
        **parse_url(url),
        "application_name": "nearsim",
        "connect_timeout": timeout_seconds,
    }
    plain = "postgresql://" + url.partition("://")[2]
    return Engine(
        plain, _Connector(connect or partial(psycopg.connect, **parameters, autocommit=True)).connect
    )


class _Connector:
    """Opens the sessions of an engine; the first one is checked for a pool in transaction mode."""

    def __init__(self, connect: Callable[[], Backend]) -> None:
        self._connect = connect
        self._is_checked = False

    def connect(self) -> Backend:
        """Open a session with the settings that nearsim relies on. Raises PoolError for a pool in transaction mode."""
        connection = self._connect()
        try:
            if not self._is_checked:
                # This comes before the settings, because other clients of a pool in transaction mode would get them.
                refuse_transaction_pool(connection, self._connect)
                self._is_checked = True

            connection.execute(
                sql.SQL(";").join((statement("begin_session"), configure_citus(is_local=False)))
            )
            connection.autocommit = False
            load_moments(connection)
            set_json_loads(parse_json, connection)
        except BaseException:
            connection.close()
            raise
        return connection


def configure_citus(*, is_local: bool) -> sql.Composed:
    """Return the statement that makes the Citus settings for lookups, in the session or only in the transaction."""
    return statement("configure_citus", is_local=sql.Literal(is_local))


def check_server(connection: Connection) -> int:
    """Return the server's major version. Raises DatabaseError if its version or the encoding is not supported."""
    information = connection.backend.info
    major = information.server_version // 10000
    if major < OLDEST_MAJOR:
        raise DatabaseError(
            f"the server is PostgreSQL {major}; nearsim needs {OLDEST_MAJOR} or later (tested to {NEWEST_MAJOR})"
        )
    encoding = information.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseError(
            f"the database's encoding is {encoding}; nearsim needs UTF8: CREATE DATABASE ... ENCODING 'UTF8'"
        )
    return major
