"""Opening and pooling sessions of a database; pools in transaction mode are refused."""

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

_KEPT_SESSIONS = 5
_TRUSTED_SECONDS = 30.0
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
        # Only a plain word is quoted: anything else may have a password in it.
        word = f"{url!r}" if re.fullmatch(r"[\w-]+", url) else "the address"
        raise NearsimError(
            f"{word} is not a database URL such as postgresql://user@host/database; URLs come from "
            "NEARSIM_DATABASE_URL or the argument url, and a collection is named by collection="
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

    def notify(self) -> None:
        """Wake idle workers after a commit; database errors are ignored."""
        with suppress(psycopg.Error), self.connect() as connection:
            connection.execute("NOTIFY nearsim")
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


def open_engine(
    url: str, *, timeout_seconds: int = 10, connect: Callable[[], Backend] | None = None
) -> Engine:
    """Return an engine for a PostgreSQL URL, without connecting; a connection may take up to `timeout_seconds`.

    `connect` opens a session in autocommit, by default of psycopg.

    `postgresql://` and `postgres://` select psycopg. Raises NearsimError for another kind of URL.
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
    """Opens the sessions of an engine; the first of them tells whether the address is of a usable pool."""

    def __init__(self, connect: Callable[[], Backend]) -> None:
        self._connect = connect
        self._is_checked = False

    def connect(self) -> Backend:
        """Connect, and set what every session of nearsim relies on. Raises PoolError."""
        connection = self._connect()
        try:
            if not self._is_checked:
                # Settings would reach other clients of a pool in transaction mode.
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
    """Return the statement that sets what look-ups on a Citus cluster rely on."""
    return statement("configure_citus", is_local=sql.Literal(is_local))


def check_server(connection: Connection) -> int:
    """Return the server's major version. Raises DatabaseError for an unsupported version or encoding."""
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
