"""A shift: a worker at work, from the moment it has the database until it stops or loses it."""

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from nearsim_db.errors import DatabaseError, NearsimError, NotFoundError, count_of, suggested_command
from nearsim_db.indexing import attached_table, drop_generation, promotion_events, retention, work_queue
from nearsim_db.indexing.context import Context, Contexts
from nearsim_db.records import CollectionId, GenerationId, Notable, Tell
from nearsim_db.search import events
from nearsim_db.store import catalog, generations, lookup_requests, partitions
from nearsim_db.store.attached import attachments
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, notify
from nearsim_db.store.driver.engine import translated
from nearsim_db.store.driver.locks import Lock, give_lock_back
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work import backlog, leases, queue
from nearsim_db.store.work.backlog import Backlog
from nearsim_db.store.work.queue import Stage
from nearsim_db.worker.lookup_requests import Prober
from nearsim_db.worker.metrics import Monitor
from nearsim_db.worker.unattended_builds import Orphans

_POLL_SECONDS = 0.1
_SWEEP_SECONDS = 60.0
_LOOK_SECONDS = 10.0
_DROP_SECONDS = 3.0
_EVENTS_AT_ONCE = 100_000


@dataclass(slots=True)
class Duty:
    """Something to be done besides the work, every so many seconds."""

    period_seconds: float
    do: Callable[[], None]
    due_at: float = 0.0


