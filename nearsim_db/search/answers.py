"""Answers from the index of one collection as it stands: only read, also where this code would make other sketches."""

from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import retention
from nearsim_db.records import Cluster, Match, Pair
from nearsim_db.search import document_state, live_generation, statistics
from nearsim_db.similarity.profile import Profile, make_family, restore_for_reading
from nearsim_db.store import catalog, clusters, pairs
from nearsim_db.store.catalog import Generation
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import is_missing_table, translated

_ATTEMPTS = 5

Answer = TypeVar("Answer")


class Answers:
    """Reads the generation that answers. One that is dropped between being chosen and being read is chosen anew."""

    def __init__(self, database: Database, collection: str, profile: Callable[[], str | None]) -> None:
        self._database = database
        self._collection = collection
        self._profile = profile

    def live(self) -> tuple[Generation, Profile]:
        """The generation that answers. Raises NotFoundError, saying why none does."""
        with self._database.transaction() as connection:
            return self._live(connection)

    def profiles(self) -> list[tuple[Generation, Profile]]:
        """The live generation of every profile, else its newest."""
        with self._database.transaction() as connection:
            there = self._generations(connection)
        names = sorted({one.profile for one in there})
        chosen = [live_generation.choose_newest(self._collection, there, name) for name in names]
        return [(one, _profile(one)) for one in chosen]

    def metric(self) -> str:
        """What the profile that answers compares by."""
        return make_family(self.live()[1].recipe, "numpy").metric

    def pairs(self, min_similarity: float) -> Generator[Pair, None, None]:
        """All pairs, twins expanded."""

        def read(connection: Connection) -> Iterator[Pair]:
            generation, profile = self._live(connection)
            return pairs.stream_pairs(connection, generation.leaves, profile.bands, min_similarity)

        return self._stream(read)

    def clusters(self) -> Generator[Cluster, None, None]:
        """All clusters, the largest first."""
        return self._stream(
            lambda connection: clusters.stream_clusters(connection, self._live(connection)[0].leaves)
        )

    def similar(self, doc_id: int, external_id: str, min_similarity: float) -> tuple[list[Match], str | None]:
        """The documents paired with one, and what to warn of. Raises NotFoundError where the index has not got it."""

        def read(connection: Connection) -> tuple[list[Match], str | None]:
            generation, profile = self._live(connection)
            retention.refuse_outside(connection, generation, profile, doc_id, external_id)
            warning = document_state.refuse_absent(connection, generation, doc_id, external_id)
            found = pairs.read_similar(connection, generation.leaves, doc_id, profile.bands, min_similarity)
            return found, warning

        return self._ask(read)

    def stats(self, profile_name: str | None, *, recount: bool) -> dict[str, Any]:
        """What the collection and a profile of it hold."""

        def read(connection: Connection) -> dict[str, Any]:
            collection = catalog.get_collection(connection, self._collection)
            there = catalog.list_generations(connection, collection.collection_id)
            chosen = live_generation.choose_newest(self._collection, there, profile_name or self._profile())
            return statistics.stats(connection, collection, chosen, _profile(chosen), recount=recount)

        return self._ask(read)

    def _live(self, connection: Connection) -> tuple[Generation, Profile]:
        there = self._generations(connection)
        chosen = live_generation.choose_live(connection, self._collection, there, self._profile())
        return chosen, _profile(chosen)

    def _generations(self, connection: Connection) -> list[Generation]:
        collection = catalog.get_collection(connection, self._collection)
        return catalog.list_generations(connection, collection.collection_id)

    def _ask(self, read: Callable[[Connection], Answer]) -> Answer:
        for _ in range(_ATTEMPTS):
            try:
                with self._database.engine.begin() as connection:
                    return read(connection)
            except Exception as error:
                if not is_missing_table(error):
                    with translated():
                        raise
        raise NotFoundError("the index is being replaced again and again; try later")

    def _stream(self, read: Callable[[Connection], Iterator[Answer]]) -> Generator[Answer, None, None]:
        """From the first row on the tables cannot be dropped."""
        for _ in range(_ATTEMPTS):
            begun = False
            try:
                with self._database.engine.begin() as connection:
                    for one in read(connection):
                        begun = True
                        yield one
                return
            except Exception as error:
                if begun or not is_missing_table(error):
                    with translated():
                        raise
        raise NotFoundError("the index is being replaced again and again; try later")


def _profile(generation: Generation) -> Profile:
    return restore_for_reading(generation.recipe, generation.fingerprint, generation.bands, generation.rows)
