"""Answers from what is stored: no text is encoded, so any generation serves, reproducible or not."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from nearsim_db.errors import DEFAULT, EmptyIndexError, InputError, NotFoundError
from nearsim_db.records import Cluster, ClusterMember, Direction, Matches, Pair, Results, Verdict
from nearsim_db.search import live_generation
from nearsim_db.search.live_generation import retry_if_replaced
from nearsim_db.similarity.recipe.sections import METRIC_OF_FAMILY
from nearsim_db.store import query_rows
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import obstacles
from nearsim_db.store.attached.attachments import find_attachment
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.query_rows import PairFilter, StoredPair
from nearsim_db.store.work import backlog

if TYPE_CHECKING:
    from nearsim_db.similarity.profile import Profile
    from nearsim_db.similarity.recipe import Recipe

Answer = TypeVar("Answer")

_DOCUMENTS_PER_BATCH = 100
_MAX_EQUAL_PAIRS = 100_000  # that are read for a table if all are equally similar, as those of many twins


@dataclass(frozen=True, slots=True)
class PairPage:
    """The most similar pairs, and the number of all."""

    pairs: Results[Pair]
    total: int


@dataclass(frozen=True, slots=True)
class IndexedProfile:
    """A profile of a collection, with its live index, or its newest index if none is live."""

    profile: str
    state: str  # building, catching_up, ready, live, paused, retired or abandoned
    stage: str  # of the build: sign, bands, pairs, clusters, or done
    recipe: "Recipe"
    bands: int
    rows: int  # sketch positions per band
    generation_id: int  # number of the index
    created_at: datetime  # when the index was created
    live_at: datetime | None  # when the index became live


class Answers:
    """Reads the live generation, each answer in one transaction; that of a collection without documents is empty.

    If the generation is dropped after it was chosen and before it is read, the new live one is read.
    """

    def __init__(self, database: Database, collection: str, profile: str | None = None) -> None:
        self.database = database
        self.collection = collection
        self.profile = profile
        self.warnings: list[str] = []
        self._resources = ExitStack()
        self._resources.callback(database.close)

    @classmethod
    def connect(
        cls, url: str | None = None, *, collection: str = DEFAULT, profile: str | None = None
    ) -> Self:
        """Open the collection at `url`, else at NEARSIM_DATABASE_URL, else on the embedded server."""
        return cls(Database.connect(url), collection, profile)

    def close(self) -> None:
        """Release threads and connections."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def has_collection(self) -> bool:
        """Whether the collection exists; if not, other methods raise MissingCollectionError or create it."""
        with self.database.transaction() as connection:
            return collection_rows.find_collection(connection, self.collection) is not None

    def profiles(self) -> list[IndexedProfile]:
        """Return the profiles of the collection, each with its live index, or its newest if none is live."""
        return [
            IndexedProfile(
                generation.profile,
                generation.state,
                generation.stage,
                profile_of(generation).recipe,
                generation.bands,
                generation.rows,
                generation.generation_id,
                generation.created_at,
                generation.live_at,
            )
            for generation in list_newest(self.database, self.collection)
        ]

    def metric(self) -> str:
        """The metric of the profile: jaccard, containment, weighted_jaccard, cosine or euclidean."""
        return metric_of(self._recipe()[1])

    def least_similarity(self) -> tuple[str, float, float]:
        """The profile, its threshold, and the least similarity that it stores; another value if that is a distance.

        The least is 0 if pairs are stored for the bands that they share.
        """
        profile, recipe = self._recipe()
        match, is_distance = recipe["match"], metric_of(recipe) == "euclidean"
        threshold = float(match["threshold"])
        if match["verify"] == "bands" or match["certain_shared_bands"]:
            return profile, threshold, 0.0
        return profile, threshold, 1 / (1 + threshold) if is_distance else threshold

    def least_reviewed(self) -> tuple[str, float]:
        """The profile, and the least similarity of the pairs that it stores to be reviewed, 0 if it has none."""
        profile, recipe = self._recipe()
        return profile, float(recipe["match"].get("review", 0))

    def get(self, external_id: str) -> dict[str, Any]:
        """Return a document as it is stored. Raises NotFoundError."""
        with self.database.transaction() as connection:
            collection = collection_rows.get_collection(connection, self.collection)
            found = query_rows.find_document(connection, collection.collection_id, external_id)
        return found or refuse_document(self.collection, external_id)

    def pairs(
        self,
        min_similarity: float = 0.0,
        *,
        review: bool = False,
        max_similarity: float | None = None,
        numbers_differ: bool = False,
        unreviewed: bool = False,
        sample: int | None = None,
    ) -> Results[Pair]:
        """Stream all pairs, or with `review` those to be reviewed (`match.review`), twins expanded, unordered.

        Close the stream when leaving it early. `unreviewed` leaves out pairs with a verdict or a decision of the review
        desk; `sample` is the number of pairs that are drawn, the same ones each time.
        """
        wanted = PairFilter(min_similarity, review, max_similarity, numbers_differ, unreviewed, sample)
        pairs = self._stream(lambda connection, live: live.tables(connection).shown.stream_pairs(wanted))
        return Results(pairs, Pair)

    def most_similar_pairs(
        self,
        limit: int,
        min_similarity: float = 0.0,
        *,
        review: bool = False,
        max_similarity: float | None = None,
    ) -> PairPage:
        """Return at least the `limit` most similar of the pairs that `pairs` streams, unordered, and their number.

        All pairs as similar as the last of these are included, up to 100,000 if all have one similarity.
        """
        wanted = PairFilter(min_similarity, review, max_similarity)
        total = 0

        def read(connection: Connection, live: Generation) -> Iterator[Pair]:
            nonlocal total
            shown = live.tables(connection).shown
            bounds = shown.bound_pairs(live.collection_id, wanted, limit)
            total = bounds.pairs
            chosen = replace(wanted, min_similarity=bounds.least or min_similarity)
            most = max(limit, _MAX_EQUAL_PAIRS) if bounds.least == bounds.highest else None
            return shown.stream_pairs(chosen, most)

        pairs = self._stream(read)
        first = list(islice(pairs, 1))  # by which the total is read, in the snapshot of the pairs
        return PairPage(Results(_continued(first, pairs), Pair), total)

    def look_up_pairs(self, ends: Sequence[tuple[str, str]]) -> list[StoredPair]:
        """Return what the index has on pairs of documents, by their ids, in the given order."""

        def read(connection: Connection) -> list[StoredPair]:
            live = self._live(connection)
            return live.tables(connection).shown.look_up_pairs(live.collection_id, ends)

        return self._ask(read)

    def clusters(self, min_size: int = 2) -> Results[Cluster]:
        """Stream all clusters of at least so many documents, the largest first.

        Close the stream when leaving it early.
        """
        found = self._stream(lambda connection, live: live.tables(connection).shown.stream_clusters(min_size))
        return Results(found, Cluster)

    def cluster(self, name: str) -> Results[ClusterMember]:
        """Stream the documents of a cluster, the survivor first, then the most similar to it.

        `name` is the id of one of its documents or, if no document in a cluster has that id, the cluster's number.
        Raises NotFoundError. Close the stream when leaving it early.
        """

        def read(connection: Connection, live: Generation) -> Iterator[ClusterMember]:
            tables = live.tables(connection)
            found = tables.shown.find_cluster(live.collection_id, name)
            if found is None:
                find_document(connection, live, name, with_text=False)
                raise NotFoundError(f"document {name!r} is in no cluster")
            return tables.shown.stream_cluster(found)

        return Results(self._stream(read, name), ClusterMember)

    def similar(
        self,
        external_id: str,
        min_similarity: float = 0.0,
        limit: int | None = None,
        direction: Direction | None = None,
    ) -> Matches:
        """Return the documents paired with one, the most similar first, then by doc_id.

        With `direction` "contains" those that it holds, with "contained_in" those that hold it, by the share of the one
        that is held: at least `min_similarity`, by default the threshold. With a limit at most so many; `has_more` of
        the answer says whether there are others. Raises NotFoundError, with the reason, for a document that is not in
        the index, and InputError for a direction under another metric than containment. An answer for an older text of
        the document is a warning.
        """
        most = checked_limit(limit)

        def read(connection: Connection, live: Generation) -> tuple[Matches, str | None]:
            doc_id = find_document(connection, live, external_id, with_text=False)["doc_id"]
            warning = live_generation.refuse_unindexed(connection, live, doc_id, external_id)
            least = least_share(live, direction, min_similarity)
            found = live.tables(connection).shown.read_similar(doc_id, least, most and most + 1, direction)
            kept = found[:most]
            return Matches(kept, metric_of(live.recipe), has_more=len(found) > len(kept)), warning

        found, warning = self._ask(lambda connection: read(connection, self._live(connection, external_id)))
        self.warnings += [] if warning is None else [warning]
        return found

    def verdicts(self, by: str | None = None, *, undone: bool = False) -> Results[Verdict]:
        """Stream the verdicts on pairs, the newest first, of one person or all; with `undone` also those undone."""
        return Results(self._verdicts(by, undone=undone), Verdict)

    def _verdicts(self, by: str | None, *, undone: bool) -> Generator[Verdict, None, None]:
        with self.database.transaction() as connection:
            collection = collection_rows.get_collection(connection, self.collection)
            yield from query_rows.stream_verdicts(connection, collection.collection_id, by, undone=undone)

    def stats(self, profile_name: str | None = None, *, recount: bool = False) -> dict[str, Any]:
        """Return counts, bytes and probabilities of the collection and of one profile.

        Counts of buckets are those of the build, at `buckets_counted_at`; with `recount` all band rows are read, and
        buckets counted now.
        """
        from nearsim_db.search import statistics

        def read(connection: Connection) -> dict[str, Any]:
            chosen = live_generation.find_newest(connection, self.collection, profile_name or self.profile)
            return statistics.stats(connection, chosen, profile_of(chosen), recount=recount)

        try:
            return self._ask(read)
        except EmptyIndexError:
            return self._ask(lambda connection: statistics.of_nothing(connection, self.collection))

    def _recipe(self) -> tuple[str, Mapping[str, Any]]:
        """The profile that answers and its recipe, by default the default ones."""
        try:
            chosen = self._ask(
                lambda connection: live_generation.find_newest(connection, self.collection, self.profile)
            )
        except EmptyIndexError:
            from nearsim_db.similarity.recipe import Recipe, to_mapping

            return DEFAULT, to_mapping(Recipe())
        return chosen.profile, chosen.recipe

    def _live(self, connection: Connection, external_id: str | None = None) -> Generation:
        """Return the live generation, to look for a document. Raises NotFoundError if there is none at all."""
        try:
            return live_generation.find_live(connection, self.collection, self.profile)
        except EmptyIndexError:
            if external_id is None:
                raise
            return refuse_document(self.collection, external_id)

    def _ask(self, read: Callable[[Connection], Answer]) -> Answer:
        """Return what `read` finds in one snapshot, in which the rows of its generation stay when that is dropped."""

        def query() -> Answer:
            with self.database.engine.snapshot() as connection:
                return read(connection)

        with translate_errors():
            return retry_if_replaced(query)

    def _stream(
        self, read: Callable[[Connection, Generation], Iterator[Answer]], external_id: str | None = None
    ) -> Generator[Answer, None, None]:
        with translate_errors(), self.database.engine.snapshot() as connection:

            def query() -> tuple[list[Answer], Iterator[Answer]]:
                rows = read(connection, self._live(connection, external_id))
                # Once the first row is read, the transaction keeps tables from being dropped; its snapshot keeps rows.
                return list(islice(rows, 1)), rows

            try:
                first, rest = retry_if_replaced(query, connection.rollback)
            except EmptyIndexError:
                return
            yield from first
            yield from rest