class Shift:
    """One worker with the database. Work is taken under its lease, which others can see, and which it renews."""

    def __init__(
        self,
        database: Database,
        pool: ThreadPoolExecutor,
        connections: tuple[Connection, Connection],
        collection: str | None,
        tell: Tell,
        monitor: Monitor,
        stopping: Callable[[], bool],
        silence_seconds: float,
        keep_events: str,
    ) -> None:
        self._engine = database.engine
        self._events_age_seconds = events.kept_seconds(keep_events)
        self._holding, self._listening = connections
        self._collection = collection
        self._collection_id: CollectionId | None = None
        self._tell = tell
        self._monitor = monitor
        self._stopping = stopping
        self._silence_seconds = silence_seconds
        self._contexts = Contexts(database.settings, pool, tell)
        self._told_of: set[CollectionId] = set()
        self._troubled: set[tuple[str, str]] = set()
        self._told_left: set[GenerationId] = set()
        self.lease_id = self._open_lease()
        heartbeat = Duty(1.0, self._beat)
        self._orphans = Orphans(
            self._engine, self._contexts, tell, monitor, stopping, lambda: self._go_on([heartbeat])
        )
        self._duties = [
            heartbeat,
            Duty(1.0, self._free_lost_work),
            Duty(1.0, self._refresh),
            Duty(1.0, lambda: self._prober.check()),
            Duty(_SWEEP_SECONDS, self._drop_old_probes),
            Duty(_SWEEP_SECONDS, self._prune_events),
            Duty(_SWEEP_SECONDS, self._analyze_outgrown),
            Duty(1.0, lambda: self._orphans.build(self._collection_id)),
            Duty(1.0, self._mark_ready),
            Duty(_LOOK_SECONDS, self._tell_of_left_behind),
            Duty(_DROP_SECONDS, self._drop_left),
            Duty(1.0, lambda: self._sweep_sources(lambda: _see_to([heartbeat]))),
            Duty(_LOOK_SECONDS, self._tell_of_unindexed),
            Duty(_SWEEP_SECONDS, lambda: self._sweep(lambda: _see_to([heartbeat]))),
        ]
        self._prober = Prober(database, collection)

    def round(self) -> bool:
        """Do what is due, dispatch, and take a batch of every stage of every generation that has work; whether any."""
        self.attend()
        done = self._follow(self.attend)
        self._monitor.round_done()
        return done

    def _go_on(self, duties: list[Duty]) -> None:
        """Between two batches of a build: what is built already goes on following its documents."""
        _see_to(duties)
        self._follow(lambda: _see_to(duties))

    def _follow(self, between: Callable[[], None]) -> bool:
        done = work_queue.dispatch(self._engine) > 0
        with self._engine.connect() as connection:
            found = queue.find_work(connection, self._collection_id)
            contexts = [(id, self._contexts.find(connection, id), stage) for id, stage in found]
        for id, context, stage in contexts:
            if context is not None and not self._stopping():
                done |= self._work(context, stage) > 0
                between()
            elif stage == "tell" and not self._stopping():
                done |= promotion_events.tell_once(self._engine, Leaves(id), self.lease_id) > 0
                between()
        return done

    def attend(self) -> None:
        """See to the duties that are due."""
        _see_to(self._duties)

    def rest(self) -> None:
        """Wait until somebody says that there is something to do, or until it is time to look."""
        notify.await_notice(self._listening, _POLL_SECONDS)

    def is_anything_left(self) -> bool:
        """Whether anything is still to be done by anyone, but what was set aside or cannot be done here."""
        with self._engine.connect() as connection:
            return backlog.is_anything_left(
                connection, self._collection_id, list(self.troubles)
            ) or lookup_requests.is_any_waiting(connection, self._collection)

    def read_backlog(self) -> Backlog:
        """What waits now; any thread may ask."""
        with translated(), self._engine.connect() as connection:
            return backlog.read_backlog(connection, self._collection_id, self.troubles)

    @property
    def troubles(self) -> dict[GenerationId, NearsimError]:
        """Generations that cannot be worked on or built here, each with the reason."""
        return self._contexts.refused | self._orphans.failed

    def end(self) -> None:
        """Give the lease back; what it still had is free at once."""
        self._prober.end()
        leases.close_lease(self._holding, self.lease_id)
        self._holding.commit()

    def _work(self, context: Context, stage: Stage) -> int:
        before = context.tally.copy()
        heard: list[Notable] = []
        with self._monitor.batch(stage), self._contexts.telling(heard.append):
            taken = work_queue.work_once(self._engine, context, stage, self.lease_id)
        came = context.tally - before
        self._monitor.count(stage, taken, came)
        if came["set aside"]:
            # What was heard says that, and of which error; both are told as one.
            message = "; ".join([*(one.message for one in heard), "see: nearsim work list --failed"])
            facts = {"stage": stage, "documents": came["set aside"]}
            heard = [Notable("set_aside", message, "error", self._contexts.facts(context.generation) | facts)]
        for notable in heard:
            self._tell(notable)
        return taken

    def _open_lease(self) -> int:
        lease_id = leases.open_lease(self._holding, f"{socket.gethostname()}:{os.getpid()}")
        self._holding.commit()
        return lease_id

    def _beat(self) -> None:
        alive = leases.beat(self._holding, self.lease_id)
        self._holding.commit()
        if not alive:
            give_lock_back(self._holding, Lock.WORKER, self.lease_id)
            self.lease_id = self._open_lease()
            message = "others took this worker for dead and took its work over; it begins anew"
            self._tell(Notable("lease_lost", message, "warning"))

    def _free_lost_work(self) -> None:
        freed = leases.free_lost_work(self._holding, self._silence_seconds)
        self._holding.commit()
        if freed:
            had, are = ("that a lost worker had", "is") if freed == 1 else ("that lost workers had", "are")
            message = f"{count_of(freed, 'document')} {had} {are} free again"
            self._tell(Notable("freed", message, "warning", {"documents": freed}))

    def _drop_old_probes(self) -> None:
        lookup_requests.drop_old(self._holding)
        self._holding.commit()

    def _prune_events(self) -> None:
        if self._events_age_seconds is not None:
            events.prune(self._engine, self._events_age_seconds, _EVENTS_AT_ONCE)

    def _analyze_outgrown(self) -> None:
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            partitions.analyze_outgrown(connection)

    def _refresh(self) -> None:
        with self._engine.connect() as connection:
            if self._collection is not None:
                self._collection_id = catalog.get_collection(connection, self._collection).collection_id
            self._contexts.refresh(connection)

    def _mark_ready(self) -> None:
        with self._engine.connect() as connection:
            ready = generations.mark_ready(connection)
            connection.commit()
            found = [self._contexts.find(connection, one) for one in ready]
        for one in [context.generation for context in found if context is not None]:
            compare, promote = one.advice("reindex diff"), one.advice("reindex promote")
            told = f"{self._contexts.shown(one)} has caught up; compare: {compare}; then: {promote}"
            self._tell(Notable("ready", told, facts=self._contexts.facts(one)))

    def _tell_of_left_behind(self) -> None:
        with self._engine.connect() as connection:
            left = generations.find_left(connection, self._collection_id)
        for one in left:
            if one.generation_id not in self._told_left:
                facts = {"profile": one.profile, "generation": one.generation_id}
                told = (
                    f"generation {one.generation_id} of profile {one.profile} of collection {one.collection} was left "
                    "behind by who built it"
                )
                choice = f"to go on: {one.advice('reindex resume')}; to give it up: {one.advice('reindex abandon')}"
                self._tell(Notable("left_behind", f"{told}; {choice}", "warning", facts))
        self._told_left = {one.generation_id for one in left}

    def _drop_left(self) -> None:
        """Drop what others could not, because somebody read it."""
        with self._engine.connect() as connection:
            there = catalog.list_generations(connection, self._collection_id)
        for generation in [one for one in there if one.dropping]:
            if drop_generation.finish(self._engine, generation, patience_seconds=0.0).finished:
                facts = {"profile": generation.profile, "generation": generation.generation_id}
                told = f"dropped generation {generation.generation_id} of profile {generation.profile}"
                self._tell(Notable("dropped", told, facts=facts))

    def _tell_of_unindexed(self) -> None:
        with self._engine.connect() as connection:
            found = catalog.list_unindexed(connection)
        for one in found:
            mine = self._collection_id in (None, one.collection_id)
            if mine and one.collection_id not in self._told_of:
                self._told_of.add(one.collection_id)
                build = suggested_command("build", one.name)
                message = f"collection {one.name} has documents and no profile: {build} makes one"
                self._tell(Notable("no_profile", message, "warning", {"collection": one.name}))

    def _sweep_sources(self, meanwhile: Callable[[], None]) -> None:
        """Sweep the tables that collections follow, as they are due, and tell of those that cannot be followed."""
        with self._engine.connect() as connection:
            due = attachments.find_due_sweeps(connection, self._collection_id)
        for collection_id in due:
            # What is wrong with a table is written down there, for all workers to tell of.
            with suppress(NotFoundError):
                attached_table.sweep(
                    self._engine, collection_id, wait=False, meanwhile=meanwhile, stopping=self._stopping
                )
        with self._engine.connect() as connection:
            there = attachments.list_attachments(connection, self._collection_id)
        troubled = {(one.collection, one.problem) for one in there if one.problem is not None}
        for collection, trouble in sorted(troubled - self._troubled):
            self._tell(Notable("not_followed", trouble, "error", {"collection": collection}))
        self._troubled = troubled

    def _sweep(self, meanwhile: Callable[[], None]) -> None:
        with self._engine.connect() as connection:
            lasting = {one.collection_id for one in catalog.list_collections(connection)}
            there = catalog.list_generations(connection, self._collection_id)
            found = [
                self._contexts.find(connection, one.generation_id)
                for one in there
                if one.collection_id in lasting
            ]
        for context in found:
            if context is not None and not self._stopping():
                retention.sweep(self._engine, context, meanwhile)


