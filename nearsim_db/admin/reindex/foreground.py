"""The build of a generation in this process, until it is ready to be promoted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from nearsim_db.admin.reindex.estimate import Pace
from nearsim_db.errors import BuildStoppedError, ConflictError
from nearsim_db.indexing import promotion_events
from nearsim_db.indexing.catch_up import CatchUp
from nearsim_db.indexing.context import ContextFactory
from nearsim_db.indexing.dispatch import dispatch_changes
from nearsim_db.records import GenerationId, Progress
from nearsim_db.store import catalog, generations
from nearsim_db.store.catalog import Generation, State
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import translated
from nearsim_db.store.driver.locks import Lock, give_lock_back, take_lock
from nearsim_db.store.generations import WORKABLE

_PATIENCE_SECONDS = 10.0  # for who was told to pause, and ends with the batch at hand


class Foreground:
    """Builds generations and lets them catch up, in the process that asks.

    `left` is the one that is at hand: where an exception ended the work, it is left behind.
    """

    def __init__(self, database: Database, progress: Progress, warn: Callable[[str], None]) -> None:
        self.left: Generation | None = None
        self._database = database
        self._progress = progress
        self._warn = warn

    def begin(self, make: Callable[[Connection], Generation]) -> Generation:
        """Make a generation and bring it to ready; nobody ever sees it unattended."""
        with translated(), self._database.engine.connect() as connection:
            generation = make(connection)
            with self._alone(connection, generation, wait=False):
                return self._bring_to_ready(generation)

    def resume(self, generation: Generation, prepare: Callable[[Connection], Generation]) -> Generation:
        """Bring to ready what was begun before, after it was prepared, as the only one who does."""
        with (
            translated(),
            self._database.engine.connect() as connection,
            self._alone(connection, generation, wait=generation.state == "paused"),
        ):
            with self._database.transaction() as preparing:
                prepared = prepare(preparing)
            return self._bring_to_ready(prepared)

    def catch_up(self, generation: Generation) -> None:
        """Do what was queued for a generation until now. Raises BuildStoppedError where others stop that."""
        with translated():
            dispatch_changes(self._database.engine)
            with self._catch_up(self._watched(generation)) as catch_up:
                catch_up.catch_up(generation)

    def tell(self, generation: Generation) -> None:
        """Tell of a generation that was promoted; what is left when this ends early is left to workers."""
        with translated(), self._database.lease() as lease_id:
            promotion_events.publish_all(self._database.engine, generation.leaves, lease_id, self._progress)

    def _bring_to_ready(self, generation: Generation) -> Generation:
        self.left = generation
        if generation.state == "building":
            with self._catch_up(self._progress) as catch_up:
                catch_up.build(generation)
        self.catch_up(generation)
        with self._database.transaction() as connection:
            generations.hold(connection, generation.profile_id)
            state = generations.read_state(connection, generation)
            if state == "catching_up":
                generations.make_ready(connection, generation)
            elif state not in WORKABLE:
                raise _stopped(generation, state)
            ready = catalog.reread(connection, generation)
        self.left = None
        return ready

    def _watched(self, generation: Generation) -> Progress:
        """The progress of catching up, which ends when somebody pauses or abandons the generation."""
        pace = Pace()

        def tell(step: str, done: int, total: int | None) -> None:
            with self._database.transaction() as connection:
                state = generations.read_state(connection, generation)
                if state not in WORKABLE:
                    raise _stopped(generation, state)
                if (measured := pace.after(step, done)) is not None:
                    catalog.add_figures(connection, generation, {"work_per_second": measured})
            self._progress(step, done, total)

        return tell

    @contextmanager
    def _alone(self, connection: Connection, generation: Generation, *, wait: bool) -> Iterator[None]:
        """Be the only one who builds a generation. Raises ConflictError where somebody does."""
        id = generation.generation_id
        if not self._take(connection, id, _PATIENCE_SECONDS if wait else 0.0):
            raise ConflictError(
                f"generation {id} is being built by another process; see: {generation.advice('reindex status')}"
            )
        connection.commit()
        try:
            yield
        finally:
            give_lock_back(connection, Lock.REINDEX, id)
            connection.commit()

    def _take(self, connection: Connection, id: GenerationId, patience_seconds: float) -> bool:
        attempts = Retrying(
            retry=retry_if_result(lambda taken: not taken),
            stop=stop_after_delay(patience_seconds),
            wait=wait_fixed(0.1),
            retry_error_callback=lambda state: False,
        )
        return bool(attempts(take_lock, connection, Lock.REINDEX, id, wait=False))

    @contextmanager
    def _catch_up(self, progress: Progress) -> Iterator[CatchUp]:
        with ContextFactory.open(self._database.settings, self._warn) as contexts:
            yield CatchUp(self._database, contexts, progress)


def _stopped(generation: Generation, state: State | None) -> BuildStoppedError:
    return BuildStoppedError(generation.generation_id, state, generation.advice("reindex resume"))
