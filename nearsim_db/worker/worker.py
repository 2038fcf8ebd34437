"""The worker: it keeps indexes up to date with their documents until it is stopped, and survives lost connections.

A `Worker` opens a `Session` for each connection to the database. A session does queued work in rounds, and between
batches it runs the services that are due.
"""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial

from nearsim_db.errors import DatabaseError, NearsimError
from nearsim_db.records import GenerationId
from nearsim_db.search import events
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import cause_of_interruption, translate_errors
from nearsim_db.store.settings import from_environment
from nearsim_db.store.signatures import lookup_requests
from nearsim_db.store.work import backlog
from nearsim_db.store.work.backlog import Backlog
from nearsim_db.store.work.leases import SILENCE_SECONDS
from nearsim_db.worker import maintenance
from nearsim_db.worker.contexts import HEARTBEAT_SECONDS, Contexts, Schedule, WorkerLease, WorkerScope
from nearsim_db.worker.lookup_requests import LookupRequestService
from nearsim_db.worker.maintenance import AttachedTables, StateLog
from nearsim_db.worker.metrics import Monitor
from nearsim_db.worker.queued_work import QueuedWork, WorkLog
from nearsim_db.worker.unattended_builds import UnattendedBuilds

_POLL_SECONDS = 0.1
# The time from the end of a service's run to the start of its next run.
_SERVICE_SECONDS = 1.0
_DROP_SECONDS = 3.0
_NOTICE_SECONDS = 10.0
_MAINTENANCE_SECONDS = 60.0
_SUMMARY_SECONDS = 60.0
_GROWTH_SECONDS = 600.0
_EVENTS_PER_PRUNING = 100_000

_log = logging.getLogger("nearsim.worker")


class Session:
    """A worker's session: it does queued work, and runs the services, each with its period, in between."""

    def __init__(
        self,
        scope: WorkerScope,
        lease: WorkerLease,
        listening: Connection,
        monitor: Monitor,
        keep_events_seconds: int | None,
        *,
        lasts: bool,
    ) -> None:
        self._scope = scope
        self._lease = lease
        self._listening = listening
        self._monitor = monitor
        self._work_log = WorkLog()
        self._queued = QueuedWork(scope, lease, monitor, self._work_log)
        self._builds = UnattendedBuilds(scope, monitor, self._queued.run_during_build)
        self._keep_events_seconds = keep_events_seconds
        self._lookups = LookupRequestService(scope.database, scope.collection, lasts=lasts)
        self._attached = AttachedTables(scope, monitor, lease.keep_alive)
        self._schedule = Schedule(list(self._services()))

    def _services(self) -> Iterator[tuple[float, Callable[[], object]]]:
        """Yield the services with their periods, in the order in which they run."""
        scope, keep_alive, states = self._scope, self._lease.keep_alive, StateLog(self._scope)

        # First the services that all others rely on: they keep the lease valid and the contexts up to date.
        yield HEARTBEAT_SECONDS, keep_alive
        yield _SERVICE_SECONDS, self._lease.release_lost_work
        yield _SERVICE_SECONDS, scope.refresh
        yield _SERVICE_SECONDS, self._lookups.check

        yield _MAINTENANCE_SECONDS, partial(maintenance.drop_old_lookup_requests, scope)
        if (seconds := self._keep_events_seconds) is not None:
            yield _MAINTENANCE_SECONDS, partial(events.prune, scope.engine, seconds, _EVENTS_PER_PRUNING)
        yield _MAINTENANCE_SECONDS, partial(maintenance.analyze_tables, scope)

        yield _SERVICE_SECONDS, self._builds.run
        yield _SERVICE_SECONDS, states.mark_ready
        yield _NOTICE_SECONDS, states.log_left_behind
        yield _GROWTH_SECONDS, partial(maintenance.drop_remains, scope)
        yield _GROWTH_SECONDS, partial(maintenance.begin_moves, scope)
        yield _SERVICE_SECONDS, partial(maintenance.finish_moves, scope)
        yield _DROP_SECONDS, partial(maintenance.drop_generations, scope)

        yield _SERVICE_SECONDS, self._attached.sweep_due
        yield _SERVICE_SECONDS, self._attached.write_marks
        yield _SERVICE_SECONDS, self._attached.check_if_due
        yield _NOTICE_SECONDS, states.log_unindexed
        yield _MAINTENANCE_SECONDS, partial(maintenance.remove_expired_documents, scope, keep_alive)
        yield _SUMMARY_SECONDS, self._work_log.summarise

    def run_once(self) -> bool:
        """Run the services that are due and one batch of each stage that has work; return whether any work was done."""
        self._schedule.run_due()
        is_done = self._queued.run(self._schedule.run_due)
        if is_done:  # the work may have added documents to a collection that is not built yet
            self._builds.run()
        self._monitor.round_done()
        return is_done

    def wait(self) -> None:
        """Wait for a notification of work, at most until the next poll."""
        self._listening.await_notice(_POLL_SECONDS)

    def make_due(self) -> None:
        """Make the services that look for work every second run in the next round."""
        self._schedule.make_due(_SERVICE_SECONDS)

    def has_work(self) -> bool:
        """Whether any process has work left, apart from work that was set aside or that this worker cannot do."""
        scope = self._scope
        with scope.engine.connect() as connection:
            if backlog.has_remaining_work(
                connection, scope.collection_id, list(self.failures)
            ) or lookup_requests.is_any_waiting(connection, scope.collection):
                return True

        if maintenance.begin_moves(scope):
            return True
        maintenance.drop_generations(scope)
        return False

    def read_backlog(self) -> Backlog:
        """Count the work in the queue; thread-safe."""
        with translate_errors(), self._scope.engine.connect() as connection:
            return backlog.read_backlog(connection, self._scope.collection_id, self.failures)

    def write_marks(self) -> None:
        """Bring the mark columns of attached tables up to date."""
        self._attached.write_marks(at_once=True)

    def check_attached_tables(self) -> list[str]:
        """Return the reasons why attached tables are not followed; empty if all of them are."""
        self._attached.check()
        return list(self._attached.problems.values())

    @property
    def failures(self) -> dict[GenerationId, NearsimError]:
        """The generations that this worker cannot work on or cannot build, each with the error."""
        return self._scope.contexts.refused | self._builds.failed

    def close(self) -> None:
        """Log the last summary, finish the lookups in progress, and end the lease, which releases its work."""
        self._work_log.summarise()
        self._lookups.stop()
        self._lease.close()


