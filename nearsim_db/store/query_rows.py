"""Rows that queries show: documents, their state, pairs, clusters and verdicts. None of it needs NumPy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from psycopg.rows import dict_row

from nearsim_db.records import Cluster, ClusterMember, CollectionId, Direction, Match, Pair, Verdict
from nearsim_db.store.attached import source_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import GenerationStatements, run, statement, stream_rows

_DIGITS_OF_BIGINT = 18  # that any number may have

Row = TypeVar("Row")


def find_document(
    connection: Connection, collection_id: CollectionId, external_id: str, *, with_text: bool = True
) -> dict[str, Any] | None:
    """Return a whole document as a mapping, or None; its text is read from an attached table if it is there."""
    return find_documents(connection, collection_id, [external_id], with_text=with_text).get(external_id)


def find_documents(
    connection: Connection,
    collection_id: CollectionId,
    external_ids: Sequence[str],
    *,
    with_text: bool = True,
) -> dict[str, dict[str, Any]]:
    """Return whole documents that exist, as mappings, by id; texts in an attached table are read in one statement."""
    parameters = {"collection_id": collection_id, "external_ids": list(external_ids)}
    with connection.backend.cursor(row_factory=dict_row) as cursor:
        stored = cursor.execute(statement("read_whole_documents"), parameters).fetchall()
    attached = [one for one in stored if one.pop("is_attached")]
    if attached and with_text:
        source = source_rows.find_source(connection, collection_id)
        doc_ids = [one["doc_id"] for one in attached]
        bodies = {} if source is None else source_rows.read_bodies(connection, source, doc_ids)
        for one in attached:
            one["body"] = bodies.get(one["doc_id"])
    return {one["external_id"]: one for one in stored}


def has_documents(connection: Connection, collection_id: CollectionId) -> bool:
    """Whether a collection has documents."""
    return bool(run(connection, "has_documents", collection_id=collection_id).value())


def lacks_sources(connection: Connection, collection_id: CollectionId, *, adds: bool) -> bool:
    """Whether a collection has documents, or `adds` some without a source, but none with a source."""
    return bool(run(connection, "lacks_sources", collection_id=collection_id, adds=adds).value())


@dataclass(frozen=True, slots=True)
class DocumentState:
    """The revision of a document and that of its signature, None if it is not in the index.

    `waits`: it is queued to be signed; `set_aside`: signing it failed too often.
    """

    revision: int
    signed: int | None
    feature_count: int | None
    waits: bool
    set_aside: bool


@dataclass(frozen=True, slots=True)
class PairFilter:
    """Which pairs are read: those within similarities, whose numbers differ, that nobody decided, or a sample.

    With `review` those to be reviewed (`match.review`) instead of those that count. A sample has at most so many pairs,
    chosen by a hash of their doc_ids.
    """

    min_similarity: float = 0.0
    review: bool = False
    max_similarity: float | None = None
    numbers_differ: bool = False
    unreviewed: bool = False
    sample: int | None = None


@dataclass(frozen=True, slots=True)
class PairBounds:
    """The number of pairs, and the similarities of the most similar ones.

    `least` is None if there are not so many, `highest` if there are none.
    """

    pairs: int
    least: float | None
    highest: float | None


_SAMPLED = 1_000


@dataclass(frozen=True, slots=True)
class PairSample:
    """Of at most 1,000 pairs of heads, how many there are, have other numbers, and lie within one source.

    `sources` are those of as many documents, `features` their mean number.
    """

    pairs: int
    numbers_differ: int
    within_source: int
    sources: int
    features: float


@dataclass(frozen=True, slots=True)
class StoredPair:
    """What an index has on two documents; `similarity` is None unless it is stored, as of pairs to be reviewed too.

    `cluster` is that of the left document, or of the right one if that has none. Ids of unknown documents are None.
    """

    is_indexed: bool
    is_pair: bool
    same_cluster: bool
    similarity: float | None
    cluster: int | None
    left_id: int | None
    right_id: int | None


def with_rounded_estimate(make: Callable[..., Row]) -> Callable[..., Row]:
    """Round the estimate, the fourth column, to more digits than any sketch resolves: a real is read as 0.699999988."""

    def from_columns(*columns: Any) -> Row:
        return make(*columns[:3], round(columns[3], 6), *columns[4:])

    return from_columns


def _cluster(cluster: int, survivor: str, members: list[str], title: str | None) -> Cluster:
    return Cluster(cluster, survivor, tuple(members), title)


def stream_verdicts(
    connection: Connection, collection_id: CollectionId, by: str | None, *, undone: bool
) -> Iterator[Verdict]:
    """Yield the verdicts of a collection, newest first, of one person or all; with `undone` also those undone."""
    parameters = {"collection_id": collection_id, "by": by, "undone": undone}
    return stream_rows(connection, Verdict, "list_verdicts", **parameters)


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """The evidence of `nearsim.why` for two documents, the smaller doc_id on the left.

    `similarity` is that of the stored pair, an estimate unless `verified`. `are_candidates`: their shared bands
    satisfy the recipe; `are_linked`: the bucket limit leaves a bucket that they share. The states say what keeps a
    document from being compared, None if nothing does. Estimate, shared bands, candidates and links are None unless
    both documents have features.
    """

    is_pair: bool
    are_twins: bool
    similarity: float | None
    estimate: float | None
    shared_bands: int | None
    numbers_differ: bool | None
    left_numbers: Sequence[str] | None
    right_numbers: Sequence[str] | None
    verified_at: datetime | None
    verdict: Literal["pinned", "vetoed"] | None
    verdict_by: str | None
    verdict_why: str | None
    same_cluster: bool
    are_candidates: bool | None
    are_linked: bool | None
    left_state: str | None
    right_state: str | None
    verified: bool | None


@dataclass(frozen=True, slots=True)
class SharedBucket:
    """A bucket that two documents share: its band, from 0, its hash as 16 hexadecimal digits, and its number of heads.

    `place` is that of the earlier of the two among them, from 1; the bucket links the two if it is within the limit.
    """

    band: int
    bucket: str
    members: int
    place: int


def read_evidence(connection: Connection, left_id: int, right_id: int, profile: str) -> PairEvidence:
    """Return the evidence for two documents of a collection in the live generation of a profile."""
    parameters = {"left_id": left_id, "right_id": right_id, "profile": profile}
    return run(connection, "read_pair_evidence", **parameters).one(PairEvidence)


class ShownRows(GenerationStatements):
    """Rows of a generation that queries show."""

    def count_past_retention(self, collection_id: CollectionId) -> int:
        """Return the number of a collection's documents that have expired in a generation."""
        return int(self.run("count_past_retention", collection_id=collection_id).value())

    def has_expired(self, doc_id: int) -> bool:
        """Whether a document is older than the retention age of a generation."""
        return bool(self.run("has_expired", doc_id=doc_id).value())

    def read_document_state(self, doc_id: int) -> DocumentState | None:
        """Return the state of a document; None if it was deleted."""
        return self.run("read_document_state", doc_id=doc_id).first(DocumentState)

    def stream_pairs(self, wanted: PairFilter, most: int | None = None) -> Iterator[Pair]:
        """Yield pairs of a live generation, twins expanded; at most so many."""
        make, parameters = with_rounded_estimate(Pair), asdict(wanted) | {"most": most}
        return self.stream(make, "read_pairs", **parameters)

    def bound_pairs(self, collection_id: CollectionId, wanted: PairFilter, most: int) -> PairBounds:
        """Return the bounds of the `most` most similar pairs between similarities; other conditions are ignored."""
        parameters = asdict(wanted) | {"collection_id": collection_id, "most": most}
        # Before the statistics know a new generation, the planner expects few rows, and would compare all with all.
        self.run("set_nested_loops", setting="off")
        found = self.run("bound_pairs", **parameters).one(PairBounds)
        self.run("set_nested_loops", setting="on")
        return found

    def sample_pairs(self, collection_id: CollectionId) -> PairSample:
        """Return figures of some pairs and documents of an index."""
        return self.run("sample_pairs", collection_id=collection_id, most=_SAMPLED).one(PairSample)

    def look_up_pairs(self, collection_id: CollectionId, ends: Sequence[tuple[str, str]]) -> list[StoredPair]:
        """Return what an index has on pairs of documents, by external ids, in their order."""
        left, right = [one for one, _ in ends], [other for _, other in ends]
        parameters = {"collection_id": collection_id, "left_ids": left, "right_ids": right}
        return self.run("look_up_pairs", **parameters).all(StoredPair)

    def read_similar(
        self, doc_id: int, min_similarity: float, most: int | None, direction: Direction | None = None
    ) -> list[Match]:
        """Return the documents paired with one, most similar first, then by doc_id; at most so many.

        With a direction `min_similarity` and the order are those of the share of the contained document's features.
        """
        parameters = {
            "doc_id": doc_id,
            "min_similarity": min_similarity,
            "most": most,
            "direction": direction,
        }
        return self.run("read_similar", **parameters).all(with_rounded_estimate(Match))

    def stream_clusters(self, min_size: int) -> Iterator[Cluster]:
        """Yield all clusters of at least so many documents, largest first."""
        return self.stream(_cluster, "read_clusters", min_size=max(min_size, 2))

    def find_cluster(self, collection_id: CollectionId, name: str) -> int | None:
        """Return the number of the cluster that has a document of that external id, else of that number."""
        number = int(name) if name.isdecimal() and len(name) <= _DIGITS_OF_BIGINT else None
        parameters = {"collection_id": collection_id, "name": name, "number": number}
        found = self.run("find_cluster", **parameters).value()
        return None if found is None else int(found)

    def stream_cluster(self, cluster_id: int) -> Iterator[ClusterMember]:
        """Yield the documents of a cluster, the survivor first, then the most similar to it."""
        return self.stream(ClusterMember, "read_cluster", cluster_id=cluster_id)

    def read_shared_buckets(self, left_id: int, right_id: int) -> list[SharedBucket]:
        """Return the buckets that two documents share, by band; none unless both have features."""
        parameters = {"left_id": left_id, "right_id": right_id}
        return self.run("read_shared_buckets", **parameters).all(SharedBucket)
