"""What the parts of a worker share: its log, the contexts of generations, its scope, its lease and its schedule."""

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from nearsim_db.errors import NearsimError, NotFoundError
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.messages import count_of
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.similarity.screening import FeatureCache
from nearsim_db.store.access import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import retry_conflicts
from nearsim_db.store.driver.locks import Lock, release_lock
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.settings import Settings
from nearsim_db.store.work import leases

HEARTBEAT_SECONDS = 1.0

_MAX_CONTEXTS = 64  # each caches up to 64 MB of features

_log = logging.getLogger("nearsim.worker")


def log(level: int, event: str, message: str, facts: Mapping[str, object] | None = None) -> None:
    """Log an event with its structured fields."""
    _log.log(level, message, extra={"event": event, "facts": facts or {}})


def facts_of(generation: Generation) -> dict[str, object]:
    """Return the structured log fields of a generation."""
    return {
        "collection": generation.collection,
        "profile": generation.profile,
        "generation": generation.generation_id,
    }


def describe(generation: Generation) -> str:
    """Return the words that log messages use for a generation."""
    place = f"profile {generation.profile} of collection {generation.collection}"
    return f"{place} (generation {generation.generation_id})"


def place_of(generation: Generation) -> str:
    """Return a generation's collection and profile, such as news/default."""
    return f"{generation.collection}/{generation.profile}"


class Contexts:
    """Contexts of the most recently used generations, created on first use."""

    def __init__(self, settings: Settings, pool: Executor) -> None:
        # The error of each generation that this version cannot reproduce; it is logged once.
        self.refused: dict[GenerationId, NearsimError] = {}
        self._settings = settings
        self._pool = pool
        self._contexts: dict[GenerationId, Context] = {}  # in the order of their last use
        self._purges: dict[CollectionId, datetime] = {}  # the last purge of each collection

    @property
    def in_use(self) -> Mapping[GenerationId, Context]:
        """The contexts of the generations that the worker has worked on most recently."""
        return self._contexts

    def refresh(self, connection: Connection) -> None:
        """Drop the contexts of deleted generations, and the cached features of collections with purged documents."""
        existing = generation_rows.find_existing(connection, {*self._contexts, *self.refused})
        for id in self._contexts.keys() - existing:
            del self._contexts[id]
        self.refused = {id: error for id, error in self.refused.items() if id in existing}

        collections = {context.collection_id for context in self._contexts.values()}
        purges = collection_rows.read_purges(connection, collections)
        for context in self._contexts.values():
            collection_id = context.collection_id
            if purges.get(collection_id) != self._purges.get(collection_id):
                context.cache = FeatureCache()
        self._purges = purges

    def find(self, connection: Connection, generation_id: GenerationId) -> Context | None:
        """Return the context of a generation; None if it was deleted or is refused."""
        if generation_id in self._contexts:
            context = self._contexts[generation_id] = self._contexts.pop(generation_id)
            # Read the generation again, because this stage of its build determines the shingles to leave out.
            if context.generation.stage == "sign":
                with suppress(NotFoundError):
                    context.adopt(generation_rows.get_generation(connection, generation_id))
        elif generation_id not in self.refused:
            with suppress(NotFoundError):
                self._add(generation_rows.get_generation(connection, generation_id))
        return self._contexts.get(generation_id)

    def _add(self, generation: Generation) -> None:
        def warn(message: str) -> None:
            log(logging.WARNING, "warning", f"{place_of(generation)}: {message}", facts_of(generation))

        try:
            context = ContextFactory(self._settings, self._pool, warn).make(generation)
            self._contexts[generation.generation_id] = context
            if len(self._contexts) > _MAX_CONTEXTS:
                del self._contexts[next(iter(self._contexts))]
        except NearsimError as error:
            self.refused[generation.generation_id] = error
            log(logging.ERROR, "refused", f"{describe(generation)} is skipped: {error}", facts_of(generation))


