"""Answer from stored rows: pairs, clusters, similar documents, statistics.

No text is encoded, so even a generation whose sketches this version cannot reproduce answers.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from nearsim_db.errors import EmptyIndexError, InputError, NotFoundError
from nearsim_db.records import DEFAULT, Cluster, ClusterMember, Direction, Matches, Pair, Results, Verdict
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
# How many pairs are read for a table if all are equally similar, such as the pairs of many twins.
_MAX_EQUAL_PAIRS = 100_000


@dataclass(frozen=True, slots=True)
class PairPage:
    """The most similar pairs of a collection."""

    pairs: Results[Pair]
    total: int  # number of all pairs of the collection that meet the filter


@dataclass(frozen=True, slots=True)
class IndexedProfile:
    """A profile of a collection with its live index, or with its newest index if none is live."""

    profile: str
    state: str  # building, catching_up, ready, live, paused, retired or abandoned
    stage: str  # stage of the build: sign, bands, pairs, clusters or done
    recipe: "Recipe"
    bands: int
    rows: int  # sketch positions per band
    generation_id: int  # number of the index
    created_at: datetime  # when the index was created
    live_at: datetime | None  # when the index became live


class Answers:
    """Reads answers from the live generation, each in one transaction; without documents the answers are empty.

    If the chosen generation is dropped before it is read, the answer is read from the new live generation.
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
        """Open a collection in the database at `url`, or at NEARSIM_DATABASE_URL, or on the embedded server."""
        return cls(Database.connect(url), collection, profile)

    def close(self) -> None:
        """Release threads and connections."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def has_collection(self) -> bool:
        """Whether the collection exists; if it does not, other methods raise MissingCollectionError or create it."""
        with self.database.transaction() as connection:
            return collection_rows.find_collection(connection, self.collection) is not None

    def profiles(self) -> list[IndexedProfile]:
        """Return the profiles of the collection, each with its live index, or with its newest index if none is live."""
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
        """Return the metric of the profile: jaccard, containment, weighted_jaccard, cosine or euclidean."""
        return metric_of(self._recipe()[1])

    def least_similarity(self) -> tuple[str, float, float]:
        """Return the profile's name, its threshold, and the lowest similarity that a stored pair can have.

        If the threshold is a distance d, this similarity is 1 / (1 + d). It is 0 if sharing enough bands makes a pair.
        """
        profile, recipe = self._recipe()
        match, is_distance = recipe["match"], metric_of(recipe) == "euclidean"
        threshold = float(match["threshold"])
        if match["verify"] == "bands" or match["certain_shared_bands"]:
            return profile, threshold, 0.0
        return profile, threshold, 1 / (1 + threshold) if is_distance else threshold

    def get(self, external_id: str) -> dict[str, Any]:
        """Return the stored row of a document. Raises NotFoundError if there is none."""
        with self.database.transaction() as connection:
            collection = collection_rows.get_collection(connection, self.collection)
            document = query_rows.find_document(connection, collection.collection_id, external_id)
        return document or refuse_document(self.collection, external_id)

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
        """Stream all pairs, or with `review` the pairs to be reviewed (`match.review`), in no particular order.

        Pairs of twins are included. `unreviewed` leaves out pairs that have a verdict or a decision of the review desk.
        `sample` is a number of pairs to draw; every call draws the same pairs. Close the stream when leaving it early.
        """
        chosen = PairFilter(min_similarity, review, max_similarity, numbers_differ, unreviewed, sample)
        pairs = self._stream(lambda connection, live: live.tables(connection).shown.stream_pairs(chosen))
        return Results(pairs, Pair)

    def look_up_pairs(self, ends: Sequence[tuple[str, str]]) -> list[StoredPair]:
        """Return what the index stores about pairs of documents; `ends` are their external ids, which set the order."""

        def read(connection: Connection) -> list[StoredPair]:
            live = self._live(connection)
            return live.tables(connection).shown.look_up_pairs(live.collection_id, ends)

        return self._ask(read)

    def clusters(self, min_size: int = 2) -> Results[Cluster]:
        """Stream all clusters of at least `min_size` documents, the largest first.

        Call `close` if you stop before the last cluster.
        """
        clusters = self._stream(
            lambda connection, live: live.tables(connection).shown.stream_clusters(min_size)
        )
        return Results(clusters, Cluster)

    def cluster(self, name: str) -> Results[ClusterMember]:
        """Stream the documents of a cluster: first the survivor, then the others by their similarity to it.

        `name` is the id of a document of the cluster or, if no clustered document has that id, the cluster's number.
        Raises NotFoundError if there is no such cluster. Close the stream when leaving it early.
        """

        def read(connection: Connection, live: Generation) -> Iterator[ClusterMember]:
            tables = live.tables(connection)
            cluster_id = tables.shown.find_cluster(live.collection_id, name)
            if cluster_id is None:
                find_document(connection, live, name, with_text=False)
                raise NotFoundError(f"document {name!r} is in no cluster")
            return tables.shown.stream_cluster(cluster_id)

        return Results(self._stream(read, name), ClusterMember)

    def similar(
        self,
        external_id: str,
        min_similarity: float = 0.0,
        limit: int | None = None,
        direction: Direction | None = None,
    ) -> Matches:
        """Return the documents that form a pair with a document, the most similar first, then by doc_id.

        `direction` "contains" returns the documents that this one contains, and "contained_in" those that contain it.
        The order then follows the fraction of the contained document that is in the other one; this fraction is at
        least `min_similarity`, by default the threshold. `limit` is the maximum number of documents; `has_more` of the
        answer says whether there are others. If the index has only an older text of the document, a warning says so.

        Raises NotFoundError, with the reason, for a document that is not in the index, and InputError for a direction
        unless the metric is containment, or Jaccard with similarities verified on the features.
        """
        checked_limit(limit)

        def read(connection: Connection, live: Generation) -> tuple[Matches, str | None]:
            doc_id = find_document(connection, live, external_id, with_text=False)["doc_id"]
            warning = live_generation.refuse_unindexed(connection, live, doc_id, external_id)

            # Read one document more than the limit, to see whether there are others.
            min_share = least_share(live, direction, min_similarity)
            shown = live.tables(connection).shown
            rows = shown.read_similar(doc_id, min_share, limit and limit + 1, direction)
            matches = rows[:limit]
            return Matches(matches, metric_of(live.recipe), has_more=len(rows) > len(matches)), warning

        matches, warning = self._ask(lambda connection: read(connection, self._live(connection, external_id)))
        self.warnings += [] if warning is None else [warning]
        return matches

    def verdicts(self, by: str | None = None, *, undone: bool = False) -> Results[Verdict]:
        """Stream the verdicts on pairs, the newest first.

        `by`: only the verdicts of this person. `undone`: include verdicts that were undone.
        """
        return Results(self._verdicts(by, undone=undone), Verdict)

    def _verdicts(self, by: str | None, *, undone: bool) -> Generator[Verdict, None, None]:
        with self.database.transaction() as connection:
            collection = collection_rows.get_collection(connection, self.collection)
            yield from query_rows.stream_verdicts(connection, collection.collection_id, by, undone=undone)

    def stats(self, profile_name: str | None = None, *, recount: bool = False) -> dict[str, Any]:
        """Return counts, sizes in bytes, and probabilities of the collection and of one profile.

        The figures of buckets were counted by the build, at `buckets_counted_at`. With `recount` all band rows are read
        to count the buckets now.
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
        """Return the name and the recipe of the profile that answers; of an empty collection, the defaults."""
        try:
            chosen = self._ask(
                lambda connection: live_generation.find_newest(connection, self.collection, self.profile)
            )
        except EmptyIndexError:
            from nearsim_db.similarity.recipe import Recipe, to_mapping

            return DEFAULT, to_mapping(Recipe())
        return chosen.profile, chosen.recipe

    def _live(self, connection: Connection, external_id: str | None = None) -> Generation:
        """Return the live generation. Raises NotFoundError if there is none.

        If `external_id` is passed and the collection is empty, the error says that this document does not exist.
        """
        try:
            return live_generation.find_live(connection, self.collection, self.profile)
        except EmptyIndexError:
            if external_id is None:
                raise
            return refuse_document(self.collection, external_id)

    def _ask(self, read: Callable[[Connection], Answer]) -> Answer:
        """Return the result of `read` in one snapshot, where rows stay visible even if their generation is dropped."""

        def query() -> Answer:
            with self.database.engine.snapshot() as connection:
                return read(connection)

        with translate_errors():
            return retry_if_replaced(query)

    def _stream(
        self, read: Callable[[Connection, Generation], Iterator[Answer]], external_id: str | None = None
    ) -> Generator[Answer, None, None]:
        """Yield the rows that `read` returns, all from one snapshot."""
        with translate_errors(), self.database.engine.snapshot() as connection:

            def query() -> tuple[list[Answer], Iterator[Answer]]:
                rows = read(connection, self._live(connection, external_id))
                # Once the first row is read, the transaction keeps the tables from being dropped, and its snapshot
                # keeps the rows visible.
                return list(islice(rows, 1)), rows

            try:
                first_row, later_rows = retry_if_replaced(query, connection.rollback)
            except EmptyIndexError:
                return
            yield from first_row
            yield from later_rows


