"""Opening engines, values that Python types cannot hold, and translation of driver errors."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from psycopg.types.json import set_json_loads

from nearsim_db.errors import DatabaseError, NearsimError, SchemaError, UnreachableError
from nearsim_db.store.driver.connection import Backend, Connection, Engine, parse_url, refuse_transaction_pool
from nearsim_db.store.driver.statements import statement

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


OLDEST_MAJOR, NEWEST_MAJOR = 15, 18

# Files of Citus, in any language of its messages
_NODE_SESSIONS = ("connection_management.c", "remote_commands.c", "remote_transaction.c")

_GRANTED = "an administrator grants it: nearsim db grant USER"

Result = TypeVar("Result")


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


def autocommitting(connection: Connection) -> Backend:
    """Return the psycopg connection below one in autocommit, for commands that must not run in a transaction."""
    assert connection.backend.autocommit
    return connection.backend


def retry_conflicts(connection: Connection, action: Callable[[], Result]) -> Result:
    """Run one transaction's work; after a deadlock or conflict roll back and retry, up to five times.

    An application's transaction is not retried, as it has more in it.
    """
    if connection.is_borrowed:
        return action()
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

    attempts = Retrying(
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(5),
        wait=wait_random_exponential(multiplier=0.02, max=0.5),
        before_sleep=lambda state: connection.rollback(),
        reraise=True,
    )
    return attempts(action)


def _is_conflict(error: BaseException) -> bool:
    match error:
        case pg.DeadlockDetected() | pg.SerializationFailure():
            return True
        case pg.UniqueViolation():  # another session signed or queued the document concurrently
            return (error.diag.table_name or "").startswith(("signature_", "work"))
        case pg.ForeignKeyViolation():  # the generation was dropped concurrently
            return error.diag.constraint_name == "work_generation_fkey"
        case _:
            return False


def is_lock_timeout(error: BaseException) -> bool:
    """Whether an error is a lock wait that exceeded its limit."""
    return isinstance(error, pg.LockNotAvailable)


def is_lock_conflict(error: BaseException) -> bool:
    """Whether a change of the schema failed because of another transaction, and can be retried."""
    if isinstance(error, pg.InternalError_):  # a concurrent GRANT on the same table, which takes no lock
        return (error.diag.source_function or "").startswith("simple_heap_")  # in any language
    return is_lock_timeout(error) or isinstance(error, pg.DeadlockDetected)


def is_missing_table(error: Exception) -> bool:
    """Whether a statement named a table that does not exist, such as one of a dropped generation.

    A shard that is missing on a node is no such table.
    """
    return isinstance(error, pg.UndefinedTable) and not _is_of_node(error)


def corruption_message(error: BaseException) -> str | None:
    """Return the server's message about corrupt data; None for any other error."""
    damage = (pg.DataCorrupted, pg.IndexCorrupted, pg.InternalError_, pg.UndefinedFile, pg.IoError)
    if isinstance(error, psycopg.Error) and isinstance(error, damage):
        return error.diag.message_primary or str(error)
    return None


_Timeout = pg.IdleInTransactionSessionTimeout | pg.TransactionTimeout


def is_transient(error: Exception) -> bool:
    """Whether an error is of the server or the connection, not of the data being processed."""
    # A value that is too large or a query that takes too long may be due to the data.
    if isinstance(error, pg.ProgramLimitExceeded | pg.QueryCanceled):
        return False
    ended = psycopg.OperationalError | psycopg.InterfaceError | pg.ReadOnlySqlTransaction | _Timeout
    return isinstance(error, ended) or _is_node_failure(error)


def cause_of_interruption(error: BaseException | None) -> str:
    """Return what made the server or the connection fail, in a word for metrics."""
    match error.__cause__ if isinstance(error, NearsimError) else error:
        case pg.DiskFull():
            return "disk_full"
        case pg.InsufficientResources() | pg.OutOfMemory() | pg.TooManyConnections():
            return "resources"
        case pg.ConfigurationLimitExceeded():
            return "limit"
        case pg.ReadOnlySqlTransaction():
            return "read_only"
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return "connection"
        case _:
            return "other"


def _is_node_failure(error: BaseException) -> bool:
    """Whether the coordinator of a Citus cluster lost a session of one of its nodes."""
    return isinstance(error, pg.InternalError_) and _is_of_node(error)


def _is_of_node(error: psycopg.Error) -> bool:
    """Whether the coordinator of a Citus cluster reports an error of one of its nodes."""
    return error.diag.source_file in _NODE_SESSIONS


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


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate driver errors inside the block into NearsimError."""
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error) from error


def _translate(error: psycopg.Error) -> NearsimError:
    message = str(error).strip()
    match error:
        case pg.DiskFull():
            return DatabaseError(
                f"the database server's disk is full: {message}. What was committed is kept; make room and run the "
                "same command again: it resumes where it stopped"
            )
        case pg.InsufficientResources() | pg.OutOfMemory() | pg.TooManyConnections():
            return DatabaseError(f"the database server lacks resources: {message}; try again")
        case pg.ConfigurationLimitExceeded():
            return DatabaseError(f"a limit of the database server is exceeded: {message}")
        case pg.ReadOnlySqlTransaction():
            return DatabaseError(
                f"the database takes no writes: {error.diag.message_primary or message}; if it is a standby, use its "
                "primary"
            )
        case pg.UndefinedTable() if _is_of_node(error):
            return DatabaseError(
                f"a shard is missing on a node of the cluster: {message}; to build the index again: "
                "nearsim verify-index --repair"
            )
        case pg.InvalidSchemaName() | pg.UndefinedTable():
            return SchemaError(
                f"the schema nearsim is not as this version expects ({message}); run: nearsim db init"
            )
        case pg.InsufficientPrivilege():
            return DatabaseError(_advise(error.diag.message_primary or message, error.diag.message_hint))
        case pg.DeadlockDetected():
            return DatabaseError(
                "too many concurrent writers of the same documents; nothing was changed, try again"
            )
        case pg.AdminShutdown() | pg.CrashShutdown() | pg.CannotConnectNow():
            return UnreachableError(f"the server is shutting down or starting: {message}; try again")
        case pg.InternalError_() if _is_node_failure(error):
            return UnreachableError(f"a node of the cluster cannot be reached: {message}; try again")
        case psycopg.OperationalError() if _is_of_node(error):
            return UnreachableError(
                f"a node of the cluster refuses this user or cannot be reached: {error.diag.message_primary}; "
                "start it, or see Passwords in docs/scale-out.md"
            )
        case psycopg.OperationalError():
            return UnreachableError(f"the database cannot be reached, or the connection was lost: {message}")
        case _:
            return DatabaseError(f"the database refused ({type(error).__name__}): {message}")


_VERDICT = re.compile(r"function (nearsim\.)?(pin_pair|veto_pair|undo_verdict)\b")


def _advise(refusal: str, hint: str | None) -> str:
    """Append the role that has the missing rights to the server's permission error, if the role is known."""
    if "row-level security" in refusal:
        need = "to write where collections are kept apart: nearsim db grant USER writer --collection NAME"
    elif _VERDICT.search(refusal):
        need = f"to set verdicts, be a nearsim_writer; {_GRANTED} writer"
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
