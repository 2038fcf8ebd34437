"""A database in which nearsim is installed: its connections, its schema and its collections."""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeVar

from nearsim_db.errors import ConflictError, NearsimError
from nearsim_db.records import CitusUse, CollectionId
from nearsim_db.store.access import access, collection_rows
from nearsim_db.store.access.collection_rows import Collection
from nearsim_db.store.citus import placement
from nearsim_db.store.citus.placement import NodeState
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.borrowed import engine_of
from nearsim_db.store.driver.driver_errors import (
    is_missing_table,
    is_transient,
    retry_conflicts,
    translate_errors,
)
from nearsim_db.store.driver.engine import check_server, open_engine
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.driver.server_settings import isolation_level, server_version
from nearsim_db.store.pairs import verdicts
from nearsim_db.store.schema import revisions
from nearsim_db.store.settings import Settings, database_url, from_environment
from nearsim_db.store.work import leases

if TYPE_CHECKING:
    from nearsim_db.store.driver.borrowed import OwnConnection

_MAX_READING_CONNECTIONS = 4
# Any command may have to upgrade the schema of the embedded server.
_EMBEDDED_PATIENCE_SECONDS = 30.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """Versions of the server and of the schema."""

    version: str  # version of the server, such as 18.1
    revision: str | None  # revision of the schema; None if nearsim is not installed
    nodes: tuple[NodeState, ...] = ()  # nodes of a Citus cluster, if band rows are distributed


