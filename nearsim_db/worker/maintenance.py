"""Services of a worker that keep tables small, sweep attached tables, and log states that need a person's attention."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.indexing import attached_marks, attached_sweep, drop_generation, retention
from nearsim_db.indexing.context import Context
from nearsim_db.messages import suggested_command
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import attachments, mark_columns, obstacles
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import is_lock_timeout
from nearsim_db.store.generations import generation_rows, generation_states, partitions
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.signatures import insertions, lookup_requests
from nearsim_db.worker.contexts import WorkerScope, describe, facts_of, log
from nearsim_db.worker.metrics import Monitor

# After a check, pause for this many times its duration, so that checks of many tables take a twentieth of the time.
_PAUSE_PER_CHECK = 20.0


def drop_old_lookup_requests(scope: WorkerScope) -> None:
    """Delete lookup requests whose deadline passed an hour ago, and recorded insertions that checks no longer need."""
    with scope.database.transaction() as connection:
        lookup_requests.drop_old(connection)
        insertions.drop_settled(connection)


def analyze_tables(scope: WorkerScope) -> None:
    """Update the planner's statistics once the tables of generations have doubled."""
    with scope.engine.connect(autocommit=True) as connection:
        partitions.analyze_if_stale(connection)


def drop_generations(scope: WorkerScope) -> None:
    """Drop generations that were in use when their drop was requested."""
    with scope.engine.connect() as connection:
        leaving = generation_rows.list_generations(connection, scope.collection_id, "dropping")
    for generation in leaving:
        if drop_generation.finish(scope.engine, generation, patience_seconds=0.0).finished:
            message = f"dropped generation {generation.generation_id} of profile {generation.profile}"
            facts = {"profile": generation.profile, "generation": generation.generation_id}
            log(logging.INFO, "dropped", message, facts)


def drop_remains(scope: WorkerScope) -> None:
    """Drop the remains of generations that were deleted in SQL."""
    for generation_id in drop_generation.drop_remains(scope.engine):
        message = f"dropped the remains of generation {generation_id}, which was deleted in SQL"
        log(logging.INFO, "dropped", message, {"generation": generation_id})


def begin_moves(scope: WorkerScope) -> bool:
    """Begin to rebuild live generations that have outgrown their shared tables, in tables of their own.

    Returns whether any rebuild was begun.
    """
    with scope.engine.connect() as connection:
        grown = [scope.contexts.find(connection, id) for id in generation_rows.list_grown(connection)]

    has_begun = False
    for context in grown:
        if context is not None and scope.includes(context.collection_id):
            with scope.database.transaction() as connection:
                has_begun |= _begin_move(connection, context)
    return has_begun


def _begin_move(connection: Connection, context: Context) -> bool:
    live = context.generation
    # Another worker or a person may have begun to replace the generation since.
    generation_states.lock_profile(connection, live.profile_id)
    states = {
        generation.generation_id: generation.state
        for generation in generation_rows.list_generations(connection, live.collection_id)
        if generation.profile_id == live.profile_id
    }
    if states.get(live.generation_id) != "live" or {*states.values()} & {*generation_states.PENDING}:
        return False

    moving = generation_rows.create_generation(
        connection, live.profile_id, context.encoder.profile, live.generation_id, detached=True
    )
    generation_rows.add_figures(connection, moving, {"moves": True})
    message = f"{describe(live)} has grown: it is rebuilt in tables of its own"
    log(logging.INFO, "moves", message, facts_of(moving))
    return True


def finish_moves(scope: WorkerScope) -> None:
    """Promote the ready generations that `begin_moves` began, and drop the generations that they replace.

    If a rollback or promotion came first, so that another generation would be replaced, the new generation is dropped.
    """
    with scope.engine.connect() as connection:
        ready = generation_rows.list_generations(connection, scope.collection_id, "moving")
    for moved in ready:
        try:
            with scope.database.transaction() as connection:
                is_moved = _finish_move(connection, moved)
        except Exception as error:
            if not (is_lock_timeout(error) or isinstance(error, ConflictError)):
                raise
            continue  # the next run tries again, unless the generation was stopped
        message = f"{describe(moved)} {'has tables of its own now' if is_moved else 'is no longer needed'}"
        log(logging.INFO, "moved", message, facts_of(moved))


def _finish_move(connection: Connection, moved: Generation) -> bool:
    former = generation_states.promote(connection, moved, ["ready"])
    if former is None or former != moved.replaces:
        connection.rollback()
        generation_states.abandon(connection, moved, ["ready"], drop=True)
        return False
    retired = generation_rows.get_generation(connection, former)
    generation_states.abandon(connection, retired, ["retired"], drop=True)
    return True


def remove_expired_documents(scope: WorkerScope, between: Callable[[], None]) -> None:
    """Queue documents past their retention age for removal from all indexes; `between` is called after each step."""
    with scope.engine.connect() as connection:
        existing = generation_rows.list_generations(connection, scope.collection_id, "expiring")
        contexts = [scope.contexts.find(connection, generation.generation_id) for generation in existing]
    for context in contexts:
        if context is not None and not scope.stopping():
            retention.expire_documents(scope.engine, context, between)