@contextmanager
def begin(
    database: Database,
    collection: str | None,
    tell: Tell,
    monitor: Monitor,
    stopping: Callable[[], bool],
    silence_seconds: float = leases.SILENCE_SECONDS,
    keep_events: str | None = None,
) -> Iterator[Shift]:
    """Begin a shift, which ends with the block; errors of the database leave it as ours."""
    engine = database.engine
    kept = keep_events or database.settings.keep_events
    autocommit = {"isolation_level": "AUTOCOMMIT"}
    with (
        translated(),
        ThreadPoolExecutor(database.settings.threads, thread_name_prefix="nearsim") as pool,
        engine.connect() as holding,
        engine.connect().execution_options(**autocommit) as listening,
    ):
        notify.listen(listening)
        connections = (holding, listening)
        shift = Shift(database, pool, connections, collection, tell, monitor, stopping, silence_seconds, kept)
        monitor.read_backlog = shift.read_backlog
        try:
            yield shift
        except BaseException:
            # Where the database was lost, that is worth more than that the lease cannot be given back.
            with suppress(DatabaseError), translated():
                shift.end()
            raise
        else:
            shift.end()
        finally:
            monitor.read_backlog = None


def _see_to(duties: Iterable[Duty]) -> None:
    for duty in duties:
        if time.monotonic() >= duty.due_at:
            duty.do()
            duty.due_at = time.monotonic() + duty.period_seconds