def _continued(first: Sequence[Answer], rest: Generator[Answer, None, None]) -> Generator[Answer, None, None]:
    """Yield rows that were read already, and then the others."""
    with closing(rest):
        yield from first
        yield from rest


def list_newest(database: Database, collection: str) -> list[Generation]:
    """Return the live generation of every profile of a collection, else its newest."""
    with database.transaction() as connection:
        existing = live_generation.list_of_collection(connection, collection)
        names = sorted({one.profile for one in existing})
        return [live_generation.choose_newest(connection, collection, existing, name) for name in names]


def describe_collection(database: Database, name: str) -> dict[str, Any]:
    """Return a collection's documents, the table it follows, its profiles, and the changes that are queued."""
    with database.transaction() as connection:
        collection = collection_rows.get_collection(connection, name)
        attachment = find_attachment(connection, collection.collection_id)
        documents = collection_rows.count_documents(connection, collection.collection_id)
        trouble = obstacles.list_problems(connection, collection.collection_id).get(collection.name)
        waiting = backlog.count_changes(connection, collection.collection_id)
    profiles = [
        {"profile": one.profile, "state": one.state, "threshold": one.recipe["match"]["threshold"]}
        for one in list_newest(database, name)
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


def checked_limit(limit: int | None) -> int | None:
    """Return a limit on matches, None for none. Raises InputError below 1."""
    if limit is not None and limit < 1:
        raise InputError(f"a limit of {limit} matches is out of range; choose 1 or more")
    return limit


def checked_ids(external_ids: Iterable[str]) -> list[str]:
    """Return external ids as a list. Raises InputError for a single one, whose characters would be taken for ids."""
    if isinstance(external_ids, str):
        raise InputError(f"{external_ids!r} is a string; give a list of ids")
    return list(external_ids)


def least_share(live: Generation, direction: Direction | None, asked: float) -> float:
    """Return the least similarity or, in a direction, share that is asked for; a share is by default the threshold.

    Raises InputError for a similarity outside 0..1, and for a direction under another metric than containment.
    """
    if not 0 <= asked <= 1:
        raise InputError(f"a similarity of {asked} is outside 0..1")
    if direction is None:
        return asked
    if (metric := metric_of(live.recipe)) != "containment":
        raise InputError(
            f"profile {live.profile!r} has the metric {metric}, which has no directions; name a profile of the family "
            "winnow, such as one of the preset embedded-stories"
        )
    return asked or float(live.recipe["match"]["threshold"])


def find_document(
    connection: Connection, live: Generation, external_id: str, *, with_text: bool = True
) -> dict[str, Any]:
    """Return a document of a generation's collection. Raises NotFoundError, InputError for no string."""
    return find_documents(connection, live, [external_id], with_text=with_text)[0]


def find_documents(
    connection: Connection, live: Generation, external_ids: Sequence[str], *, with_text: bool = True
) -> list[dict[str, Any]]:
    """Return documents of a generation's collection, in the order of their ids; raises as `find_document`."""
    for external_id in external_ids:
        if not isinstance(external_id, str):
            raise InputError(f"the id {external_id!r} is no string")
    stored = query_rows.find_documents(connection, live.collection_id, external_ids, with_text=with_text)
    return [stored.get(name) or refuse_document(live.collection, name) for name in external_ids]


def iterate_documents(
    connection: Connection, live: Generation, external_ids: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield what `find_documents` returns, of which a batch is in memory."""
    for begin in range(0, len(external_ids), _DOCUMENTS_PER_BATCH):
        yield from find_documents(connection, live, external_ids[begin : begin + _DOCUMENTS_PER_BATCH])


def refuse_document(collection: str, external_id: str) -> NoReturn:
    """Raise NotFoundError for a document that a collection does not have."""
    raise NotFoundError(f"collection {collection!r} has no document {external_id!r}")


def metric_of(recipe: Mapping[str, Any]) -> str:
    """Return the metric of a stored recipe."""
    return METRIC_OF_FAMILY[recipe["sketch"]["family"]]


def profile_of(generation: Generation) -> "Profile":
    """Return the profile of a generation for reading, even if this version would make other sketches."""
    from nearsim_db.similarity.profile import restore_for_reading

    return restore_for_reading(generation.recipe, generation.fingerprint, generation.bands, generation.rows)
