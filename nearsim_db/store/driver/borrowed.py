"""Connections that belong to an application: nearsim works in the application's transaction and never commits it."""

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

# Several indexes may use one connection; their server-side cursors need different names.
_cursor_numbers = count(1)


def engine_of(source: "OwnConnection") -> Engine:
    """Return an engine for a connection of an application (psycopg, SQLAlchemy, Django) or for an engine of SQLAlchemy.

    nearsim uses the connection as it is, but opens sessions of its own through an engine of SQLAlchemy. Raises
    InputError for anything else.
    """
    # SQLAlchemy's engine is the only accepted object that has this method.
    if not hasattr(source, "raw_connection"):
        return BorrowedEngine(source)
    engine: Any = source
    return open_engine(engine.url.render_as_string(hide_password=False), connect=lambda: _detached(engine))


def _detached(engine: Any) -> Backend:
    """Open a session in autocommit mode through SQLAlchemy's engine, and take it out of the engine's pool."""
    pooled = engine.raw_connection()
    session = _checked(pooled.driver_connection)
    pooled.detach()

    # The engine or its event listeners may have replaced the factories and begun a transaction.
    session.row_factory, session.cursor_factory = tuple_row, psycopg.Cursor
    session.rollback()
    session.autocommit = True
    return session


class BorrowedConnection(Connection):
    """The transaction of an application; changes are kept only if the application commits."""

    is_borrowed = True

    def __init__(self, backend: Backend, give_back: Callable[[Backend], None]) -> None:
        super().__init__(backend, give_back)
        self.cursor_prefix: str = f"nearsim_{next(_cursor_numbers)}"

    def commit(self) -> None:
        """Leave the commit to the application."""

    def rollback(self) -> None:
        """Leave the rollback to the application."""


class BorrowedEngine(Engine):
    """Returns the session of an application's connection, in the transaction that is open there."""

    is_borrowed = True

    def __init__(self, source: object) -> None:
        _checked(_driver_connection(source))
        # The session is looked up on every call, because SQLAlchemy or Django may have reconnected in between.
        super().__init__("", lambda: _SameSession(_checked(_driver_connection(source))))
        self._source = source
        # Assume Citus until the first transaction: it makes the settings of Citus and learns whether they exist.
        self._has_citus = True

    def _connect(
        self, autocommit: bool, isolation_level: IsolationLevel | None, read_only: bool | None
    ) -> Connection:
        """Return the session in its open transaction, or in a transaction that the application's connection begins.

        The application's transaction keeps its isolation level and access mode. Raises ConflictError if nearsim needs
        a transaction, and the connection is in autocommit mode with no transaction open.
        """
        session = self.open_session()
        if session.pgconn.transaction_status == TransactionStatus.IDLE:
            _begin(self._source)

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
    """The session of an application's connection, with nearsim's row types and conversions."""

    def __init__(self, connection: Backend) -> None:
        # The constructor of psycopg installs its handlers; put the application's handlers back.
        session = connection.pgconn
        notice_handler, notify_handler = session.notice_handler, session.notify_handler
        super().__init__(session, row_factory=tuple_row)
        session.notice_handler, session.notify_handler = notice_handler, notify_handler

        self.lock = connection.lock
        # Statements are not prepared, because the application's connection may give its own prepared statements the
        # same names.
        self.prepare_threshold = None
        load_moments(self)
        set_json_loads(parse_json, self)

    def __del__(self, *warn: object) -> None:
        """Leave the session open, without the warning that psycopg would print."""


def _driver_connection(source: Any) -> object:
    """Return the psycopg connection below a connection or Session of SQLAlchemy or Django, or else `source` itself."""
    # Django connects only with its first query.
    if callable(getattr(source, "ensure_connection", None)):
        source.ensure_connection()
    # `connection` is a method of SQLAlchemy's Session, but an attribute of other connections.
    if callable(getattr(source, "connection", None)):
        source = source.connection()
    below = getattr(source, "connection", source)
    return getattr(below, "driver_connection", below)


def _checked(connection: object) -> Backend:
    if not isinstance(connection, psycopg.Connection):
        kind = f"{type(connection).__module__}.{type(connection).__name__}"
        raise InputError(
            f"the connection is a {kind}; pass a connection of psycopg 3, or a connection, session or engine of "
            "SQLAlchemy that uses psycopg 3 (postgresql+psycopg://), but not one for asyncio"
        )
    return connection


def _begin(source: Any) -> None:
    """Run a first statement, so that the application's connection begins its transaction."""
    with suppress(AttributeError):
        source = source.connection() if callable(source.connection) else source
    if hasattr(source, "exec_driver_sql"):
        source.exec_driver_sql("SELECT 1")
    else:
        _checked(_driver_connection(source)).execute("")