class Worker:
    """Works on one collection, or on all; any number of workers may run, on any number of machines.

    `url` has the same meaning as in `Database.connect`. If a lease sends no heartbeat for `silence_seconds`, its work
    is released. Events older than `keep_events` are deleted: this is an age such as "7 days", "none" to keep all
    events, or None to use the configured value. The worker logs what it does to the logger `nearsim.worker`. Each log
    record has the attributes `event`, a name, and `facts`, a mapping.
    """

    def __init__(
        self,
        url: str | None = None,
        collection: str | None = None,
        *,
        monitor: Monitor | None = None,
        silence_seconds: float = SILENCE_SECONDS,
        keep_events: str | None = None,
    ) -> None:
        self.monitor: Monitor = monitor or Monitor()
        settings = from_environment()
        if url is None and settings.database_url is None:
            self.monitor.watch_disk("data", settings.home)
        self._url = url
        self._collection = collection
        self._silence_seconds = silence_seconds
        self._keep_events = keep_events
        self._stopping = False
        self._lost_leases: list[int] = []

    def stop(self) -> None:
        """Finish the current batch and end; safe to call from other threads and from signal handlers."""
        self._stopping = True

    def run(self) -> None:
        """Work until stopped. If the connection is lost, reconnect after increasing pauses."""
        reconnecting = events.Reconnecting(_log, lambda: self._stopping, self._record_lost)
        for attempt in reconnecting.attempts():
            with attempt:
                self._run_session(partial(reconnecting.succeeded, attempt))

    def drain(self) -> int:
        """Work until this and other processes have emptied the queue; return how many documents are set aside.

        Raises DatabaseError if the connection is lost, NearsimError if an attached table is not followed, and the error
        of a generation that this worker cannot work on.
        """
        with self._session(lasts=False) as session:
            is_changed = False
            while not self._stopping:
                if session.run_once():
                    is_changed = True
                    continue
                if not session.has_work():
                    break
                session.wait()
                if is_changed:  # a service may have to do the remaining work
                    session.make_due()
                    is_changed = False

            session.write_marks()
            for error in session.failures.values():
                raise error
            if problems := session.check_attached_tables():
                raise NearsimError("; ".join(problems))
            return session.read_backlog().set_aside

    def _run_session(self, succeeded: Callable[[], None]) -> None:
        if self._stopping:
            return
        with self._session(lasts=True) as session:
            while not self._stopping:
                is_done = session.run_once()
                succeeded()
                if not is_done:
                    session.wait()

    @contextmanager
    def _session(self, *, lasts: bool) -> Iterator[Session]:
        """Open a session for the block; `lasts` says that the session continues when there is no work.

        Errors of the database driver are raised as errors of `nearsim_db.errors`.
        """
        with (
            Database.connect(self._url) as database,
            translate_errors(),
            ThreadPoolExecutor(database.settings.threads, thread_name_prefix="nearsim") as pool,
            database.engine.connect() as leasing,
            database.engine.connect(autocommit=True) as listening,
        ):
            listening.listen()
            contexts = Contexts(database.settings, pool)
            scope = WorkerScope(database, self._collection, contexts, lambda: self._stopping)
            if self._keep_events is None:
                keep_events_seconds = events.kept_seconds(
                    database.settings.keep_events, "NEARSIM_KEEP_EVENTS"
                )
            else:
                keep_events_seconds = events.kept_seconds(self._keep_events, "keep_events")

            lease = WorkerLease(leasing, self._silence_seconds, self._lost_leases)
            session = Session(scope, lease, listening, self.monitor, keep_events_seconds, lasts=lasts)
            self.monitor.session_began(session.read_backlog)
            try:
                yield session
            except BaseException:
                # Report the first error only: if the connection was lost, ending the lease fails too.
                with suppress(DatabaseError), translate_errors():
                    session.close()
                raise
            else:
                session.close()
            finally:
                self.monitor.session_ended()

    def _record_lost(self, failure: BaseException | None) -> None:
        self.monitor.database_lost(str(failure), cause_of_interruption(failure))
