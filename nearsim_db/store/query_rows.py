"""Rows that queries show: documents, their state, pairs, clusters and verdicts; without NumPy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from psycopg.rows import dict_row

from nearsim_db.records import Cluster, ClusterMember, CollectionId, Direction, Match, Pair, Verdict
from nearsim_db.store.attached import source_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import GenerationStatements, run, statement, stream_rows

# All numbers of so many digits fit bigint.
_MAX_BIGINT_DIGITS = 18

Row = TypeVar("Row")


def find_document(
    connection: Connection, collection_id: CollectionId, external_id: str, *, with_text: bool = True
) -> dict[str, Any] | None:
    """Return a whole document as a mapping, or None; the text of an attached collection is read from its table."""
    return find_documents(connection, collection_id, [external_id], with_text=with_text).get(external_id)


def find_documents(
    connection: Connection,
    collection_id: CollectionId,
    external_ids: Sequence[str],
    *,
    with_text: bool = True,
) -> dict[str, dict[str, Any]]:
    """Return the whole documents that exist, as mappings, by external id; texts as `find_document` does."""
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
    """Whether a collection has documents, or gets some without a source (`adds`), but none with a source."""
    return bool(run(connection, "lacks_sources", collection_id=collection_id, adds=adds).value())


@dataclass(frozen=True, slots=True)
class DocumentState:
    """The state of a document in an index."""

    revision: int
    signed: int | None  # revision of its signature
    feature_count: int | None
    waits: bool  # it is queued to be signed
    set_aside: bool  # signing it failed too often


@dataclass(frozen=True, slots=True)
class PairFilter:
    """Which pairs are read."""

    min_similarity: float = 0.0
    review: bool = False  # pairs to be reviewed (`match.review`), instead of pairs at the threshold
    max_similarity: float | None = None
    numbers_differ: bool = False  # only pairs whose numbers differ
    unreviewed: bool = False  # only pairs without verdict and decision
    sample: int | None = None  # at most so many, chosen by a hash of their doc_ids


@dataclass(frozen=True, slots=True)
class PairBounds:
    """The number of pairs, and the similarities of the most similar ones."""

    pairs: int
    least: float | None  # None if there are fewer pairs than wanted
    highest: float | None  # None if there are no pairs


_SAMPLE_PAIRS = 1_000


@dataclass(frozen=True, slots=True)
class IndexSample:
    """Figures of up to 1,000 pairs of heads, and of as many documents."""

    pairs: int
    numbers_differ: int  # pairs
    within_source: int  # pairs
    sources: int  # of the documents
    features: float  # mean number of the signatures


@dataclass(frozen=True, slots=True)
class StoredPair:
    """What an index has on two documents."""

    is_indexed: bool  # both are signed
    is_pair: bool
    same_cluster: bool
    similarity: float | None  # None unless it is stored, also of pairs to be reviewed
    cluster: int | None  # of the left document, else of the right one
    left_id: int | None  # None if there is no such document
    right_id: int | None


def with_rounded_estimate(make: Callable[..., Row]) -> Callable[..., Row]:
    """Return `make` with the estimate, the fourth column, rounded: a real such as 0.7 is read as 0.699999988."""

    # No sketch resolves six digits.
    def from_columns(*columns: Any) -> Row:
        return make(*columns[:3], round(columns[3], 6), *columns[4:])

    return from_columns


def _cluster(cluster: int, survivor: str, members: list[str], title: str | None) -> Cluster:
    return Cluster(cluster, survivor, tuple(members), title)


def stream_verdicts(
    connection: Connection, collection_id: CollectionId, by: str | None, *, undone: bool
) -> Iterator[Verdict]:
    """Yield the verdicts of a collection, newest first, `by` one person or all; with `undone` also undone verdicts."""
    parameters = {"collection_id": collection_id, "by": by, "undone": undone}
    return stream_rows(connection, Verdict, "list_verdicts", **parameters)


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """The evidence of `nearsim.why` for two documents, the smaller doc_id on the left.

    Estimate, shared bands, candidates and links are None unless both documents have features.
    """

    is_pair: bool
    are_twins: bool
    similarity: float | None  # of the stored pair
    estimate: float | None
    shared_bands: int | None
    numbers_differ: bool | None
    left_numbers: Sequence[str] | None  # only in the left document
    right_numbers: Sequence[str] | None  # only in the right document
    verified_at: datetime | None
    verdict: Literal["pinned", "vetoed"] | None
    verdict_by: str | None
    verdict_why: str | None
    same_cluster: bool
    are_candidates: bool | None  # their shared bands satisfy the recipe
    are_linked: bool | None  # they share a bucket that links them within the bucket limit
    left_state: str | None  # what keeps the document from being compared
    right_state: str | None
    verified: bool | None  # False: `similarity` is an estimate


@dataclass(frozen=True, slots=True)
class SharedBucket:
    """A bucket that two documents share."""

    band: int  # from 0
    bucket: str  # the hash as 16 hexadecimal digits
    members: int  # heads
    place: int  # of the earlier document in the bucket, from 1; the bucket links the two if this is within the limit


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

    def stream_pairs(self, wanted: PairFilter, max_pairs: int | None = None) -> Iterator[Pair]:
        """Yield pairs of a live generation, twins expanded."""
        make, parameters = with_rounded_estimate(Pair), asdict(wanted) | {"max_pairs": max_pairs}
        return self.stream(make, "read_pairs", **parameters)

    def bound_pairs(self, collection_id: CollectionId, wanted: PairFilter, max_pairs: int) -> PairBounds:
        """Return the bounds of the most similar pairs; of `wanted` only similarities and `review` count."""
        parameters = asdict(wanted) | {"collection_id": collection_id, "max_pairs": max_pairs}
        # Before statistics know a new generation, the planner expects few rows and would compare all with all.
        self.run("set_nested_loops", setting="off")
        bounds = self.run("bound_pairs", **parameters).one(PairBounds)
        self.run("set_nested_loops", setting="on")
        return bounds

    def sample_pairs(self, collection_id: CollectionId) -> IndexSample:
        """Return figures of some pairs and documents of an index."""
        return self.run("sample_pairs", collection_id=collection_id, sample=_SAMPLE_PAIRS).one(IndexSample)

    def look_up_pairs(
        self, collection_id: CollectionId, pairs: Sequence[tuple[str, str]]
    ) -> list[StoredPair]:
        """Return what an index has on pairs of documents, named by external ids, in their order."""
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
        """Return the documents paired with a document, most similar first, then by doc_id.

        With a direction, `min_similarity` and the order are by the share of the contained document's features.
        """
        parameters = {
            "doc_id": doc_id,
            "min_similarity": min_similarity,
            "max_matches": max_matches,
            "direction": direction,
        }
        return self.run("read_similar", **parameters).all(with_rounded_estimate(Match))

    def stream_clusters(self, min_size: int) -> Iterator[Cluster]:
        """Yield the clusters of at least `min_size` documents, largest first."""
        return self.stream(_cluster, "read_clusters", min_size=max(min_size, 2))

    def find_cluster(self, collection_id: CollectionId, name: str) -> int | None:
        """Return the number of the cluster of the document with external id `name`, else the cluster number `name`."""
        number = int(name) if name.isdecimal() and len(name) <= _MAX_BIGINT_DIGITS else None
        parameters = {"collection_id": collection_id, "name": name, "number": number}
        cluster_id = self.run("find_cluster", **parameters).value()
        return None if cluster_id is None else int(cluster_id)

    def stream_cluster(self, cluster_id: int) -> Iterator[ClusterMember]:
        """Yield the documents of a cluster, the survivor first, then the most similar to it."""
        return self.stream(ClusterMember, "read_cluster", cluster_id=cluster_id)

    def read_shared_buckets(self, left_id: int, right_id: int) -> list[SharedBucket]:
        """Return the buckets that two documents share, by band; none unless both have features."""
        parameters = {"left_id": left_id, "right_id": right_id}
        return self.run("read_shared_buckets", **parameters).all(SharedBucket)