@dataclass(slots=True)
class WorkerScope:
    """The collection that a worker works on, or all of them."""

    database: Database
    collection: str | None  # None for all collections
    contexts: Contexts
    stopping: Callable[[], bool]  # returns whether the worker was asked to stop
    collection_id: CollectionId | None = None  # set by `refresh`, None for all collections

    @property
    def engine(self) -> Engine:
        """The database's engine."""
        return self.database.engine

    def refresh(self) -> None:
        """Look the collection up again, and drop outdated contexts. Raises NotFoundError if the collection is gone."""
        with self.engine.connect() as connection:
            if self.collection is not None:
                self.collection_id = collection_rows.get_collection(connection, self.collection).collection_id
            self.contexts.refresh(connection)

    def includes(self, collection_id: CollectionId) -> bool:
        """Whether the worker works on a collection."""
        return self.collection_id in (None, collection_id)


class WorkerLease:
    """A worker's lease on its work. While its heartbeat is recent, no other worker takes this work.

    The connection is used for nothing else. If a lease sends no heartbeat for `silence_seconds`, its work is released.
    `lost` lists the leases that this process could not end. When the next lease is opened, the attempts that were
    counted for their work are taken back.
    """

    def __init__(self, connection: Connection, silence_seconds: float, lost: list[int]) -> None:
        self._connection = connection
        self._lost = lost
        self._silence_seconds = silence_seconds
        self._due_at = 0.0
        self.lease_id: int = self._open()

    def keep_alive(self) -> None:
        """Send a heartbeat if the last one is a second old. If the lease has expired, open a new one."""
        if time.monotonic() < self._due_at:
            return

        is_valid = leases.renew_lease(self._connection, self.lease_id)
        self._connection.commit()
        if not is_valid:
            release_lock(self._connection, Lock.WORKER_LEASE, self.lease_id)
            self.lease_id = self._open()
            log(
                logging.WARNING,
                "lease_lost",
                f"this worker's lease expired: no heartbeat for {self._silence_seconds:g} s; its work was released to "
                "other workers, and it continues under a new lease",
            )

        self._due_at = time.monotonic() + HEARTBEAT_SECONDS

    def release_lost_work(self) -> None:
        """Release the work of workers that died or sent no heartbeat."""
        released = leases.release_lost_work(self._connection, self._silence_seconds)
        self._connection.commit()
        if released:
            message = f"work on {count_of(released, 'document')} of workers without a heartbeat was released"
            log(logging.WARNING, "freed", message, {"documents": released})

    def close(self) -> None:
        """End the lease and release its work."""
        try:
            leases.end_lease(self._connection, self.lease_id)
        except BaseException:
            # The lease counts as lost whatever the error is, even an interruption.
            self._lost.append(self.lease_id)
            raise

    def _open(self) -> int:
        if self._lost:
            retry_conflicts(self._connection, leases.forgive, self._connection, self._lost)
            self._connection.commit()
            self._lost.clear()
        lease_id = leases.open_lease(self._connection, f"{socket.gethostname()}:{os.getpid()}")
        self._connection.commit()
        return lease_id


class Schedule:
    """Services in the order in which they run.

    Each has a period: the seconds from the end of a run to the start of the next.
    """

    def __init__(
        self,
        services: Sequence[tuple[float, Callable[[], object]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._services = tuple(services)
        self._clock = clock
        self._due_at = [-float("inf")] * len(services)

    def make_due(self, period_seconds: float) -> None:
        """Make the services of a period run at the next call of `run_due`."""
        for number, (period, _) in enumerate(self._services):
            if period == period_seconds:
                self._due_at[number] = -float("inf")

    def run_due(self) -> None:
        """Run each service whose period has passed."""
        for number, (period_seconds, run) in enumerate(self._services):
            if self._clock() >= self._due_at[number]:
                run()
                self._due_at[number] = self._clock() + period_seconds
