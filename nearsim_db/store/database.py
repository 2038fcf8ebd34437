"""A database with nearsim in it: its connections, its schema, its collections."""

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
# Any command may be the one that upgrades the schema of the embedded server.
_EMBEDDED_PATIENCE_SECONDS = 30.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """Versions of the server and of the schema."""

    version: str  # of the server, such as 18.1
    revision: str | None  # of the schema; None if nearsim is not installed
    nodes: tuple[NodeState, ...] = ()  # of a Citus cluster, if band rows are distributed


class Database:
    """An open database. Its blocks translate errors of the driver into errors of `nearsim_db.errors`."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self._reading: deque[Connection] = deque()

    @classmethod
    def connect(cls, url: str | None = None, *, threads: int | None = None) -> Self:
        """Open the database at `url`, else at NEARSIM_DATABASE_URL, else the embedded server, started on demand.

        `threads` encode, build and verify, by default NEARSIM_THREADS, else one a core. The embedded server's schema is
        created and upgraded; that of another server must match, or SchemaError is raised.
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
        """Open the database of an application's connection, or with the connections of its engine.

        Raises InputError for an object of another kind, and SchemaError as `connect` does.
        """
        database = cls(engine_of(connection), from_environment())
        with translate_errors():
            database._prepare_schema(may_upgrade=False)
        return database

    def refuse_borrowed(self, doing: str) -> None:
        """Raise ConflictError if this works in the transaction of an application."""
        if self.engine.is_borrowed:
            raise ConflictError(
                f"{doing} takes transactions of its own, and this index is in one of the application; "
                "use another index for it: Index.connect() with a URL or an engine"
            )

    def refuse_snapshot(self, what: str) -> None:
        """Raise ConflictError if this works in an application's transaction that sees one snapshot."""
        if not self.engine.is_borrowed:
            return
        with self.transaction() as connection:
            level = isolation_level(connection)
        if level not in ("read committed", "read uncommitted"):
            raise ConflictError(
                f"{what} must see what other transactions commit meanwhile, and this one is {level}; "
                "begin it as READ COMMITTED"
            )

    def _prepare_schema(self, *, may_upgrade: bool) -> None:
        """Check the server and the schema; with `may_upgrade` create or upgrade the schema if needed."""
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
        """Create or upgrade the schema at `url` (see `connect`); return its revision.

        Band rows are distributed over the nodes of a Citus cluster as `citus` says: `auto` does so on a coordinator
        with nodes.

        Needs the right to create a schema, or schemas that the user owns. Each step waits up to `patience_seconds` for
        its locks, while other sessions hardly wait for it; see docs/how-to/upgrading.md. Progress and waits are passed
        to `report`.
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
        """Return the versions at `url`, whether or not nearsim can use it. Raises UnreachableError."""
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
        """Whether the user may do more than read and write documents."""
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
        """Connect in a transaction that commits at the end of the block."""
        with translate_errors(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Connect in autocommit; the connection is kept for the next block.

        Does not translate errors; after an error all kept connections are closed.
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
        """Return the result of an action that reads, retried once after a transient error of the server.

        Returns None if a table that it reads was dropped. Does not translate errors.
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
        """Hold the build lock of a collection, under which its indexes are built and dropped.

        Without `wait` the block runs even if another process holds the build lock; yields whether this one does.
        """
        with translate_errors(), self.engine.connect() as connection:
            has_lock = take_lock(connection, Lock.BUILD, collection_id, wait=wait)
            connection.commit()
            try:
                yield has_lock
            except Exception as error:
                # Idle sessions, and a coordinator's sessions on its nodes, may be lost too.
                if is_transient(error):
                    self.engine.dispose()
                raise
            finally:
                if has_lock:
                    release_lock(connection, Lock.BUILD, collection_id)
                    connection.commit()

    @contextmanager
    def lease(self) -> Iterator[int]:
        """Hold a lease for the block; work taken under it is released at its end, also if the process is killed."""
        with translate_errors(), self.engine.connect() as connection:
            retry_conflicts(connection, leases.release_lost_work, connection)
            lease_id = leases.open_lease(connection, f"{socket.gethostname()}:{os.getpid()}")
            connection.commit()
            try:
                yield lease_id
            finally:
                self._end_lease(connection, lease_id)

    def _end_lease(self, connection: Connection, lease_id: int) -> None:
        """Release work, over another session if the lease's is lost; then no attempt counts, as this process lives."""
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
        """Return the collections, by name."""
        with self.transaction() as connection:
            return collection_rows.list_collections(connection)

    def default_collection(self) -> str:
        """Return the name of the collection to use where none is named: `default`, otherwise the only one."""
        with self.transaction() as connection:
            return collection_rows.default_collection(connection)

    def count_documents(self, collection: Collection) -> int:
        """Return the number of documents in a collection."""
        with self.transaction() as connection:
            return collection_rows.count_documents(connection, collection.collection_id)

    def labels(self, collection: str) -> list[tuple[str, str, bool]]:
        """Return the active verdicts of a collection as labelled pairs. Raises NotFoundError."""
        with self.transaction() as connection:
            collection_id = collection_rows.get_collection(connection, collection).collection_id
            return verdicts.list_labels(connection, collection_id)

    def create_collection(self, name: str) -> Collection:
        """Create a collection. Raises ConflictError if the name is taken, or has outer spaces or control characters."""
        with self.transaction() as connection:
            return collection_rows.create_collection(connection, name)

    def rename_collection(self, name: str, new_name: str) -> None:
        """Rename a collection. Raises NotFoundError, and ConflictError as `create_collection` does."""
        with self.transaction() as connection:
            collection_rows.rename_collection(connection, name, new_name)
