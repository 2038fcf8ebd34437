"""Builds that a worker leads because no other process does, and builds that it helps with.

A worker builds first generations (new, or left by a killed ingest) once they have documents, and generations that were
left to the workers. If the process that builds a replacement for a live index dies, that build must be resumed
by hand. While another process
leads a build, a worker takes slices of it.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nearsim_db.errors import BuildStoppedError, NearsimError
from nearsim_db.indexing import build, build_plan, profiles
from nearsim_db.indexing.attached_sweep import is_being_swept
from nearsim_db.indexing.context import Context
from nearsim_db.records import GenerationId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import is_transient
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.generations import generation_rows, generation_states
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.worker.contexts import WorkerScope, describe, facts_of, log
from nearsim_db.worker.metrics import Monitor

_RETRY_SECONDS = 60.0
# The stage in metrics and health while this worker takes slices of a build that another process leads.
_SLICES_STAGE = "build_slices"


class _BuildInterrupted(Exception):
    """The worker was asked to stop during a build; the next build resumes it."""


class UnattendedBuilds:
    """Builds generations of a worker's scope.

    `failed` has the error of each generation whose build failed; it is tried again later. `between` is called
    periodically during a build.
    """

    def __init__(self, scope: WorkerScope, monitor: Monitor, between: Callable[[], None]) -> None:
        self.failed: dict[GenerationId, NearsimError] = {}
        self._retry_at: dict[GenerationId, float] = {}
        self._scope = scope
        self._monitor = monitor
        self._between = between

    def run(self) -> None:
        """Build each generation that is unattended and due, and help with those that others build."""
        with self._scope.engine.connect() as connection:
            # An empty collection waits for its documents: most arrive together, and are then built in bulk.
            buildable = generation_rows.list_generations(connection, self._scope.collection_id, "buildable")
        existing = {generation.generation_id for generation in buildable}
        self.failed = {id: error for id, error in self.failed.items() if id in existing}

        for generation in buildable:
            is_due = time.monotonic() >= self._retry_at.get(generation.generation_id, 0.0)
            is_ours = generation.is_first_build or generation.detached
            if is_due:
                with self._scope.engine.connect() as connection:
                    if not (is_ours and self._build_if_unlocked(connection, generation)):
                        self._join(connection, generation)

    def _join(self, connection: Connection, generation: Generation) -> None:
        """Take the slices that are left in the stage of a build that another process leads."""
        if generation.stage not in ("sign", "pairs") or not generation_states.is_attended(
            connection, generation
        ):
            return

        context = self._scope.contexts.find(connection, generation.generation_id)
        unfinished = generation.tables(connection).slices.read_progress(generation.stage).unfinished
        connection.commit()
        if context is not None and unfinished:
            with self._recorded(context), self._monitor.batch(_SLICES_STAGE):
                build.join(self._scope.engine, context, lambda: self._continue(_SLICES_STAGE))

    def _build_if_unlocked(self, connection: Connection, generation: Generation) -> bool:
        """Build a generation; return False if another process does, or still writes the documents of a first build."""
        if generation.is_first_build and is_being_swept(connection, generation.collection_id):
            return False

        if generation.is_first_build:
            lock, id = Lock.BUILD, int(generation.collection_id)
        else:
            lock, id = Lock.REINDEX, int(generation.generation_id)
        if not take_lock(connection, lock, id, wait=False):
            return False

        try:
            # Another worker may have built it since it was listed.
            context = None
            if generation_states.read_state(connection, generation) == "building":
                generation = build_plan.place(connection, generation)
                context = self._scope.contexts.find(connection, generation.generation_id)
            connection.commit()
            if context is not None:
                self._build(context)
        finally:
            release_lock(connection, lock, id)
            connection.commit()
        return True

    def _build(self, context: Context) -> None:
        generation = context.generation
        log(logging.INFO, "build", f"building {describe(generation)}", facts_of(generation))
        with self._recorded(context):
            if generation.is_first_build:
                with self._scope.engine.connect() as connection:
                    profiles.refuse_unusable(connection, generation.collection_id, generation.recipe)
            with self._monitor.batch("build"):
                build.build(self._scope.engine, context, lambda *step: self._continue("build"))
            log(logging.INFO, "build", f"built {describe(generation)}", facts_of(generation))

    @contextmanager
    def _recorded(self, context: Context) -> Iterator[None]:
        """Log what ends the work on a build; an error is recorded as its failure."""
        generation, name = context.generation, describe(context.generation)
        try:
            yield
        except BuildStoppedError as error:
            log(logging.INFO, "build", f"{name}: {error}", facts_of(generation))
        except _BuildInterrupted:
            message = f"the build of {name} was interrupted; the next build resumes it"
            log(logging.INFO, "build", message, facts_of(generation))
        except Exception as error:
            if is_transient(error):
                raise

            message = f"{name} cannot be built: {type(error).__name__}: {error}"
            self.failed[generation.generation_id] = NearsimError(message)
            self._retry_at[generation.generation_id] = time.monotonic() + _RETRY_SECONDS
            log(logging.ERROR, "build_failed", message, facts_of(generation))
        else:
            self.failed.pop(generation.generation_id, None)

    def _continue(self, batch: str) -> None:
        """Report progress of a long batch, and run what is due. Raises _BuildInterrupted if the worker is to stop."""
        self._monitor.batch_progressed(batch)
        self._between()
        if self._scope.stopping():
            raise _BuildInterrupted
