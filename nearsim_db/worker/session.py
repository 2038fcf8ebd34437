"""A worker's session: from the connection to the database until the worker stops or the connection is lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from nearsim_db.errors import DatabaseError, NearsimError
from nearsim_db.records import GenerationId
from nearsim_db.search import events
from nearsim_db.store import lookup_requests
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, notify
from nearsim_db.store.driver.engine import translate_errors
from nearsim_db.store.work import backlog
from nearsim_db.store.work.backlog import Backlog
from nearsim_db.store.work.leases import SILENCE_SECONDS
from nearsim_db.worker import maintenance
from nearsim_db.worker.contexts import Contexts, Schedule, Scope, Service
from nearsim_db.worker.lease import HEARTBEAT_SECONDS, WorkerLease
from nearsim_db.worker.lookup_requests import LookupRequestService
from nearsim_db.worker.maintenance import AttachedTables
from nearsim_db.worker.metrics import Monitor
from nearsim_db.worker.queued_work import QueuedWork
from nearsim_db.worker.unattended_builds import UnattendedBuilds
from nearsim_db.worker.work_log import StateLog, WorkLog

_POLL_SECONDS = 0.1
_MAINTENANCE_SECONDS = 60.0
_NOTICE_SECONDS = 10.0
_DROP_SECONDS = 3.0
_SUMMARY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker works on: one collection, or all if it is None.

    Work of leases without a heartbeat for `silence_seconds` is released. Events older than `keep_events` are deleted:
    an age such as "7 days", "none" to keep all, or None to use the configured value.
    """

    collection: str | None = None
    silence_seconds: float = SILENCE_SECONDS
    keep_events: str | None = None


class Session:
    """Queued work, and the services that run beside it, each with its period."""

    def __init__(
        self,
        scope: Scope,
        lease: WorkerLease,
        listening: Connection,
        monitor: Monitor,
        keep_events_seconds: int | None,
    ) -> None:
        self._scope = scope
        self._lease = lease
        self._listening = listening
        self._monitor = monitor
        self._work_log = WorkLog(scope.contexts)
        self._queued = QueuedWork(scope, lease, monitor, self._work_log)
        self._builds = UnattendedBuilds(scope, monitor, self._queued.run_during_build)
        self._keep_events_seconds = keep_events_seconds
        self._lookups = LookupRequestService(scope.database, scope.collection)
        self._attached = AttachedTables(scope, monitor, lease.keep_alive)
        self._schedule = Schedule(self._services())

    def _services(self) -> list[Service]:
        scope, keep_alive = self._scope, self._lease.keep_alive
        state_log, attached = StateLog(scope), self._attached
        drop_lookups = partial(maintenance.drop_old_lookup_requests, scope.database)
        prune_events = partial(maintenance.prune_events, scope.engine, self._keep_events_seconds)
        analyze = partial(maintenance.analyze_tables, scope.engine)
        remove_expired = partial(maintenance.remove_expired_documents, scope, keep_alive)
        return [
            Service("heartbeat", HEARTBEAT_SECONDS, keep_alive),
            Service("lost leases", 1.0, self._lease.release_lost_work),
            Service("scope", 1.0, scope.refresh),
            Service("lookup requests", 1.0, self._lookups.check),
            Service("old lookup requests", _MAINTENANCE_SECONDS, drop_lookups),
            Service("old events", _MAINTENANCE_SECONDS, prune_events),
            Service("statistics", _MAINTENANCE_SECONDS, analyze),
            Service("unattended builds", 1.0, self._builds.run),
            Service("ready generations", 1.0, state_log.mark_ready),
            Service("builds left behind", _NOTICE_SECONDS, state_log.log_left_behind),
            Service("dropped generations", _DROP_SECONDS, partial(maintenance.drop_generations, scope)),
            Service("attached tables", 1.0, attached.sweep_due),
            Service("attachments", 1.0, attached.check_if_due),
            Service("unindexed collections", _NOTICE_SECONDS, state_log.log_unindexed),
            Service("retention", _MAINTENANCE_SECONDS, remove_expired),
            Service("summary", _SUMMARY_SECONDS, self._work_log.summarise),
        ]

    def run_once(self) -> bool:
        """Run the services that are due and one batch of each stage that has work; return whether any work was done."""
        self._schedule.run_due()
        done = self._queued.run(self._schedule.run_due)
        self._monitor.round_done()
        return done

    def wait(self) -> None:
        """Wait for a notification of work, at most until the next poll."""
        notify.await_notice(self._listening, _POLL_SECONDS)

    def has_work(self) -> bool:
        """Whether any process has work left, except what was set aside or cannot be done here."""
        scope = self._scope
        with scope.engine.connect() as connection:
            return backlog.has_remaining_work(
                connection, scope.collection_id, list(self.failures)
            ) or lookup_requests.is_any_waiting(connection, scope.collection)

    def read_backlog(self) -> Backlog:
        """Count the work in the queue; thread-safe."""
        with translate_errors(), self._scope.engine.connect() as connection:
            return backlog.read_backlog(connection, self._scope.collection_id, self.failures)

    def check_attached_tables(self) -> list[str]:
        """Return why attached tables are not followed, if so."""
        self._attached.check()
        return list(self._attached.problems.values())

    @property
    def failures(self) -> dict[GenerationId, NearsimError]:
        """Generations that this worker cannot work on or build, each with the error."""
        return self._scope.contexts.refused | self._builds.failed

    def close(self) -> None:
        """Finish the lookups in progress and end the lease, which frees its work; log the last summary."""
        self._work_log.summarise()
        self._lookups.stop()
        self._lease.close()


@contextmanager
def open_session(
    database: Database,
    options: WorkerOptions,
    monitor: Monitor,
    stopping: Callable[[], bool],
    lost_leases: list[int],
) -> Iterator[Session]:
    """Open a session for the block. The driver's errors leave it as those of `nearsim_db.errors`.

    `lost_leases` are those that earlier sessions of this process could not close.
    """
    engine = database.engine
    with (
        translate_errors(),
        ThreadPoolExecutor(database.settings.threads, thread_name_prefix="nearsim") as pool,
        engine.connect() as leasing,
        engine.connect(autocommit=True) as listening,
    ):
        notify.listen(listening)
        scope = Scope(database, options.collection, Contexts(database.settings, pool), stopping)
        keep_events_seconds = events.kept_seconds(options.keep_events or database.settings.keep_events)
        lease = WorkerLease(leasing, options.silence_seconds, lost_leases)
        session = Session(scope, lease, listening, monitor, keep_events_seconds)
        monitor.read_backlog = session.read_backlog
        try:
            yield session
        except BaseException:
            # A lost connection is the error to report, not that the lease could not be ended over it.
            with suppress(DatabaseError), translate_errors():
                session.close()
            raise
        else:
            session.close()
        finally:
            monitor.read_backlog = None
