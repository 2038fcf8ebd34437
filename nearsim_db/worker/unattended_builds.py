"""Builds that a worker leads because no other process does, and builds that it helps with.

A worker builds first generations (new, or left by a killed ingest) once their collections have documents. It also
builds replacements that were left to the workers on request. If another process builds a replacement for a live
generation and dies, a person must resume that build. While another process leads a build, a worker takes slices of it.
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
    """Builds the generations in a worker's scope. `between` is called periodically during a build."""

    def __init__(self, scope: WorkerScope, monitor: Monitor, between: Callable[[], None]) -> None:
        self.failed: dict[
            GenerationId, NearsimError
        ] = {}  # generations whose build failed and is tried again later
        self._retry_at: dict[GenerationId, float] = {}
        self._scope = scope
        self._monitor = monitor
        self._between = between

    def run(self) -> None:
        """Build each generation that is due and that nobody builds, and help with builds of other processes."""
        with self._scope.engine.connect() as connection:
            # A collection is built only once it has documents: usually most of them arrive together.
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
        """Take the remaining slices in the present stage of a build that another process leads."""
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
        """Build a generation, unless another process builds it, or still writes its documents: then return False."""
        if generation.is_first_build and is_being_swept(connection, generation.collection_id):
            return False

        if generation.is_first_build:
            lock, id = Lock.BUILD, int(generation.collection_id)
        else:
            lock, id = Lock.REINDEX, int(generation.generation_id)
        if not take_lock(connection, lock, id, wait=False):
            return False

        try:
            # Another worker may have built the generation since it was listed.
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
        """Log why the work on a build ends; record an error as the generation's failure."""
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
        """Report the progress of a long batch, and call `between`. Raises _BuildInterrupted if the worker stops."""
        self._monitor.batch_progressed(batch)
        self._between()
        if self._scope.stopping():
            raise _BuildInterrupted