class Database:
    """An open database; its context managers translate errors of the driver into errors of `nearsim_db.errors`."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self._reading: deque[Connection] = deque()

    @classmethod
    def connect(cls, url: str | None = None, *, threads: int | None = None) -> Self:
        """Open the database at `url`, by default at NEARSIM_DATABASE_URL or, if that is not set, the embedded server.

        The embedded server is started if it is not running, and its schema is created or upgraded. Raises SchemaError
        if the schema on another server does not match. `threads` is the number of threads that encode, build and
        verify, by default NEARSIM_THREADS or else the number of cores.
        """
        settings = from_environment()
        if threads is not None:
            settings = replace(settings, threads=threads)
        database = cls(open_engine(url or database_url()), settings)
        try:
            with translate_errors():
                database._prepare_schema(may_upgrade=url is None and settings.database_url is None)
        except NearsimError:
            database.close()
            raise
        return database

    @classmethod
    def borrow(cls, connection: "OwnConnection") -> Self:
        """Open the database of an application's connection or engine, and work through these.

        Raises InputError for another kind of object, and SchemaError as `connect` does.
        """
        database = cls(engine_of(connection), from_environment())
        with translate_errors():
            database._prepare_schema(may_upgrade=False)
        return database

    def refuse_borrowed(self, doing: str) -> None:
        """Raise ConflictError if this database is used in the transaction of an application."""
        if self.engine.is_borrowed:
            raise ConflictError(
                f"{doing} needs transactions of its own, but this index works in a transaction of the application; "
                "use another index for it: Index.connect() with a URL or an engine"
            )

    def refuse_snapshot(self, what: str) -> None:
        """Raise ConflictError if this database is used in an application's transaction that sees only one snapshot."""
        if not self.engine.is_borrowed:
            return
        with self.transaction() as connection:
            level = isolation_level(connection)
        if level not in ("read committed", "read uncommitted"):
            raise ConflictError(
                f"{what} must see what other transactions commit meanwhile, but this transaction is {level}; "
                "begin it as READ COMMITTED"
            )

    def _prepare_schema(self, *, may_upgrade: bool) -> None:
        """Check the server and the schema; if `may_upgrade`, create or upgrade the schema if necessary."""
        with self.engine.connect(autocommit=True) as connection:
            check_server(connection)
            if not may_upgrade:
                revisions.check(connection)
                return
            state = revisions.read_state(connection)
            is_done = state is not None and revisions.is_done(state)
            is_misplaced = is_done and state is not None and revisions.is_misplaced(connection, state)

        if not is_done:
            revisions.upgrade(self.engine, patience_seconds=_EMBEDDED_PATIENCE_SECONDS)
        if is_misplaced:
            with self.engine.begin() as connection:
                placement.distribute(connection, "auto", lambda message: None)

    @staticmethod
    def initialise(
        url: str | None = None,
        patience_seconds: float = revisions.PATIENCE_SECONDS,
        report: Callable[[str], None] = lambda message: None,
        citus: CitusUse = "auto",
    ) -> str:
        """Create or upgrade the schema at `url` (see `connect`), and return its revision.

        `citus` decides whether band rows are distributed over the nodes of a Citus cluster; `auto` distributes them if
        the server is a coordinator with nodes.

        The user must have the right to create a schema, or own the schemas. Each step waits up to `patience_seconds`
        for its locks, and other sessions hardly wait for it (docs/how-to/upgrading.md). `report` is called with
        messages about progress and waits.
        """
        engine = open_engine(url or database_url())
        try:
            with translate_errors():
                revision = revisions.upgrade(engine, patience_seconds=patience_seconds, report=report)
                with engine.begin() as connection:
                    access.withhold_statistics(connection)
                    placement.distribute(connection, citus, report)
                return revision
        finally:
            engine.dispose()

    @staticmethod
    def inspect(url: str) -> "DatabaseState":
        """Return the versions of the database at `url`, even if nearsim cannot use it. Raises UnreachableError."""
        engine = open_engine(url)
        try:
            with translate_errors(), engine.connect() as connection:
                revision = revisions.current_revision(connection)
                has_shards = revision is not None and placement.has_shards(connection)
                nodes = placement.measure_nodes(connection) if has_shards else []
                return DatabaseState(server_version(connection), revision, tuple(nodes))
        finally:
            engine.dispose()

    @cached_property
    def may_index(self) -> bool:
        """Whether the user may build indexes, and not only read and write documents."""
        with self.transaction() as connection:
            return access.has_owners_rights(connection)

    @cached_property
    def is_distributed(self) -> bool:
        """Whether band rows are on the nodes of a Citus cluster."""
        with self.transaction() as connection:
            return placement.is_distributed(connection)

    def close(self) -> None:
        """Close all connections."""
        self._stop_reading()
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Yield a connection in a transaction that is committed at the end of the block."""
        with translate_errors(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection in autocommit mode, which is kept for the next block.

        Errors are not translated. After an error, all connections that were kept are closed.
        """
        try:
            connection = self._reading.pop()
        except IndexError:
            connection = self.engine.connect(autocommit=True)
        try:
            yield connection
        except BaseException:
            connection.close()
            self._stop_reading()
            raise
        if len(self._reading) < _MAX_READING_CONNECTIONS and not self.engine.is_borrowed:
            self._reading.append(connection)
        else:
            connection.close()

    def ask(self, action: Callable[[Connection], Result | None]) -> Result | None:
        """Return the result of an action that only reads; after a transient error of the server, call it once more.

        Returns None if a table that the action reads was dropped. Errors are not translated.
        """
        try:
            with self.reading() as connection:
                return action(connection)
        except Exception as error:
            if is_missing_table(error):
                return None
            if not is_transient(error):
                raise
        # The server may have restarted since the connection was last used.
        with self.reading() as connection:
            return action(connection)

    def _stop_reading(self) -> None:
        while self._reading:
            self._reading.pop().close()

    @contextmanager
    def builder(self, collection_id: CollectionId, *, wait: bool = True) -> Iterator[bool]:
        """Take the build lock of a collection, which is needed to build and drop its indexes, for the block.

        Yields whether this process has the lock. If `wait` is False and another process has it, the block runs
        without the lock.
        """
        with translate_errors(), self.engine.connect() as connection:
            has_lock = take_lock(connection, Lock.BUILD, collection_id, wait=wait)
            connection.commit()
            try:
                yield has_lock
            except Exception as error:
                # Idle sessions, and the sessions of a coordinator on its nodes, may be lost as well.
                if is_transient(error):
                    self.engine.dispose()
                raise
            finally:
                if has_lock:
                    release_lock(connection, Lock.BUILD, collection_id)
                    connection.commit()

    @contextmanager
    def lease(self) -> Iterator[int]:
        """Open a lease for the block, and yield its id; work under the lease is released at the end of the block.

        If the process is killed, other processes release the work.
        """
        with translate_errors(), self.engine.connect() as connection:
            retry_conflicts(connection, leases.release_lost_work, connection)
            lease_id = leases.open_lease(connection, f"{socket.gethostname()}:{os.getpid()}")
            connection.commit()
            try:
                yield lease_id
            finally:
                self._end_lease(connection, lease_id)

    def _end_lease(self, connection: Connection, lease_id: int) -> None:
        """Release the work of a lease.

        If the session of the lease is lost, another session takes back the attempts that were counted for the loss,
        because this process is still alive.
        """
        try:
            leases.end_lease(connection, lease_id)
        except Exception as error:
            if not is_transient(error):
                raise
            self.engine.dispose()
            with self.engine.connect() as another:
                retry_conflicts(another, leases.forgive, another, [lease_id])
                another.commit()

    def collections(self) -> list[Collection]:
        """Return the collections, sorted by name."""
        with self.transaction() as connection:
            return collection_rows.list_collections(connection)

    def default_collection(self) -> str:
        """Return the name of the collection to use if the caller names none: `default`, otherwise the only one."""
        with self.transaction() as connection:
            return collection_rows.default_collection(connection)

    def count_documents(self, collection: Collection) -> int:
        """Return the number of documents in a collection."""
        with self.transaction() as connection:
            return collection_rows.count_documents(connection, collection.collection_id)

    def labels(self, collection: str) -> list[tuple[str, str, bool]]:
        """Return the verdicts of a collection that are in force, as labelled pairs. Raises NotFoundError."""
        with self.transaction() as connection:
            collection_id = collection_rows.get_collection(connection, collection).collection_id
            return verdicts.list_labels(connection, collection_id)

    def create_collection(self, name: str) -> Collection:
        """Create a collection.

        Raises ConflictError if the name exists, begins or ends with a space, or has control characters.
        """
        with self.transaction() as connection:
            return collection_rows.create_collection(connection, name)

    def rename_collection(self, name: str, new_name: str) -> None:
        """Rename a collection.

        Raises NotFoundError if it does not exist, and ConflictError as `create_collection` does.
        """
        with self.transaction() as connection:
            collection_rows.rename_collection(connection, name, new_name)