def least_reviewed(answers: Answers) -> tuple[str, float]:
    """Return the profile's name, and the lowest similarity of pairs to be reviewed, 0 if it stores no such pairs."""
    profile, recipe = answers._recipe()
    return profile, float(recipe["match"].get("review", 0))


def signature_positions(answers: Answers) -> int:
    """Return the number of positions of the profile's signatures. Raises InputError if `positions_of` returns None."""
    profile, recipe = answers._recipe()
    if (positions := positions_of(recipe)) is None:
        raise InputError(
            f"profile {profile!r} has sketches of the family {recipe['sketch']['family']}, whose positions cannot be "
            "compared one by one; name a profile of the family fast_similarity or minhash"
        )
    return positions


def most_similar_pairs(
    answers: Answers,
    limit: int,
    min_similarity: float = 0.0,
    *,
    review: bool = False,
    max_similarity: float | None = None,
) -> PairPage:
    """Return at least the `limit` most similar pairs among those that `Answers.pairs` streams, and the number of all.

    The pairs of the page are unordered. They include every pair that is as similar as the least similar pair of the
    page. If all pairs are equally similar, the page has at most 100,000 of them.
    """
    chosen = PairFilter(min_similarity, review, max_similarity)
    total = 0

    def read(connection: Connection, live: Generation) -> Iterator[Pair]:
        nonlocal total
        shown = live.tables(connection).shown
        bounds = shown.bound_pairs(live.collection_id, chosen, limit)
        total = bounds.pairs
        bounded = replace(chosen, min_similarity=bounds.least or min_similarity)
        max_pairs = max(limit, _MAX_EQUAL_PAIRS) if bounds.least == bounds.highest else None
        return shown.stream_pairs(bounded, max_pairs)

    pairs = answers._stream(read)
    # Reading the first pair calls `read`, which counts all pairs in the same snapshot.
    first = list(islice(pairs, 1))
    return PairPage(Results(_continued(first, pairs), Pair), total)


