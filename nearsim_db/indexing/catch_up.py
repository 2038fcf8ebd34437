"""Upkeep: the indexes of a collection are built, and follow what was written to it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from nearsim_db.errors import DEFAULT, FingerprintError, RecipeError
from nearsim_db.indexing import attached_table, build, profiles, retention, work_queue
from nearsim_db.indexing.context import Context
from nearsim_db.records import CollectionId, Progress
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store import catalog, generations
from nearsim_db.store.catalog import Generation
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import translated
from nearsim_db.store.generations import WORKABLE

Given = TypeVar("Given")


class Upkeep:
    """Brings the indexes of collections up to date, in the process that asks and with the contexts that it makes."""

    def __init__(
        self,
        database: Database,
        make_context: Callable[[Generation], Context],
        progress: Progress,
        warn: Callable[[str], None],
    ) -> None:
        self._database = database
        self._make_context = make_context
        self._progress = progress
        self._warn = warn

    def bring_up_to_date(self, collection_id: CollectionId) -> None:
        """Take in what was written, or leave it to a worker where this user may write but not index."""
        if self._database.may_index:
            self.take_in(collection_id)
        else:
            self._warn("what was written waits for a worker: this user may not index it")

    def as_far_as_possible(self, action: Callable[[Given], object], given: Given) -> None:
        """Do something; what this code cannot do, because it would make other sketches, is warned of."""
        try:
            action(given)
        except (FingerprintError, RecipeError) as error:
            self._warn(str(error))

    def take_in(self, collection_id: CollectionId) -> None:
        """Build generations that are to be the first; let all that are built catch up with the documents, and these
        with a table. Builds beside a live one are left to those who began them."""
        with translated():
            attached_table.bring_up(self._database.engine, collection_id, self._progress)
            work_queue.dispatch(self._database.engine)
            for generation in self.built(collection_id):
                if generation.state == "live":
                    self.catch_up(generation)
                elif generation.state in WORKABLE:
                    self.as_far_as_possible(self.catch_up, generation)

    def catch_up(self, generation: Generation) -> None:
        """Do all that is queued for a generation; one that catches up is ready then."""
        engine, context = self._database.engine, self._make_context(generation)
        retention.sweep(engine, context)
        # Only now: a lease that is not heard of during a long build or sweep is taken for a dead process's.
        with self._database.lease() as lease_id:
            work_queue.settle(engine, context, lease_id, self._progress)
        with self._database.transaction() as connection:
            generations.mark_ready(connection)

    def built(self, collection_id: CollectionId) -> list[Generation]:
        """The collection's generations, built if they were not; without any, that of the default recipe."""
        there = self._generations(collection_id)
        if there and not any(one.is_first_build for one in there):
            return there
        with self._database.builder(collection_id):
            for generation in self._generations(collection_id) or [self._default_profile(collection_id)]:
                if generation.is_first_build:
                    self.build(generation)
        return self._generations(collection_id)

    def build(self, generation: Generation) -> None:
        """Build one generation, as far as it is not built yet."""
        build.build(self._database.engine, self._make_context(generation), self._progress)

    def unbuilt_kept(self, collection_id: CollectionId) -> AbstractContextManager[None]:
        """Keep workers from building an index of the first few documents while the others come in."""
        if not any(one.is_first_build for one in self._generations(collection_id)):
            return nullcontext()
        return self._database.builder(collection_id, wait=False)

    def _default_profile(self, collection_id: CollectionId) -> Generation:
        with self._database.transaction() as connection:
            return profiles.create(connection, collection_id, DEFAULT, resolve(Recipe()))

    def _generations(self, collection_id: CollectionId) -> list[Generation]:
        with self._database.transaction() as connection:
            return catalog.list_generations(connection, collection_id)
