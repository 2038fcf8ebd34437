"""Read the rows that queries show: documents, their state, pairs, clusters and verdicts. Does not import NumPy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from psycopg.rows import dict_row

from nearsim_db.records import Cluster, ClusterMember, CollectionId, Direction, Match, Pair, Verdict
from nearsim_db.store.attached import source_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import GenerationStatements, run, statement, stream_rows

# Every number of up to so many digits fits into a bigint.
_MAX_BIGINT_DIGITS = 18

Row = TypeVar("Row")


def find_document(
    connection: Connection, collection_id: CollectionId, external_id: str, *, with_text: bool = True
) -> dict[str, Any] | None:
    """Return all columns of a document as a mapping, or None if it does not exist.

    `with_text`: if the text is in an attached table, read it from there.
    """
    return find_documents(connection, collection_id, [external_id], with_text=with_text).get(external_id)


def find_documents(
    connection: Connection,
    collection_id: CollectionId,
    external_ids: Sequence[str],
    *,
    with_text: bool = True,
) -> dict[str, dict[str, Any]]:
    """Return all columns of the documents that exist, as `find_document` does, by external id."""
    parameters = {"collection_id": collection_id, "external_ids": list(external_ids)}
    with connection.backend.cursor(row_factory=dict_row) as cursor:
        documents = cursor.execute(statement("read_whole_documents"), parameters).fetchall()

    attached = [document for document in documents if document.pop("is_attached")]
    if attached and with_text:
        source = source_rows.find_source(connection, collection_id)
        doc_ids = [document["doc_id"] for document in attached]
        bodies = {} if source is None else source_rows.read_bodies(connection, source, doc_ids)
        for document in attached:
            document["body"] = bodies.get(document["doc_id"])
    return {document["external_id"]: document for document in documents}


def has_documents(connection: Connection, collection_id: CollectionId) -> bool:
    """Whether a collection has documents."""
    return bool(run(connection, "has_documents", collection_id=collection_id).value())


def lacks_sources(connection: Connection, collection_id: CollectionId, *, adds: bool) -> bool:
    """Whether a collection has documents, but none with a source.

    `adds`: documents without a source are being added, so that the collection also counts if it is empty.
    """
    return bool(run(connection, "lacks_sources", collection_id=collection_id, adds=adds).value())


@dataclass(frozen=True, slots=True)
class DocumentState:
    """The state of a document in an index."""

    revision: int  # present revision of the document
    signed: int | None  # revision that was signed; None if it is not signed
    feature_count: int | None  # None if it is not signed
    waits: bool  # whether it is queued to be signed
    set_aside: bool  # whether signing it failed too often


@dataclass(frozen=True, slots=True)
class PairFilter:
    """A filter for the pairs to read."""

    min_similarity: float = 0.0
    review: bool = False  # read the pairs to be reviewed (`match.review`) instead of the pairs that count
    max_similarity: float | None = None
    numbers_differ: bool = False  # only pairs whose numbers differ
    unreviewed: bool = False  # only pairs without a verdict or a decision
    sample: int | None = None  # maximum number of pairs, chosen by a hash of their doc_ids


@dataclass(frozen=True, slots=True)
class PairBounds:
    """The number of pairs, and the lowest and highest similarity among the most similar pairs."""

    pairs: int
    least: float | None  # None if there are fewer pairs than requested
    highest: float | None  # None if there are no pairs


_SAMPLE_PAIRS = 1_000


@dataclass(frozen=True, slots=True)
class IndexSample:
    """Counts in a sample of up to 1,000 pairs of heads and up to 1,000 documents."""

    pairs: int  # number of pairs in the sample
    numbers_differ: int  # number of pairs whose numbers differ
    within_source: int  # number of pairs whose documents have the same source
    sources: int  # number of sources of the documents
    features: float  # mean number of features of the documents


@dataclass(frozen=True, slots=True)
class StoredPair:
    """What an index stores about two documents."""

    is_indexed: bool  # whether both documents are signed
    is_pair: bool
    same_cluster: bool
    similarity: float | None  # stored similarity, also of a pair to be reviewed; None if none is stored
    cluster: int | None  # cluster of the left document or, if it is in none, of the right one
    left_id: int | None  # doc_id; None if there is no such document
    right_id: int | None  # doc_id; None if there is no such document


def with_rounded_estimate(make: Callable[..., Row]) -> Callable[..., Row]:
    """Return a function that rounds the estimate, the fourth column, and then calls `make`.

    Rounding is necessary because a real such as 0.7 is read as 0.699999988.
    """

    # No sketch is precise to six digits.
    def from_columns(*columns: Any) -> Row:
        return make(*columns[:3], round(columns[3], 6), *columns[4:])

    return from_columns


def _cluster(cluster: int, survivor: str | None, members: list[str], title: str | None) -> Cluster:
    return Cluster(cluster, survivor, tuple(members), title)


def stream_verdicts(
    connection: Connection, collection_id: CollectionId, by: str | None, *, undone: bool
) -> Iterator[Verdict]:
    """Yield the verdicts of a collection, newest first: those `by` a person, or all if `by` is None.

    `undone`: include verdicts that were undone.
    """
    parameters = {"collection_id": collection_id, "by": by, "undone": undone}
    return stream_rows(connection, Verdict, "list_verdicts", **parameters)


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """The evidence that `nearsim.why` returns for two documents, the smaller doc_id on the left.

    Unless both documents have features, `estimate`, `shared_bands`, `are_candidates` and `are_linked` are None.
    """

    is_pair: bool
    are_twins: bool
    similarity: float | None  # similarity of the stored pair; None if there is no stored pair
    estimate: float | None
    shared_bands: int | None
    numbers_differ: bool | None
    left_numbers: Sequence[str] | None  # numbers that only the left document has
    right_numbers: Sequence[str] | None  # numbers that only the right document has
    verified_at: datetime | None
    verdict: Literal["pinned", "vetoed"] | None
    verdict_by: str | None
    verdict_why: str | None
    same_cluster: bool
    are_candidates: bool | None  # whether their shared bands satisfy the recipe
    are_linked: bool | None  # whether a bucket that they share links them within the bucket limit
    left_state: str | None  # what keeps the left document from being compared; None if nothing does
    right_state: str | None  # the same for the right document
    verified: bool | None  # False if `similarity` is an estimate


@dataclass(frozen=True, slots=True)
class SharedBucket:
    """A bucket that two documents share."""

    band: int  # number of the band, from 0
    bucket: str  # the bucket hash as 16 hexadecimal digits
    members: int  # number of heads in the bucket
    place: int  # place of the earlier document in the bucket, from 1; up to the bucket limit, the bucket links the two


def read_evidence(connection: Connection, left_id: int, right_id: int, profile: str) -> PairEvidence:
    """Return the evidence for two documents of a collection in the live generation of a profile."""
    parameters = {"left_id": left_id, "right_id": right_id, "profile": profile}
    return run(connection, "read_pair_evidence", **parameters).one(PairEvidence)


class ShownRows(GenerationStatements):
    """Reads the rows of a generation that queries show."""

    def count_past_retention(self, collection_id: CollectionId) -> int:
        """Return the number of a collection's documents that have expired in a generation."""
        return int(self.run("count_past_retention", collection_id=collection_id).value())

    def has_expired(self, doc_id: int) -> bool:
        """Whether a document is older than the retention age of a generation."""
        return bool(self.run("has_expired", doc_id=doc_id).value())

    def read_document_state(self, doc_id: int) -> DocumentState | None:
        """Return the state of a document; None if it was deleted."""
        return self.run("read_document_state", doc_id=doc_id).first(DocumentState)

    def stream_pairs(self, wanted: PairFilter, max_pairs: int | None = None) -> Iterator[Pair]:
        """Yield pairs of a live generation, twins expanded."""
        make, parameters = with_rounded_estimate(Pair), asdict(wanted) | {"max_pairs": max_pairs}
        return self.stream(make, "read_pairs", **parameters)

    def bound_pairs(self, collection_id: CollectionId, wanted: PairFilter, max_pairs: int) -> PairBounds:
        """Return the bounds of up to `max_pairs` most similar pairs.

        Of the filter `wanted`, only the similarities and `review` are used.
        """
        parameters = asdict(wanted) | {"collection_id": collection_id, "max_pairs": max_pairs}
        # As long as statistics do not know a new generation, the planner expects few rows, and would join them by
        # comparing every row with every other.
        self.run("set_nested_loops", setting="off")
        bounds = self.run("bound_pairs", **parameters).one(PairBounds)
        self.run("set_nested_loops", setting="on")
        return bounds

    def sample_pairs(self, collection_id: CollectionId) -> IndexSample:
        """Return counts in a sample of the pairs and documents of an index."""
        return self.run("sample_pairs", collection_id=collection_id, sample=_SAMPLE_PAIRS).one(IndexSample)

    def list_sampled_pairs(self, max_pairs: int) -> list[tuple[int, int]]:
        """Return up to `max_pairs` pairs of heads, by doc_id."""
        return [(left, right) for left, right in self.run("list_sampled_pairs", sample=max_pairs).rows()]

    def look_up_pairs(
        self, collection_id: CollectionId, pairs: Sequence[tuple[str, str]]
    ) -> list[StoredPair]:
        """Return what an index stores about pairs of documents, which are named by external ids, in the same order."""
        left_ids, right_ids = [left for left, _ in pairs], [right for _, right in pairs]
        parameters = {"collection_id": collection_id, "left_ids": left_ids, "right_ids": right_ids}
        return self.run("look_up_pairs", **parameters).all(StoredPair)

    def read_similar(
        self,
        doc_id: int,
        min_similarity: float,
        max_matches: int | None,
        direction: Direction | None = None,
    ) -> list[Match]:
        """Return the documents that are paired with a document, the most similar first, then by doc_id.

        With a direction, `min_similarity` and the order refer to the fraction of the contained document's features that
        the other document has.
        """
        parameters = {
            "doc_id": doc_id,
            "min_similarity": min_similarity,
            "max_matches": max_matches,
            "direction": direction,
        }
        return self.run("read_similar", **parameters).all(with_rounded_estimate(Match))

    def stream_clusters(self, min_size: int) -> Iterator[Cluster]:
        """Yield the clusters of at least `min_size` documents (and of at least two), the largest first."""
        return self.stream(_cluster, "read_clusters", min_size=max(min_size, 2))

    def find_cluster(self, collection_id: CollectionId, name: str) -> int | None:
        """Return the number of the cluster that contains the document with external id `name`.

        If no document in a cluster has this id, `name` may be the number of a cluster. Otherwise returns None.
        """
        number = int(name) if name.isdecimal() and len(name) <= _MAX_BIGINT_DIGITS else None
        parameters = {"collection_id": collection_id, "name": name, "number": number}
        cluster_id = self.run("find_cluster", **parameters).value()
        return None if cluster_id is None else int(cluster_id)

    def stream_cluster(self, cluster_id: int) -> Iterator[ClusterMember]:
        """Yield the documents of a cluster: first the survivor, then the documents that are most similar to it."""
        return self.stream(ClusterMember, "read_cluster", cluster_id=cluster_id)

    def read_shared_buckets(self, left_id: int, right_id: int) -> list[SharedBucket]:
        """Return the buckets that two documents share, sorted by band; none unless both have features."""
        parameters = {"left_id": left_id, "right_id": right_id}
        return self.run("read_shared_buckets", **parameters).all(SharedBucket)
