"""Build generations in the calling process, until they are ready to be promoted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from nearsim_db.admin.reindex.status import WorkRate
from nearsim_db.errors import BuildStoppedError, ConflictError
from nearsim_db.indexing.catch_up import CatchUp
from nearsim_db.indexing.context import ContextFactory
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.records import Progress
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.generations import generation_rows, generation_states
from nearsim_db.store.generations.generation_rows import Generation, State
from nearsim_db.store.generations.generation_states import MAINTAINED

# A process whose build was paused finishes its current batch before it releases the lock.
_PAUSED_PATIENCE_SECONDS = 10.0


class ForegroundBuild:
    """Builds generations, and lets them catch up with changes."""

    def __init__(self, database: Database, progress: Progress, warn: Callable[[str], None]) -> None:
        # The generation that is being built or, after an exception, the generation that was left behind.
        self.unfinished: Generation | None = None
        self._database = database
        self._progress = progress
        self._warn = warn

    def create(self, create: Callable[[Connection], Generation]) -> Generation:
        """Create a generation and build it until it is ready; it counts as attended as soon as it exists."""
        with translate_errors(), self._database.engine.connect() as connection:
            generation = create(connection)
            with self._build_lock(connection, generation, wait=False):
                return self._build_until_ready(generation)

    def resume(self, generation: Generation, prepare: Callable[[Connection], Generation]) -> Generation:
        """Build an existing generation until it is ready; `prepare` is called first, in a separate transaction.

        Raises ConflictError if another process builds the generation.
        """
        with (
            translate_errors(),
            self._database.engine.connect() as connection,
            self._build_lock(connection, generation, wait=generation.state == "paused"),
        ):
            with self._database.transaction() as preparing:
                prepared = prepare(preparing)
            return self._build_until_ready(prepared)

    def catch_up(self, generation: Generation) -> None:
        """Do the work that is queued for a generation now. Raises BuildStoppedError if it is paused or abandoned."""
        with translate_errors():
            dispatch_changes(self._database.engine)
            with self._catch_up(self._checking_state(generation)) as catch_up:
                catch_up.catch_up(generation)

    def _build_until_ready(self, generation: Generation) -> Generation:
        self.unfinished = generation
        if generation.state == "building":
            with self._catch_up(self._progress) as catch_up:
                catch_up.build(generation)
        self.catch_up(generation)

        # Another process may have paused or abandoned the generation in the meantime.
        with self._database.transaction() as connection:
            generation_states.lock_profile(connection, generation.profile_id)
            state = generation_states.read_state(connection, generation)
            if state == "catching_up":
                generation_states.make_ready(connection, generation)
            elif state not in MAINTAINED:
                raise _stopped(generation, state)
            ready = generation_rows.reread(connection, generation)
        self.unfinished = None
        return ready

    def _checking_state(self, generation: Generation) -> Progress:
        """Return a progress callback that raises BuildStoppedError if the generation is paused or abandoned."""
        rate = WorkRate()

        def report(step: str, done: int, total: int | None) -> None:
            with self._database.transaction() as connection:
                state = generation_states.read_state(connection, generation)
                if state not in MAINTAINED:
                    raise _stopped(generation, state)
                if (measured := rate.measure(step, done)) is not None:
                    generation_rows.add_figures(connection, generation, {"work_per_second": measured})
            self._progress(step, done, total)

        return report

    @contextmanager
    def _build_lock(self, connection: Connection, generation: Generation, *, wait: bool) -> Iterator[None]:
        """Keep a generation's build lock during the block. Raises ConflictError if another process has it."""
        id = generation.generation_id

        attempts = Retrying(
            retry=retry_if_result(lambda taken: not taken),
            stop=stop_after_delay(_PAUSED_PATIENCE_SECONDS if wait else 0.0),
            wait=wait_fixed(0.1),
            retry_error_callback=lambda state: False,
        )
        if not attempts(take_lock, connection, Lock.REINDEX, id, wait=False):
            raise ConflictError(
                f"generation {id} is being built by another process; see: {generation.advice('reindex status')}"
            )

        # The lock belongs to the session, so that no transaction stays open during the build.
        connection.commit()
        try:
            yield
        finally:
            release_lock(connection, Lock.REINDEX, id)
            connection.commit()

    @contextmanager
    def _catch_up(self, progress: Progress) -> Iterator[CatchUp]:
        with ContextFactory.open(self._database.settings, self._warn) as contexts:
            yield CatchUp(self._database, contexts, progress)


def _stopped(generation: Generation, state: State | None) -> BuildStoppedError:
    return BuildStoppedError(generation.generation_id, state, generation.advice("reindex resume"))
