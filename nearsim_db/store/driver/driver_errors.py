"""Errors of the database driver: how they are classified, retried and translated into errors of nearsim."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ParamSpec, TypeVar

import psycopg
from psycopg import errors as pg

from nearsim_db.errors import DatabaseError, NearsimError, SchemaError, UnreachableError
from nearsim_db.store.driver.connection import Connection

# Source files of Citus that raise errors of its nodes. Messages cannot be compared, because they may be in any
# language.
_CITUS_NODE_FILES = ("connection_management.c", "remote_commands.c", "remote_transaction.c")

_HOW_TO_GRANT = "an administrator grants it: nearsim access grant USER"

_MAX_QUOTED_CHARACTERS = 60

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def attempts(connection: Connection) -> Iterator[AbstractContextManager[object]]:
    """Yield a context manager for each attempt to do the work of a transaction, up to five.

    After a deadlock or a conflict, the transaction is rolled back and the next attempt begins. There is only one
    attempt in an application's transaction, because other changes may have been made in it.
    """
    if connection.is_borrowed:
        yield nullcontext()
        return
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

    yield from Retrying(
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(5),
        wait=wait_random_exponential(multiplier=0.02, max=0.5),
        before_sleep=lambda state: connection.rollback(),
        reraise=True,
    )


def retry_conflicts(
    connection: Connection,
    action: Callable[Parameters, Result],
    *arguments: Parameters.args,
    **named: Parameters.kwargs,
) -> Result:
    """Call `action`, which does the work of a transaction, in up to five `attempts`; return its result."""
    for attempt in attempts(connection):
        with attempt:
            result = action(*arguments, **named)
    return result


def _is_conflict(error: BaseException) -> bool:
    match error:
        case pg.DeadlockDetected() | pg.SerializationFailure():
            return True
        case pg.UniqueViolation():
            # Another session signed or queued the same document concurrently.
            return (error.diag.table_name or "").startswith(("signature_", "work"))
        case pg.ForeignKeyViolation():
            # The generation was dropped concurrently.
            return error.diag.constraint_name == "work_generation_fkey"
        case _:
            return False


def is_lock_timeout(error: BaseException) -> bool:
    """Whether an error means that a wait for a lock exceeded its limit."""
    return isinstance(error, pg.LockNotAvailable)


def is_lock_conflict(error: BaseException) -> bool:
    """Whether a change of the schema failed because of a concurrent transaction, so that it can be retried."""
    # A concurrent GRANT on the same table takes no lock, but makes the update of the catalog fail. The message cannot
    # be compared, because it may be in any language.
    if isinstance(error, pg.InternalError_):
        return (error.diag.source_function or "").startswith("simple_heap_")
    return is_lock_timeout(error) or isinstance(error, pg.DeadlockDetected)


def is_missing_table(error: Exception) -> bool:
    """Whether a statement named a table that does not exist, such as a table of a dropped generation.

    A shard that is missing on a node of a Citus cluster does not count.
    """
    return isinstance(error, pg.UndefinedTable) and not _is_of_node(error)


def corruption_message(error: BaseException) -> str | None:
    """Return the server's message if an error reports corrupt data; None for any other error."""
    damage = (pg.DataCorrupted, pg.IndexCorrupted, pg.InternalError_, pg.UndefinedFile, pg.IoError)
    if isinstance(error, psycopg.Error) and isinstance(error, damage):
        return error.diag.message_primary or str(error)
    return None


_Interruption = (
    psycopg.OperationalError
    | psycopg.InterfaceError
    | pg.ReadOnlySqlTransaction
    | pg.IdleInTransactionSessionTimeout
    | pg.TransactionTimeout
)


def is_transient(error: Exception) -> bool:
    """Whether an error is caused by the server or the connection, and not by the data being processed."""
    # These are subclasses of OperationalError, but the data may cause a value that is too large, or a slow query.
    if isinstance(error, pg.ProgramLimitExceeded | pg.QueryCanceled):
        return False
    return isinstance(error, _Interruption) or _is_node_failure(error)


def cause_of_interruption(error: BaseException | None) -> str:
    """Return the reason why the server or the connection failed, as a label for metrics."""
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
    """Whether the coordinator of a Citus cluster lost a session on one of its nodes."""
    return isinstance(error, pg.InternalError_) and _is_of_node(error)


def _is_of_node(error: psycopg.Error) -> bool:
    """Whether the coordinator of a Citus cluster reports an error that one of its nodes raised."""
    return error.diag.source_file in _CITUS_NODE_FILES


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate errors of the driver that are raised inside the block into NearsimError."""
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error) from error
    except UnicodeEncodeError as error:
        raise DatabaseError(
            f"{error.object[:_MAX_QUOTED_CHARACTERS]!r} contains a lone surrogate or bytes that are not UTF-8, which "
            "PostgreSQL cannot store"
        ) from error


def _translate(error: psycopg.Error) -> NearsimError:
    # The first matching case counts, so subclasses come before OperationalError.
    message = str(error).strip()
    match error:
        # Resources of the server
        case pg.DiskFull():
            return DatabaseError(
                f"the database server's disk is full: {message}. What was committed is kept; make room and run the "
                "same command again: it resumes where it stopped"
            )
        case pg.InsufficientResources() | pg.OutOfMemory() | pg.TooManyConnections():
            return DatabaseError(f"the database server lacks resources: {message}; try again")
        case pg.ConfigurationLimitExceeded():
            return DatabaseError(f"a limit of the database server is exceeded: {message}")

        # The server is a standby, or an object or a right is missing
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
                f"the schema nearsim is not as this version expects: {error.diag.message_primary or message}; if the "
                "schema is missing, run: nearsim schema init; if only parts of it are, restore it from a dump"
            )
        case pg.InsufficientPrivilege():
            return DatabaseError(_advise(error.diag.message_primary or message, error.diag.message_hint))

        # Concurrency and connections
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
                "start it, or see Passwords in docs/how-to/scale-out.md"
            )
        case psycopg.OperationalError():
            return UnreachableError(f"the database cannot be reached, or the connection was lost: {message}")
        case _:
            return DatabaseError(f"the database refused ({type(error).__name__}): {message}")


_VERDICT_FUNCTION = re.compile(r"function (nearsim\.)?(pin_pair|veto_pair|undo_verdict)\b")


def _advise(refusal: str, hint: str | None) -> str:
    """Return the server's permission error, followed by its hint or by the role that has the missing rights."""
    if "row-level security" in refusal:
        need = "to write where collections are kept apart: nearsim access grant USER writer --collection NAME"
    elif _VERDICT_FUNCTION.search(refusal):
        need = f"to set verdicts, be a nearsim_writer; {_HOW_TO_GRANT} writer"
    elif "must be" in refusal or "permission denied for function" in refusal:
        need = f"to manage and index, be a nearsim_admin; {_HOW_TO_GRANT} admin"
    elif "for schema" in refusal:
        need = f"to read, be a nearsim_reader; {_HOW_TO_GRANT} reader"
    else:
        need = (
            "to read, be a nearsim_reader, to write documents and verdicts a nearsim_writer, to manage and index a "
            f"nearsim_admin; {_HOW_TO_GRANT} ROLE. Where collections are kept apart, readers and "
            "writers use the views and functions of SQL instead (docs/how-to/access.md)"
        )

    return f"the database refuses: {refusal}; {hint or need}"
