"""Reads of stored pairs, clusters and statistics: no text is encoded, so any generation serves, reproducible or not."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from nearsim_db.errors import DEFAULT, NotFoundError
from nearsim_db.records import Cluster, ClusterMember, Matches, Pair, Verdict
from nearsim_db.search import live_generation
from nearsim_db.search.live_generation import retry_if_replaced, unless_empty
from nearsim_db.similarity.recipe.sections import METRIC_OF_FAMILY
from nearsim_db.store import collection_rows, generation_rows, query_rows
from nearsim_db.store.attached import obstacles
from nearsim_db.store.attached.attachments import find_attachment
from nearsim_db.store.collection_rows import Collection
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import translate_errors
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.work import backlog

if TYPE_CHECKING:
    from nearsim_db.similarity.profile import Profile

Answer = TypeVar("Answer")


@contextmanager
def open_answers(collection: str, profile: str | None = None) -> Iterator["Answers"]:
    """Connect to the database for the block, and read the answers of a collection."""
    with Database.connect() as database:
        yield Answers(database, collection, lambda: profile)


class Answers:
    """Reads the live generation, each answer in one transaction; that of a collection without documents is empty.

    If the generation is dropped after it was chosen and before it is read, the new live one is read.
    """

    def __init__(self, database: Database, collection: str, profile: Callable[[], str | None]) -> None:
        self._database = database
        self._collection = collection
        self._profile = profile

    def profiles(self) -> "list[tuple[Generation, Profile]]":
        """The live generation of every profile, else its newest, with its resolved recipe."""
        return [(one, _profile(one)) for one in self.generations()]

    def generations(self) -> list[Generation]:
        """The live generation of every profile, else its newest."""
        with self._database.transaction() as connection:
            _, existing = self._generations(connection)
            names = sorted({one.profile for one in existing})
            return [
                live_generation.choose_newest(connection, self._collection, existing, name) for name in names
            ]

    def collection(self) -> dict[str, Any]:
        """The collection: its documents, the table it follows, its profiles, and the changes that are queued."""
        with self._database.transaction() as connection:
            collection, _ = self._generations(connection)
            attachment = find_attachment(connection, collection.collection_id)
            documents = collection_rows.count_documents(connection, collection.collection_id)
            trouble = obstacles.list_problems(connection, collection.collection_id).get(collection.name)
            waiting = backlog.count_changes(connection, collection.collection_id)
        profiles = [
            {"profile": one.profile, "state": one.state, "threshold": one.recipe["match"]["threshold"]}
            for one in self.generations()
        ]
        return {
            "collection": collection.name,
            "documents": documents,
            "follows": attachment and (attachment.table or "a dropped table"),
            "trouble": trouble,
            "changes_waiting": waiting,
            "profiles": profiles,
            "created_at": collection.created_at,
        }

    def least_similarity(self) -> tuple[str, float, float]:
        """The live profile's name, its threshold, and the least similarity that it stores.

        That is 0 if pairs are stored for the bands that they share.
        """
        profile, recipe = self._recipe()
        match, is_distance = recipe["match"], _metric(recipe) == "euclidean"
        threshold = float(match["threshold"])
        if match["verify"] == "bands" or match["certain_shared_bands"]:
            return profile, threshold, 0.0
        return profile, threshold, 1 / (1 + threshold) if is_distance else threshold

    def verdicts(self, by: str | None, *, undone: bool) -> Generator[Verdict, None, None]:
        """The verdicts on pairs, the newest first."""

        def read(connection: Connection) -> Iterator[Verdict]:
            collection = collection_rows.get_collection(connection, self._collection)
            return query_rows.stream_verdicts(connection, collection.collection_id, by, undone=undone)

        return self._stream(read)

    def metric(self) -> str:
        """The metric of the live generation."""
        return _metric(self._recipe()[1])

    def document(self, external_id: str) -> dict[str, Any]:
        """A document as it is stored. Raises NotFoundError."""
        with self._database.transaction() as connection:
            collection = collection_rows.get_collection(connection, self._collection)
            return _find_document(connection, collection, external_id, with_text=True)

    def pairs(self, min_similarity: float) -> Generator[Pair, None, None]:
        """All pairs, twins expanded."""

        def read(connection: Connection) -> Iterator[Pair]:
            _, generation = self._live(connection)
            return query_rows.stream_pairs(connection, generation.leaves, generation.bands, min_similarity)

        return self._stream(read)

    def clusters(self, min_size: int = 2) -> Generator[Cluster, None, None]:
        """All clusters of at least so many documents, the largest first."""
        return self._stream(
            lambda connection: query_rows.stream_clusters(
                connection, self._live(connection)[1].leaves, min_size
            )
        )

    def cluster(self, name: str) -> Generator[ClusterMember, None, None]:
        """The documents of a cluster, named by one of them or by its number, the survivor first.

        Raises NotFoundError.
        """

        def read(connection: Connection) -> Iterator[ClusterMember]:
            collection, generation = self._live_with(connection, name)
            found = query_rows.find_cluster(connection, generation.leaves, collection.collection_id, name)
            if found is None:
                _find_document(connection, collection, name, with_text=False)
                raise NotFoundError(f"document {name!r} is in no cluster")
            return query_rows.stream_cluster(connection, generation.leaves, found)

        return self._stream(read)

    def similar(
        self, external_id: str, min_similarity: float, limit: int | None = None
    ) -> tuple[Matches, str | None]:
        """The documents paired with one, the first `limit` of them, and a warning.

        Raises NotFoundError, with the reason, for a document that is not in the index.
        """

        def read(connection: Connection) -> tuple[Matches, str | None]:
            collection, generation = self._live_with(connection, external_id)
            doc_id = _find_document(connection, collection, external_id, with_text=False)["doc_id"]
            live_generation.refuse_outside(connection, generation, doc_id, external_id)
            warning = live_generation.refuse_unindexed(connection, generation, doc_id, external_id)
            most = None if limit is None else limit + 1
            found = query_rows.read_similar(
                connection, generation.leaves, doc_id, generation.bands, min_similarity, most
            )
            kept = found[:limit]
            return Matches(kept, _metric(generation.recipe), has_more=len(found) > len(kept)), warning

        return self._ask(read)

    def read_live(self, read: Callable[[Connection, Generation], Answer]) -> Answer:
        """Return what `read` finds in one snapshot of the live generation."""

        def query() -> Answer:
            with self._database.engine.snapshot() as connection:
                return read(connection, self._live(connection)[1])

        with translate_errors():
            return retry_if_replaced(query)

    def stats(self, profile_name: str | None, *, recount: bool) -> dict[str, Any]:
        """Counts, bytes and probabilities of the collection and of one profile, by default of the default recipe."""

        from nearsim_db.search import statistics

        def read(connection: Connection) -> dict[str, Any]:
            name = profile_name or self._profile()
            collection, existing = self._generations(connection)
            chosen = live_generation.choose_newest(connection, self._collection, existing, name)
            return statistics.stats(connection, collection, chosen, _profile(chosen), recount=recount)

        return unless_empty(
            lambda: self._ask(read),
            lambda: self._ask(lambda connection: statistics.of_nothing(connection, self._collection)),
        )

    def _recipe(self) -> tuple[str, Mapping[str, Any]]:
        """The profile that answers and its recipe, by default the default ones."""

        def read(connection: Connection) -> tuple[str, Mapping[str, Any]]:
            _, existing = self._generations(connection)
            chosen = live_generation.choose_newest(connection, self._collection, existing, self._profile())
            return chosen.profile, chosen.recipe

        def default() -> tuple[str, Mapping[str, Any]]:
            from nearsim_db.similarity.recipe import Recipe, to_mapping

            return DEFAULT, to_mapping(Recipe())

        return unless_empty(lambda: self._ask(read), default)

    def _live(self, connection: Connection) -> tuple[Collection, Generation]:
        collection, existing = self._generations(connection)
        chosen = live_generation.choose_live(connection, self._collection, existing, self._profile())
        return collection, chosen

    def _live_with(self, connection: Connection, external_id: str) -> tuple[Collection, Generation]:
        """Return what `_live` does, to look for a document. Raises NotFoundError if there is none at all."""

        def refuse() -> NoReturn:
            raise NotFoundError(f"collection {self._collection!r} has no document {external_id!r}")

        return unless_empty(lambda: self._live(connection), refuse)

    def _generations(self, connection: Connection) -> tuple[Collection, list[Generation]]:
        collection = collection_rows.get_collection(connection, self._collection)
        return collection, generation_rows.list_generations(connection, collection.collection_id)

    def _ask(self, read: Callable[[Connection], Answer]) -> Answer:
        def query() -> Answer:
            with self._database.engine.begin() as connection:
                return read(connection)

        with translate_errors():
            return retry_if_replaced(query)

    def _stream(self, read: Callable[[Connection], Iterator[Answer]]) -> Generator[Answer, None, None]:
        with translate_errors(), self._database.engine.connect() as connection:

            def query() -> tuple[list[Answer], Iterator[Answer]]:
                rows = unless_empty(lambda: read(connection), lambda: iter(()))
                # Once the first row is read, the transaction keeps the tables from being dropped.
                return list(islice(rows, 1)), rows

            first, rest = retry_if_replaced(query, connection.rollback)
            yield from first
            yield from rest


def _find_document(
    connection: Connection, collection: Collection, external_id: str, *, with_text: bool
) -> dict[str, Any]:
    found = query_rows.find_document(connection, collection.collection_id, external_id, with_text=with_text)
    if found is None:
        raise NotFoundError(f"collection {collection.name!r} has no document {external_id!r}")
    return found


def _profile(generation: Generation) -> "Profile":
    from nearsim_db.similarity.profile import restore_for_reading

    return restore_for_reading(generation.recipe, generation.fingerprint, generation.bands, generation.rows)


def _metric(recipe: Mapping[str, Any]) -> str:
    return METRIC_OF_FAMILY[recipe["sketch"]["family"]]