def _continued(
    rows_read: Sequence[Answer], later_rows: Generator[Answer, None, None]
) -> Generator[Answer, None, None]:
    """Yield rows that were read already, and then the later rows."""
    with closing(later_rows):
        yield from rows_read
        yield from later_rows


def list_newest(database: Database, collection: str) -> list[Generation]:
    """Return the live generation of every profile of a collection, or its newest generation if none is live."""
    with database.transaction() as connection:
        existing = live_generation.list_of_collection(connection, collection)
        names = sorted({generation.profile for generation in existing})
        return [live_generation.choose_newest(connection, collection, existing, name) for name in names]


def describe_collection(database: Database, name: str) -> dict[str, Any]:
    """Return a collection's number of documents, the table it is attached to, its profiles and its queued changes."""
    with database.transaction() as connection:
        collection = collection_rows.get_collection(connection, name)
        attachment = find_attachment(connection, collection.collection_id)
        documents = collection_rows.count_documents(connection, collection.collection_id)
        trouble = obstacles.list_problems(connection, collection.collection_id).get(collection.name)
        waiting = backlog.count_changes(connection, collection.collection_id)

    profiles = [
        {
            "profile": generation.profile,
            "state": generation.state,
            "threshold": generation.recipe["match"]["threshold"],
        }
        for generation in list_newest(database, name)
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
    """Return a limit on matches; None means no limit. Raises InputError if it is below 1."""
    if limit is not None and limit < 1:
        raise InputError(f"a limit of {limit} matches is out of range; choose 1 or more")
    return limit


def checked_ids(external_ids: Iterable[str]) -> list[str]:
    """Return external ids as a list. Raises InputError for a single string, whose characters would count as ids."""
    if isinstance(external_ids, str):
        raise InputError(f"{external_ids!r} is a string; give a list of ids")
    return list(external_ids)


def least_share(live: Generation, direction: Direction | None, min_similarity: float) -> float:
    """Return the minimum similarity of matches or, with a direction, the minimum fraction of the contained document.

    With a direction, a `min_similarity` of 0 means the threshold. Raises InputError for a similarity outside 0..1, and
    for a direction unless the index counts the features that two documents have in common.
    """
    if not 0 <= min_similarity <= 1:
        raise InputError(f"a similarity of {min_similarity} is outside 0..1")
    if direction is None:
        return min_similarity
    metric, verify = metric_of(live.recipe), live.recipe["match"]["verify"]
    if metric != "containment" and (metric != "jaccard" or verify != "exact"):
        raise InputError(
            f"profile {live.profile!r} has the metric {metric} and match.verify = {verify}, which count no features in "
            "common; name a profile of the family winnow, such as one of the preset embedded-stories, or one with the "
            "metric jaccard and match.verify = exact"
        )
    return min_similarity or float(live.recipe["match"]["threshold"])


def find_document(
    connection: Connection, live: Generation, external_id: str, *, with_text: bool = True
) -> dict[str, Any]:
    """Return a document of a generation's collection.

    Raises NotFoundError if it does not exist, and InputError if the id is not a string.
    """
    return find_documents(connection, live, [external_id], with_text=with_text)[0]


def find_documents(
    connection: Connection, live: Generation, external_ids: Sequence[str], *, with_text: bool = True
) -> list[dict[str, Any]]:
    """Return documents of a generation's collection, in the order of `external_ids`; errors as in `find_document`."""
    for external_id in external_ids:
        if not isinstance(external_id, str):
            raise InputError(f"the id {external_id!r} is not a string")

    stored = query_rows.find_documents(connection, live.collection_id, external_ids, with_text=with_text)
    return [stored.get(name) or refuse_document(live.collection, name) for name in external_ids]


def iterate_documents(
    connection: Connection, live: Generation, external_ids: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the documents that `find_documents` returns, with only a batch of them in memory."""
    for begin in range(0, len(external_ids), _DOCUMENTS_PER_BATCH):
        yield from find_documents(connection, live, external_ids[begin : begin + _DOCUMENTS_PER_BATCH])


def refuse_document(collection: str, external_id: str) -> NoReturn:
    """Raise NotFoundError for a document that a collection does not have."""
    raise NotFoundError(f"collection {collection!r} has no document {external_id!r}")


def metric_of(recipe: Mapping[str, Any]) -> str:
    """Return the metric of a stored recipe."""
    return METRIC_OF_FAMILY[recipe["sketch"]["family"]]


def positions_of(recipe: Mapping[str, Any]) -> int | None:
    """Return the number of positions of a sketch; None if equal positions do not estimate the Jaccard similarity."""
    sketch = recipe["sketch"]
    return int(sketch["k"]) if sketch["family"] in ("fast_similarity", "minhash") else None


def profile_of(generation: Generation) -> "Profile":
    """Return the profile of a generation for reading, even if this version would make different sketches."""
    from nearsim_db.similarity.profile import restore_for_reading

    return restore_for_reading(generation.recipe, generation.fingerprint, generation.bands, generation.rows)
