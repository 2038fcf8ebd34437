"""Reindexing one profile: begun, built, compared, promoted, taken back, dropped."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from sqlalchemy import Connection

from nearsim_db import dropping, pitfalls, profiles, rounds
from nearsim_db.database import Database
from nearsim_db.encode import Encoder
from nearsim_db.errors import ConflictError, FingerprintError, RecipeError
from nearsim_db.profile import resolve, restore
from nearsim_db.progress import Progress, silent
from nearsim_db.recipe import Recipe, from_mapping, override
from nearsim_db.records import GenerationId
from nearsim_db.reindex import choosing, turns
from nearsim_db.reindex.status import Status, read_status
from nearsim_db.steps import Context
from nearsim_db.store import catalog, generations
from nearsim_db.store.catalog import Generation, State
from nearsim_db.store.engine import translated
from nearsim_db.store.locks import Lock, give_lock_back, take_lock
from nearsim_db.upkeep import Upkeep


class Reindex:
    """What can be done to the generations of one profile; the live one answers all the while.

    `profile` may be left out where the collection has one, or a default. `warn` takes what is worth knowing.
    """

    def __init__(
        self,
        database: Database,
        collection: str,
        profile: str | None = None,
        progress: Progress = silent,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.database = database
        self.collection = collection
        self.profile = profile
        self._progress = progress
        self._warn = warn

    def start(
        self, recipe: Recipe | None = None, settings: list[str] | None = None, *, detached: bool = False
    ) -> Generation:
        """Begin a generation beside the live one; unless `detached`, build it until it is ready.

        Its recipe is that of the live one if none is given, with `settings` ("match.threshold=0.7") applied. Raises
        ConflictError where another is coming already, or nothing is live yet.
        """
        with self.database.transaction() as connection:
            there = self._generations(connection)
            replaced = choosing.live(there)
            left = [one for one in there if one.state in generations.COMING]
            if left:
                raise ConflictError(
                    f"generation {left[0].generation_id} of profile {left[0].profile!r} is {left[0].state}: "
                    "see nearsim reindex status, then resume, promote or abandon it"
                )
            wanted = recipe or from_mapping(replaced.recipe)
            profile = resolve(override(wanted, settings) if settings else wanted)
            for message in pitfalls.of_profile(profile):
                self._warn(message)
            # Committed before its first document is read: what is written from now on is queued for it.
            begun = catalog.create_generation(
                connection,
                replaced.profile_id,
                profiles.describe_build(profile),
                replaced.generation_id,
                detached=detached,
            )
        return begun if detached else self._bring_to_ready(begun)

    def resume(self, *, detached: bool = False) -> Generation:
        """Go on with what was paused, or was left by a process that is gone, from the stage at which it was."""
        with self.database.transaction() as connection:
            chosen = choosing.coming(self._generations(connection))
            if chosen.state == "paused":
                state: State = "catching_up" if chosen.stage == "done" else "building"
                generations.move(connection, chosen, state, ["paused"])
            generations.set_detached(connection, chosen, detached)
            chosen = catalog.reread(connection, chosen)
        return chosen if detached or chosen.state == "ready" else self._bring_to_ready(chosen)

    def pause(self) -> Generation:
        """Stop the build at its next step, or the catching up; what is written meanwhile is queued."""
        with self.database.transaction() as connection:
            chosen = choosing.coming(self._generations(connection))
            generations.move(connection, chosen, "paused", ["building", "catching_up", "ready"])
            return catalog.reread(connection, chosen)

    def abandon(self) -> Generation:
        """Give up what is being built; its tables stay until it is dropped."""
        with self.database.transaction() as connection:
            chosen = choosing.coming(self._generations(connection))
            generations.give_up(connection, chosen, generations.COMING, drop=False)
            return catalog.reread(connection, chosen)

    def promote(self, generation_id: int | None = None) -> tuple[Generation, GenerationId | None]:
        """Let the ready generation, or a retired one, answer; returns it and the one that answered before.

        One short transaction: whoever reads sees either. Raises ConflictError where it is not ready.
        """
        with self.database.transaction() as connection:
            there = self._generations(connection)
            chosen = (
                choosing.coming(there) if generation_id is None else choosing.numbered(there, generation_id)
            )
        return chosen, turns.promote(self.database, chosen, ["ready", "retired"])

    def rollback(self) -> tuple[Generation, GenerationId | None]:
        """Let the generation that answered before do so again, brought up to date as far as this code can."""
        with self.database.transaction() as connection:
            chosen = choosing.last_retired(self._generations(connection))
        try:
            self._catch_up(chosen)
        except (FingerprintError, RecipeError) as error:
            self._warn(f"generation {chosen.generation_id} is not brought up to date: {error}")
        return chosen, turns.promote(self.database, chosen, ["retired"])

    def drop(self, generation_id: int | None = None) -> list[dropping.Dropped]:
        """Drop what is retired or abandoned, or one generation; who reads or writes others does not wait."""
        with self.database.transaction() as connection:
            chosen = choosing.to_drop(
                self._generations(connection), None if generation_id is None else GenerationId(generation_id)
            )
        return [dropping.drop(self.database, one) for one in chosen]

    def status(self) -> list[Status]:
        """Every generation of the profile, or of all profiles where none was named, and how far each has come."""
        with self.database.transaction() as connection:
            return read_status(connection, self.collection, self.profile)

    def _bring_to_ready(self, generation: Generation) -> Generation:
        with self._alone(generation):
            if generation.state == "building":
                with self._upkeep() as upkeep:
                    upkeep.build(generation)
            self._catch_up(generation)
        with self.database.transaction() as connection:
            state = generations.read_state(connection, generation)
            if state == "catching_up":
                generations.move(connection, generation, "ready", ["catching_up"])
            return catalog.reread(connection, generation)

    def _catch_up(self, generation: Generation) -> None:
        with translated():
            rounds.dispatch(self.database.engine)
            with self._upkeep() as upkeep:
                upkeep.catch_up(generation)

    def _generations(self, connection: Connection) -> list[Generation]:
        return choosing.of_profile(connection, self.collection, self.profile)

    @contextmanager
    def _alone(self, generation: Generation) -> Iterator[None]:
        """Be the only one who builds a generation. Raises ConflictError where somebody does."""
        with translated(), self.database.engine.connect() as connection:
            if not take_lock(connection, Lock.REINDEX, generation.generation_id, wait=False):
                raise ConflictError(
                    f"generation {generation.generation_id} is being built by another process; "
                    "see: nearsim reindex status"
                )
            connection.commit()
            try:
                yield
            finally:
                give_lock_back(connection, Lock.REINDEX, generation.generation_id)
                connection.commit()

    @contextmanager
    def _upkeep(self) -> Iterator[Upkeep]:
        settings = self.database.settings
        with ThreadPoolExecutor(settings.threads, thread_name_prefix="nearsim") as pool:

            def context(generation: Generation) -> Context:
                profile = restore(generation.recipe, generation.fingerprint)
                encoder = Encoder(profile, settings.backend)
                return Context(generation, encoder, pool, settings.threads, self._warn)

            yield Upkeep(self.database, context, self._progress, self._warn)
