"""The reindex of a profile: start it, build, compare, promote in one short transaction, roll back, drop."""

from collections.abc import Callable, Sequence

from tenacity import RetryError, Retrying, retry_if_exception, stop_after_attempt, wait_random

from nearsim_db.admin.reindex import diff, select
from nearsim_db.admin.reindex.diff import Difference
from nearsim_db.admin.reindex.foreground import ForegroundBuild
from nearsim_db.admin.reindex.limits import NO_LIMITS, Limits, raise_if_exceeded
from nearsim_db.admin.reindex.status import Status, read_status
from nearsim_db.errors import ConflictError, FingerprintError, RecipeError
from nearsim_db.indexing import drop_generation, profiles
from nearsim_db.indexing.drop_generation import Dropped
from nearsim_db.records import GenerationId, Progress, silent
from nearsim_db.search.live_generation import list_of_collection
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.profile import resolve, restore_for_reading
from nearsim_db.similarity.recipe import Recipe, override, to_mapping
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import is_lock_timeout, translate_errors
from nearsim_db.store.generations import diffs, generation_rows, generation_states, partitions
from nearsim_db.store.generations.generation_rows import Generation, State


class Reindex:
    """Operations on the generations of a profile, whose live generation serves queries all the time.

    `profile` may be None if the collection has only one profile, or one named default. `warn` receives warnings.
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
        self._foreground = ForegroundBuild(database, progress, warn)

    @property
    def left_behind(self) -> Generation | None:
        """The generation that this process was building when an exception ended the build; `resume` continues it."""
        return self._foreground.unfinished

    def start(
        self,
        recipe: Recipe | None = None,
        settings: list[str] | None = None,
        *,
        detached: bool = False,
        tables: partitions.Tables | None = None,
    ) -> Generation:
        """Create a generation beside the live one, and build it until it is ready.

        recipe: the recipe of the generation, by default that of the live one. settings: changes of this recipe, such as
        "match.threshold=0.7". detached: leave the build to a worker. tables: the kind of tables, by default the kind
        that suits the size of the collection.

        Raises ConflictError if another generation is pending or none is live, and BuildStoppedError if the new
        generation is paused or abandoned in the meantime.
        """

        def create(connection: Connection) -> Generation:
            return self._create(connection, recipe, settings, detached=detached, tables=tables)

        if detached:
            with self.database.transaction() as connection:
                return create(connection)
        return self._foreground.create(create)

    def _create(
        self,
        connection: Connection,
        recipe: Recipe | None,
        settings: list[str] | None,
        *,
        detached: bool,
        tables: partitions.Tables | None,
    ) -> Generation:
        """Create a generation, to be committed before its documents are read, so that changes are queued for it."""
        generation_states.lock_profile(connection, self._generations(connection)[0].profile_id)
        # Read again under the lock, because another session may have created a generation in the meantime.
        existing = self._generations(connection)
        live = select.live(existing)
        select.refuse_second_pending(connection, existing)

        live_profile = restore_for_reading(live.recipe, live.fingerprint, live.bands, live.rows)
        base = recipe or live_profile.recipe
        profile = resolve(override(base, settings) if settings else base)
        profiles.refuse_unusable(connection, live.collection_id, to_mapping(profile.recipe))
        profiles.refuse_delete(connection, live.collection_id, profile.recipe)

        for message in recipe_warnings.of_profile(profile):
            self._warn(message)
        if detached and (short := profiles.warn_of_index(connection, live, profile)) is not None:
            self._warn(short)

        return generation_rows.create_generation(
            connection,
            live.profile_id,
            profile,
            live.generation_id,
            detached=detached,
            tables=tables or partitions.choose_tables(connection, live.collection_id),
        )

    def resume(self, *, detached: bool = False) -> Generation:
        """Continue a build that was paused or left behind, from its current stage.

        Raises ConflictError if another process builds it, and BuildStoppedError if it is paused or abandoned in the
        meantime.
        """
        with self.database.transaction() as connection:
            chosen = select.pending(self._generations(connection))

        def prepare(connection: Connection) -> Generation:
            generation_states.lock_profile(connection, chosen.profile_id)
            current = generation_rows.reread(connection, chosen)
            if current.state == "paused":
                state: State = "catching_up" if current.stage == "done" else "building"
                generation_states.change_state(connection, current, state, ["paused"])
            generation_states.set_detached(connection, current, detached)
            return generation_rows.reread(connection, current)

        if detached:
            with self.database.transaction() as connection:
                return prepare(connection)
        return self._foreground.resume(chosen, prepare)

    def pause(self) -> Generation:
        """Pause the pending generation: its build or catching up stops at the next step. Changes stay queued for it."""
        with self.database.transaction() as connection:
            chosen = select.pending(self._generations(connection))
            generation_states.change_state(connection, chosen, "paused", ["building", "catching_up", "ready"])
            return generation_rows.reread(connection, chosen)

    def abandon(self) -> Generation:
        """Abandon the pending generation; its tables remain until it is dropped."""
        with self.database.transaction() as connection:
            chosen = select.pending(self._generations(connection))
            generation_states.abandon(connection, chosen, generation_states.PENDING, drop=False)
            return generation_rows.reread(connection, chosen)

    def diff(
        self, generation_id: int | None = None, *, samples: int = 20, limits: Limits = NO_LIMITS
    ) -> Difference:
        """Compare the pending generation, or another one, with the live generation in one snapshot.

        Draws at most `samples` examples of each kind of difference. Raises ConflictError if the two generations cannot
        be compared.
        """
        with diffs.comparing(self.database.engine) as connection:
            live, new = diff.choose(connection, self._generations(connection), generation_id)
            return diff.compare(
                connection,
                live,
                new,
                samples_per_kind=samples,
                limits=limits,
                backend=self.database.settings.backend,
                progress=self._progress,
            )

    def promote(
        self, generation_id: int | None = None, limits: Limits = NO_LIMITS
    ) -> tuple[Generation, GenerationId | None]:
        """Make the pending generation, or a retired one, live; return it and the id of the previous live generation.

        This is one short transaction, so a reader always sees exactly one live generation. Raises ConflictError if the
        generation is not ready. With `limits`, the two generations are compared first, and LimitsExceededError is
        raised if they differ by more.
        """
        with self.database.transaction() as connection:
            existing = self._generations(connection)
            chosen = (
                select.pending(existing) if generation_id is None else select.by_id(existing, generation_id)
            )

        if limits.by_name:
            difference = self.diff(chosen.generation_id, samples=0, limits=limits)
            raise_if_exceeded(
                chosen.generation_id, difference.profile, difference.limits, chosen.advice("reindex diff")
            )
        return chosen, self._switch_to(chosen, ["ready", "retired"])

    def rollback(self) -> tuple[Generation, GenerationId | None]:
        """Make the generation that was retired last live again, after bringing it up to date if this version can."""
        with self.database.transaction() as connection:
            chosen = select.last_retired(self._generations(connection))
        return chosen, self._switch_to(chosen, ["retired"])

    def _switch_to(self, chosen: Generation, states: Sequence[State]) -> GenerationId | None:
        # Apply the changes queued for a retired generation before it serves queries.
        if chosen.state == "retired":
            try:
                self._foreground.catch_up(chosen)
            except (FingerprintError, RecipeError) as error:
                self._warn(
                    f"generation {chosen.generation_id} serves queries, but is not being updated: {error}"
                )
        return promote(self.database, chosen, states)

    def find_droppable(self, generation_id: int | None = None, *, every: bool = False) -> list[Generation]:
        """Return the generation with an id, or all retired and abandoned generations of the profile.

        With `every`, those of all profiles of the collection are returned. Raises ConflictError if the generation is
        live, or is the first build of its profile.
        """
        id = None if generation_id is None else GenerationId(generation_id)
        with self.database.transaction() as connection:
            if every:
                return select.droppable(list_of_collection(connection, self.collection), None)
            return select.droppable(self._generations(connection), id)

    def drop(
        self, chosen: Sequence[Generation] | None = None, patience_seconds: float = 10.0
    ) -> list[Dropped]:
        """Drop these generations, or all retired and abandoned ones, without blocking sessions that use others.

        A generation that is still being read after `patience_seconds` is dropped later, by a worker or by the next
        call.
        """
        chosen = self.find_droppable() if chosen is None else chosen
        return [
            drop_generation.drop(self.database.engine, generation, patience_seconds) for generation in chosen
        ]

    def pending(self) -> Generation:
        """Return the generation that is being built beside the live one, or that waits to be promoted.

        Raises NotFoundError if there is none.
        """
        with self.database.transaction() as connection:
            return select.pending(self._generations(connection))

    def status(self) -> list[Status]:
        """Return the progress of all generations of the profile, or of all profiles if no profile was named."""
        with self.database.transaction() as connection:
            return read_status(connection, self.collection, self.profile)

    def _generations(self, connection: Connection) -> list[Generation]:
        return select.of_profile(connection, self.collection, self.profile)


# Each attempt waits for locks only briefly, so that other sessions do not queue behind it.
_MAX_PROMOTION_ATTEMPTS = 200


def promote(database: Database, generation: Generation, states: Sequence[State]) -> GenerationId | None:
    """Make a generation live; return the id of the previous live generation, which is retired.

    Raises ConflictError if the generation's state is not in `states`, or if the generations of its profile stay locked.
    """
    attempts = Retrying(
        retry=retry_if_exception(is_lock_timeout),
        stop=stop_after_attempt(_MAX_PROMOTION_ATTEMPTS),
        wait=wait_random(0.02, 0.2),
    )

    def attempt() -> GenerationId | None:
        # The short lock timeout is in force until the transaction ends, which is here the end of the statement.
        with database.engine.connect(autocommit=True) as connection:
            return generation_states.promote(connection, generation, states)

    with translate_errors():
        try:
            return attempts(attempt)
        except RetryError as error:
            raise ConflictError(
                f"generation {generation.generation_id} was not promoted: other sessions kept the generations of its "
                "profile locked; nothing was changed, try again"
            ) from error
