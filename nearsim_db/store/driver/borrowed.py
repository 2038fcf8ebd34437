"""Connections of an application: its transaction is used, and only the application commits it."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.json import set_json_loads

from nearsim_db.errors import ConflictError, InputError
from nearsim_db.store.driver.connection import Backend, Connection, load_moments, parse_json
from nearsim_db.store.driver.engine import Engine, configure_citus, open_engine

if TYPE_CHECKING:
    import sqlalchemy
    import sqlalchemy.orm

    OwnConnection: TypeAlias = (
        psycopg.Connection[Any] | sqlalchemy.Connection | sqlalchemy.orm.Session | sqlalchemy.Engine
    )

_numbers = count(1)


def engine_of(given: "OwnConnection") -> Engine:
    """Return an engine that uses a connection of psycopg, SQLAlchemy or Django, or opens those of SQLAlchemy's engine.

    Raises InputError for anything else.
    """
    if not hasattr(given, "raw_connection"):
        return BorrowedEngine(given)
    engine: Any = given
    return open_engine(engine.url.render_as_string(hide_password=False), connect=lambda: _detached(engine))


def _detached(engine: Any) -> Backend:
    """Open a session as an engine of SQLAlchemy does, which does not return to its pool."""
    pooled = engine.raw_connection()
    found = _checked(pooled.driver_connection)
    pooled.detach()
    found.row_factory, found.cursor_factory = tuple_row, psycopg.Cursor
    found.rollback()
    found.autocommit = True
    return found


class BorrowedConnection(Connection):
    """The transaction of an application; what is done in it lasts if the application commits."""

    is_borrowed = True

    def __init__(self, backend: Backend, give_back: Callable[[Backend], None]) -> None:
        super().__init__(backend, give_back)
        self.cursor_prefix: str = f"nearsim_{next(_numbers)}"

    def commit(self) -> None:
        """Leave the commit to the application."""

    def rollback(self) -> None:
        """Leave the rollback to the application."""


class BorrowedEngine(Engine):
    """Gives out the one session of an application, in the transaction that is open there."""

    is_borrowed = True

    def __init__(self, given: object) -> None:
        _checked(_driver_connection(given))
        super().__init__("", lambda: _SameSession(_checked(_driver_connection(given))))
        self._given = given
        self._has_citus = True  # until the first transaction tells

    def _connect(
        self, autocommit: bool, isolation_level: IsolationLevel | None, read_only: bool | None
    ) -> Connection:
        """Return the session; isolation is that of its transaction, which begins if the application's settings say so.

        Raises ConflictError where a transaction is needed and none is open.
        """
        session = self.open_session()
        if session.pgconn.transaction_status == TransactionStatus.IDLE:
            _begin(self._given)
        if session.pgconn.transaction_status == TransactionStatus.IDLE:
            if not autocommit:
                raise ConflictError(
                    "the connection is in autocommit mode and no transaction is open; begin one around this call "
                    "(psycopg: connection.transaction(), SQLAlchemy: connection.begin(), Django: atomic())"
                )
            session.autocommit = True
        elif self._has_citus:
            self._has_citus = bool(session.execute(configure_citus(is_local=True)).rowcount)
        return BorrowedConnection(session, lambda backend: None)


class _SameSession(psycopg.Connection[tuple[Any, ...]]):
    """The session below an application's connection, with row types and conversions of its own.

    Nothing is prepared, as both would choose the same names.
    """

    def __init__(self, given: Backend) -> None:
        inner = given.pgconn
        notices, notifications = inner.notice_handler, inner.notify_handler
        super().__init__(inner, row_factory=tuple_row)
        inner.notice_handler, inner.notify_handler = notices, notifications
        self.lock = given.lock
        self.prepare_threshold = None
        load_moments(self)
        set_json_loads(parse_json, self)

    def __del__(self, *warn: object) -> None:
        """Leave the session open, without the warning of psycopg."""


def _driver_connection(given: Any) -> object:
    """Return psycopg's connection below one of SQLAlchemy or Django, or a Session; else what was given."""
    if callable(getattr(given, "ensure_connection", None)):
        given.ensure_connection()
    if callable(getattr(given, "connection", None)):
        given = given.connection()
    below = getattr(given, "connection", given)
    return getattr(below, "driver_connection", below)


def _checked(found: object) -> Backend:
    if not isinstance(found, psycopg.Connection):
        kind = f"{type(found).__module__}.{type(found).__name__}"
        raise InputError(
            f"the connection is a {kind}; give one of psycopg 3, or a connection, session or engine of SQLAlchemy "
            "that uses it (postgresql+psycopg://), not one of asyncio"
        )
    return found


def _begin(given: Any) -> None:
    """Begin the transaction as the application's connection does with its first statement."""
    with suppress(AttributeError):
        given = given.connection() if callable(given.connection) else given
    if hasattr(given, "exec_driver_sql"):
        given.exec_driver_sql("SELECT 1")
    else:
        _checked(_driver_connection(given)).execute("")