class AttachedTables:
    """Sweeps attached tables and writes their mark columns when due, and logs each problem once while it lasts.

    `between` is called after each slice of a sweep.
    """

    def __init__(self, scope: WorkerScope, monitor: Monitor, between: Callable[[], None]) -> None:
        self.problems: dict[str, str] = {}  # the problems that the last check found, by collection
        self._scope = scope
        self._monitor = monitor
        self._between = between
        self._check_at = 0.0
        self._mark_troubles: dict[CollectionId, str | None] = {}

    def sweep_due(self) -> None:
        """Sweep the tables whose sweep is due."""
        scope = self._scope
        with scope.engine.connect() as connection:
            due = attachments.find_due_sweeps(connection, scope.collection_id)
        for collection_id in due:
            with scope.engine.connect() as connection:
                # Look again: the sweep of a parent, which includes its values' collections, may have come first.
                is_due = bool(attachments.find_due_sweeps(connection, collection_id))
            # If the table is missing, the sweep has recorded it, and the check below logs it.
            with suppress(NotFoundError):
                if not is_due:
                    continue
                attached_sweep.sweep(
                    scope.engine, collection_id, wait=False, meanwhile=self._between, stopping=scope.stopping
                )

    def write_marks(self, *, at_once: bool = False) -> None:
        """Write the mark columns that are due, all of them with `at_once`, and log each new reason for a failure."""
        scope = self._scope
        with scope.engine.connect() as connection:
            due = mark_columns.find_due_marks(connection, scope.collection_id, at_once=at_once)
        for collection_id in due:
            trouble = attached_marks.write_marks(scope.engine, collection_id, self._between, scope.stopping)
            if trouble is not None and trouble != self._mark_troubles.get(collection_id):
                log(logging.ERROR, "not_marked", trouble, {"collection_id": collection_id})
            self._mark_troubles[collection_id] = trouble

    def check_if_due(self) -> None:
        """Check the tables, unless the last check took long and was recent."""
        if time.monotonic() >= self._check_at:
            began = time.monotonic()
            self.check()
            self._check_at = time.monotonic() + _PAUSE_PER_CHECK * (time.monotonic() - began)

    def check(self) -> None:
        """Log tables that are not followed, and record the reasons for users who lack the rights to find them."""
        scope = self._scope
        with scope.engine.connect() as connection:
            problems = obstacles.list_problems(connection, scope.collection_id)
            attached = attachments.list_attachments(connection, scope.collection_id) if problems else ()
            for attachment in attached:
                if attachment.collection in problems and attachment.trouble is None:
                    trouble = problems[attachment.collection]
                    attachments.record_trouble(connection, attachment.collection_id, trouble)
            connection.commit()

        for collection, problem in sorted(problems.items() - self.problems.items()):
            log(logging.ERROR, "not_followed", problem, {"collection": collection})
        self.problems = problems
        self._monitor.record_not_followed(list(problems.values()))


class StateLog:
    """Logs each state once, when it is first seen."""

    def __init__(self, scope: WorkerScope) -> None:
        self._scope = scope
        self._unindexed: set[CollectionId] = set()
        self._left_behind: set[GenerationId] = set()

    def mark_ready(self) -> None:
        """Mark generations that have caught up as ready to be promoted, and log them."""
        with self._scope.engine.connect() as connection:
            ready = generation_states.mark_ready(connection)
            connection.commit()
            contexts = [self._scope.contexts.find(connection, generation_id) for generation_id in ready]

        for context in contexts:
            # A generation that moves to its own tables is promoted automatically.
            if context is None or "moves" in context.generation.figures:
                continue
            generation = context.generation
            compare, promote = generation.advice("reindex diff"), generation.advice("reindex promote")
            message = f"{describe(generation)} has caught up; compare: {compare}; then: {promote}"
            log(logging.INFO, "ready", message, facts_of(generation))

    def log_left_behind(self) -> None:
        """Log builds of replacements for live generations whose process died."""
        with self._scope.engine.connect() as connection:
            left = generation_states.find_unattended(connection, self._scope.collection_id)

        for generation in left:
            if generation.generation_id in self._left_behind:
                continue
            remedy = generation_states.remedy(generation, attended=False)
            message = (
                f"the build of generation {generation.generation_id} of profile {generation.profile} of collection "
                f"{generation.collection} was left behind: its process ended; {remedy}"
            )
            facts = {"profile": generation.profile, "generation": generation.generation_id}
            log(logging.WARNING, "left_behind", message, facts)
        self._left_behind = {generation.generation_id for generation in left}

    def log_unindexed(self) -> None:
        """Log collections that have documents but no profile."""
        with self._scope.engine.connect() as connection:
            unindexed = collection_rows.list_unindexed(connection)

        for collection in unindexed:
            collection_id, name = collection.collection_id, collection.name
            if self._scope.includes(collection_id) and collection_id not in self._unindexed:
                self._unindexed.add(collection_id)
                build = suggested_command("build", name)
                message = f"collection {name} has documents but no profile; create one: {build}"
                log(logging.WARNING, "no_profile", message, {"collection": name})
