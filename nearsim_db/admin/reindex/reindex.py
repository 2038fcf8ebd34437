"""Reindexing one profile: begun, built, compared, promoted, taken back, dropped."""

from collections.abc import Callable, Sequence

from nearsim_db.admin.reindex import diff, promote, select
from nearsim_db.admin.reindex.diff_result import Difference
from nearsim_db.admin.reindex.foreground import Foreground
from nearsim_db.admin.reindex.limits import NO_LIMITS, Limits, refuse
from nearsim_db.admin.reindex.status import Status, read_status
from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.indexing import drop_generation, profiles
from nearsim_db.records import GenerationId, Progress, silent
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, from_mapping, override
from nearsim_db.store import catalog, diffs, generations
from nearsim_db.store.catalog import Generation, State
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection


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
        self._foreground = Foreground(database, progress, warn)

    @property
    def left_behind(self) -> Generation | None:
        """What this process was building when an exception ended that; `resume` goes on with it."""
        return self._foreground.left

    def start(
        self, recipe: Recipe | None = None, settings: list[str] | None = None, *, detached: bool = False
    ) -> Generation:
        """Begin a generation beside the live one; unless `detached`, build it until it is ready.

        Its recipe is that of the live one if none is given, with `settings` ("match.threshold=0.7") applied. Raises
        ConflictError where another is coming already, or nothing is live yet; BuildStoppedError where others stop it.
        """

        def make(connection: Connection) -> Generation:
            return self._create(connection, recipe, settings, detached=detached)

        if detached:
            with self.database.transaction() as connection:
                return make(connection)
        return self._foreground.begin(make)

    def _create(
        self, connection: Connection, recipe: Recipe | None, settings: list[str] | None, *, detached: bool
    ) -> Generation:
        """Committed before its first document is read: what is written from then on is queued for it."""
        generations.hold(connection, self._generations(connection)[0].profile_id)
        there = self._generations(connection)
        replaced = select.live(there)
        select.refuse_another(connection, there)
        wanted = recipe or from_mapping(replaced.recipe)
        profile = resolve(override(wanted, settings) if settings else wanted)
        for message in recipe_warnings.of_profile(profile):
            self._warn(message)
        described = profiles.describe_build(profile)
        return catalog.create_generation(
            connection, replaced.profile_id, described, replaced.generation_id, detached=detached
        )

    def resume(self, *, detached: bool = False) -> Generation:
        """Go on with what was paused, or was left by a process that is gone, from the stage at which it was.

        Raises ConflictError where a process is at it, BuildStoppedError where others stop it.
        """
        with self.database.transaction() as connection:
            chosen = select.coming(self._generations(connection))

        def prepare(connection: Connection) -> Generation:
            generations.hold(connection, chosen.profile_id)
            now = catalog.reread(connection, chosen)
            if now.state == "paused":
                state: State = "catching_up" if now.stage == "done" else "building"
                generations.move(connection, now, state, ["paused"])
            generations.set_detached(connection, now, detached)
            return catalog.reread(connection, now)

        if detached:
            with self.database.transaction() as connection:
                return prepare(connection)
        return self._foreground.resume(chosen, prepare)

    def pause(self) -> Generation:
        """Stop the build at its next step, or the catching up; what is written meanwhile is queued."""
        with self.database.transaction() as connection:
            chosen = select.coming(self._generations(connection))
            generations.move(connection, chosen, "paused", ["building", "catching_up", "ready"])
            return catalog.reread(connection, chosen)

    def abandon(self) -> Generation:
        """Give up what is being built; its tables stay until it is dropped."""
        with self.database.transaction() as connection:
            chosen = select.coming(self._generations(connection))
            generations.give_up(connection, chosen, generations.COMING, drop=False)
            return catalog.reread(connection, chosen)

    def diff(
        self, generation_id: int | None = None, *, samples: int = 20, limits: Limits = NO_LIMITS
    ) -> Difference:
        """How the generation that is coming, or another, differs from the live one; both are read at one moment.

        At most `samples` of each kind are shown. Raises ConflictError where there is nothing to compare yet.
        """
        with diffs.comparing(self.database.engine) as connection:
            live, new = diff.choose(connection, self._generations(connection), generation_id)
            backend = self.database.settings.backend
            return diff.compare(
                connection, self.collection, live, new, samples, limits, backend, self._progress
            )

    def promote(
        self, generation_id: int | None = None, limits: Limits = NO_LIMITS
    ) -> tuple[Generation, GenerationId | None]:
        """Let the ready generation, or a retired one, answer; returns it and the one that answered before.

        One short transaction: whoever reads sees either. Raises ConflictError where it is not ready. With `limits` it
        is compared with the live one before, and LimitsExceededError is raised where it differs by more.
        """
        with self.database.transaction() as connection:
            there = self._generations(connection)
            chosen = select.coming(there) if generation_id is None else select.numbered(there, generation_id)
        if limits.given:
            found = self.diff(chosen.generation_id, samples=0, limits=limits)
            refuse(chosen.generation_id, found.profile, found.limits, chosen.advice("reindex diff"))
        if chosen.state == "retired":
            self._bring_up_to_date(chosen)
        return chosen, self._promote(chosen, ["ready", "retired"])

    def rollback(self) -> tuple[Generation, GenerationId | None]:
        """Let the generation that answered before do so again, brought up to date as far as this code can."""
        with self.database.transaction() as connection:
            chosen = select.last_retired(self._generations(connection))
        self._bring_up_to_date(chosen)
        return chosen, self._promote(chosen, ["retired"])

    def _promote(self, chosen: Generation, before: list[State]) -> GenerationId | None:
        retired = promote.promote(self.database, chosen, before)
        self._foreground.tell(chosen)
        return retired

    def _bring_up_to_date(self, retired: Generation) -> None:
        try:
            self._foreground.catch_up(retired)
        except (FingerprintError, RecipeError) as error:
            self._warn(
                f"generation {retired.generation_id} answers, but what is written is not indexed in it: {error}"
            )

    def drop(
        self, generation_id: int | None = None, patience_seconds: float = 10.0
    ) -> list[drop_generation.Dropped]:
        """Drop what is retired or abandoned, or one generation; who reads or writes others does not wait.

        What others still read after `patience_seconds` is not finished; a worker drops it, or the next call.
        """
        return self.drop_these(self.to_drop(generation_id), patience_seconds)

    def drop_all(self, patience_seconds: float = 10.0) -> list[drop_generation.Dropped]:
        """Drop what is retired or abandoned of all profiles of the collection."""
        return self.drop_these(self.to_drop(every=True), patience_seconds)

    def drop_these(
        self, chosen: Sequence[Generation], patience_seconds: float = 10.0
    ) -> list[drop_generation.Dropped]:
        """Drop what `to_drop` found."""
        return [drop_generation.drop(self.database.engine, one, patience_seconds) for one in chosen]

    def to_drop(self, generation_id: int | None = None, *, every: bool = False) -> list[Generation]:
        """What is retired or abandoned, or one generation; with `every` of all profiles of the collection.

        Raises ConflictError for one that answers, or is to be the first that does.
        """
        id = None if generation_id is None else GenerationId(generation_id)
        with self.database.transaction() as connection:
            if every:
                collection_id = catalog.get_collection(connection, self.collection).collection_id
                return select.to_drop(catalog.list_generations(connection, collection_id), None)
            return select.to_drop(self._generations(connection), id)

    def coming(self) -> Generation:
        """What is built beside the live one, or waits to be promoted. Raises NotFoundError."""
        with self.database.transaction() as connection:
            return select.coming(self._generations(connection))

    def status(self) -> list[Status]:
        """Every generation of the profile, or of all profiles where none was named, and how far each has come."""
        with self.database.transaction() as connection:
            return read_status(connection, self.collection, self.profile)

    def _generations(self, connection: Connection) -> list[Generation]:
        return select.of_profile(connection, self.collection, self.profile)
