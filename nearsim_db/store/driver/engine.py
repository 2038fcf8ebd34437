"""Connections: an engine for a URL, the psycopg connection below it, and the driver's errors in our words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import Dialect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from nearsim_db.errors import DatabaseError, NearsimError, SchemaError, UnreachableError
from nearsim_db.store.driver.statements import statement

OLDEST_MAJOR, NEWEST_MAJOR = 15, 18

_GRANTED = "an administrator makes you one: nearsim db grant USER"

Result = TypeVar("Result")


def open_engine(url: str) -> Engine:
    """An engine for a PostgreSQL URL; nothing is connected yet.

    `postgresql://` and `postgres://` are taken as psycopg's. Raises NearsimError for another kind of URL.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise NearsimError(
            "NEARSIM_DATABASE_URL is not a database URL; it looks like postgresql://user@host/database"
        ) from error
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise NearsimError(f"nearsim needs PostgreSQL; the URL names {parsed.get_backend_name()}")
    engine = create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        # Who holds one connection may need another, so that threads waiting for one could wait for each other.
        max_overflow=-1,
        connect_args={"application_name": "nearsim", "connect_timeout": 10},
    )
    event.listen(engine, "do_connect", _connect)
    return engine


def _connect(
    dialect: Dialect, record: object, arguments: list[Any], parameters: dict[str, Any]
) -> "psycopg.Connection[tuple[object, ...]]":
    connection = psycopg.connect(*arguments, **parameters)
    try:
        connection.execute(statement("begin_session"))
        connection.commit()
    except BaseException:
        connection.close()
        raise
    return connection


def driver(connection: Connection) -> "psycopg.Connection[tuple[object, ...]]":
    """The psycopg connection that works in the same transaction."""
    inner = _inner(connection)
    # SQLAlchemy begins a transaction at its first own statement; psycopg begins one by itself.
    if not connection.in_transaction():
        connection.begin()
    return inner


def autocommitting(connection: Connection) -> "psycopg.Connection[tuple[object, ...]]":
    """The psycopg connection below one in autocommit, for commands that must not run in a transaction."""
    inner = _inner(connection)
    assert inner.autocommit
    return inner


def _inner(connection: Connection) -> "psycopg.Connection[tuple[object, ...]]":
    inner = connection.connection.driver_connection
    assert isinstance(inner, psycopg.Connection)
    return inner


def again_after_conflicts(connection: Connection, action: Callable[[], Result]) -> Result:
    """Do one transaction's work; if it met another's in a deadlock, roll back and do it again, a few times."""
    attempts = Retrying(
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(5),
        wait=wait_random_exponential(multiplier=0.02, max=0.5),
        before_sleep=lambda state: connection.rollback(),
        reraise=True,
    )
    return attempts(action)


def _is_conflict(error: BaseException) -> bool:
    cause = error.orig if isinstance(error, DBAPIError) else error
    match cause:
        case pg.DeadlockDetected() | pg.SerializationFailure():
            return True
        case pg.UniqueViolation():  # somebody else signed the document at the same time
            return (cause.diag.table_name or "").startswith("signature_")
        case pg.ForeignKeyViolation():  # the generation was dropped meanwhile
            return cause.diag.constraint_name == "work_generation_fkey"
        case _:
            return False


def is_lock_timeout(error: BaseException) -> bool:
    """Whether a lock was not to be had in the time that was given to wait for it."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, pg.LockNotAvailable)


def is_in_the_way(error: BaseException) -> bool:
    """Whether somebody else's transaction stopped a change of the schema, which can be tried again."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, pg.InternalError_):  # somebody granted rights on the same table, which takes no lock
        return "tuple concurrently" in str(cause)
    return is_lock_timeout(error) or isinstance(cause, pg.DeadlockDetected)


def is_missing_table(error: Exception) -> bool:
    """Whether a statement named a table that is not there, such as one of a generation that was dropped."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, pg.UndefinedTable)


def damage_in(error: BaseException) -> str | None:
    """What the server says of data that it cannot read; None for any other error."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    damage = (pg.DataCorrupted, pg.IndexCorrupted, pg.InternalError_, pg.UndefinedFile, pg.IoError)
    if isinstance(cause, psycopg.Error) and isinstance(cause, damage):
        return cause.diag.message_primary or str(cause)
    return None


def is_passing(error: Exception) -> bool:
    """Whether an error is the server's or the connection's, and not of the data that were being worked on."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    # A value that is too large and a query that takes too long may come of the data.
    if isinstance(cause, pg.ProgramLimitExceeded | pg.QueryCanceled):
        return False
    return isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)


def check_server(connection: Connection) -> int:
    """The server's major version. Raises DatabaseError for one that nearsim does not know."""
    information = driver(connection).info
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


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors inside the block into ours."""
    try:
        yield
    except DBAPIError as error:
        cause = error.orig
        raise _in_our_words(
            cause if isinstance(cause, psycopg.Error) else psycopg.Error(str(error))
        ) from error
    except psycopg.Error as error:
        raise _in_our_words(error) from error


def _in_our_words(error: psycopg.Error) -> NearsimError:
    message = str(error).strip()
    match error:
        case pg.DiskFull():
            return DatabaseError(
                f"the database server's disk is full: {message}. What was committed is kept; make room and run the "
                "same command again, it goes on where it stopped"
            )
        case pg.InvalidSchemaName() | pg.UndefinedTable():
            return SchemaError(
                f"the schema nearsim is not as this version expects ({message}); run: nearsim db init"
            )
        case pg.InsufficientPrivilege():
            return DatabaseError(_advise(error.diag.message_primary or message, error.diag.message_hint))
        case pg.DeadlockDetected():
            return DatabaseError(
                "too many others worked on the same documents; nothing was changed, try again"
            )
        case pg.AdminShutdown() | pg.CrashShutdown() | pg.CannotConnectNow():
            return UnreachableError(f"the server is shutting down or starting: {message}; try again")
        case psycopg.OperationalError():
            return UnreachableError(f"the database cannot be reached, or the connection was lost: {message}")
        case _:
            return DatabaseError(f"the database refused ({type(error).__name__}): {message}")


def _advise(refusal: str, hint: str | None) -> str:
    """What the server says to a user who lacks rights, and the role that has them, as far as that can be known."""
    if "row-level security" in refusal:
        need = "to write where collections are kept apart: nearsim db grant USER writer --collection NAME"
    elif "must be" in refusal or "permission denied for function" in refusal:
        need = f"to manage and index, be a nearsim_admin; {_GRANTED} admin"
    elif "for schema" in refusal:
        need = f"to read, be a nearsim_reader; {_GRANTED} reader"
    else:
        need = (
            "to read, be a nearsim_reader, to write documents and verdicts a nearsim_writer, to manage and index a "
            f"nearsim_admin; {_GRANTED} ROLE. Where collections are kept apart, readers and "
            "writers use the views and functions of SQL instead (docs/access.md)"
        )
    return f"the database refuses: {refusal}; {hint or need}"
