"""Documents, pairs and clusters in the form in which the review desk shows them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nearsim_db.records import CollectionId
from nearsim_db.similarity.arrays import Floats, Ints
from nearsim_db.similarity.batches import ColumnBatch
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document in a list."""

    doc_id: int
    external_id: str
    title: str | None
    source: str | None
    url: str | None
    date: str | None


@dataclass(frozen=True, slots=True)
class ShownDocument(NamedDocument):
    """A document for display, with its text."""

    body: str | None  # the text, possibly only its beginning
    characters: int | None  # length of the whole text; None if there is no text


@dataclass(frozen=True, slots=True)
class ClusterDocument(NamedDocument):
    """A document of a cluster."""

    is_survivor: bool


@dataclass(frozen=True, slots=True)
class Tie:
    """A tie between two documents of a cluster: a pair, the same features (twin), or a pin."""

    left_id: int
    right_id: int
    similarity: float
    kind: Literal["pair", "twin", "pin"]

    @property
    def strength(self) -> float:
        """The threshold up to which the tie exists; the ties of twins and pins exist at every threshold."""
        return self.similarity if self.kind == "pair" else _ABOVE_ALL_THRESHOLDS


_ABOVE_ALL_THRESHOLDS = 2.0
_KINDS: tuple[Literal["pair", "twin", "pin"], ...] = ("pair", "twin", "pin")
_TIE = np.dtype([("left", ">i8"), ("right", ">i8"), ("similarity", ">f8"), ("kind", ">i8")])


@dataclass(frozen=True, slots=True)
class ClusterTies(ColumnBatch):
    """The ties of a cluster, the strongest first.

    They are stored in arrays, because 1,000 documents may have half a million ties.
    """

    left: Ints
    right: Ints
    similarity: Floats
    kind: Ints  # index into _KINDS

    @classmethod
    def unpacked(cls, content: bytes) -> "ClusterTies":
        """Decode the result of the statement read_cluster_ties."""
        rows = np.frombuffer(content, _TIE)
        strength = np.where(rows["kind"] == 0, rows["similarity"], _ABOVE_ALL_THRESHOLDS)
        rows = rows[np.lexsort((rows["right"], rows["left"], -strength))]
        left, right, kind = (rows[name].astype(np.int64) for name in ("left", "right", "kind"))
        return cls(left, right, rows["similarity"].astype(np.float64), kind)

    def __len__(self) -> int:
        return len(self.left)

    def among(self, doc_ids: Sequence[int]) -> "ClusterTies":
        """Return the ties between these documents."""
        return self.take(np.isin(self.left, doc_ids) & np.isin(self.right, doc_ids))

    def __iter__(self) -> Iterator[Tie]:
        columns = (self.left, self.right, self.similarity, self.kind)
        for left_id, right_id, similarity, kind in zip(*(column.tolist() for column in columns), strict=True):
            yield Tie(left_id, right_id, similarity, _KINDS[kind])


@dataclass(frozen=True, slots=True)
class ReviewedPair:
    """The stored evidence for a pair, and the verdict on it."""

    similarity: float
    intersection: int | None
    union: int | None
    estimate: float
    shared_bands: int
    numbers_differ: bool
    verdict: str | None


@dataclass(frozen=True, slots=True)
class LivePair(ReviewedPair):
    """A pair of the live generation, which may be a pair of twins."""

    are_twins: bool


def read_documents(
    connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int], characters: int
) -> dict[int, ShownDocument]:
    """Return those documents that exist in a collection, by doc_id, with the first `characters` of their texts."""
    parameters = {"doc_ids": list(doc_ids), "characters": characters, "collection_id": collection_id}
    documents = run(connection, "read_review_document", **parameters).all(ShownDocument)
    return {document.doc_id: document for document in documents}


def read_pair(
    connection: Connection, collection_id: CollectionId, profile: str, left_id: int, right_id: int
) -> LivePair | None:
    """Return the stored pair of two documents; None if they are not a pair."""
    parameters = {
        "collection_id": collection_id,
        "profile": profile,
        "left_id": left_id,
        "right_id": right_id,
    }
    return run(connection, "read_review_pair", **parameters).first(LivePair)


def read_cluster(
    connection: Connection,
    collection_id: CollectionId,
    generation_id: int,
    cluster_id: int,
    max_documents: int,
) -> list[ClusterDocument]:
    """Return the first documents of a cluster by doc_id; none if there is no such cluster."""
    parameters = {
        "generation_id": generation_id,
        "collection_id": collection_id,
        "cluster_id": cluster_id,
        "max_documents": max_documents,
    }
    return run(connection, "read_cluster_documents", **parameters).all(ClusterDocument)


def read_ties(connection: Connection, generation_id: int, doc_ids: Sequence[int]) -> ClusterTies:
    """Return the ties between documents of a cluster."""
    parameters = {"generation_id": generation_id, "doc_ids": list(doc_ids)}
    return ClusterTies.unpacked(run(connection, "read_cluster_ties", None, "binary", **parameters).value())


def find_neighbours(connection: Connection, generation_id: int, cluster_id: int, doc_id: int) -> list[int]:
    """Return those documents of a cluster that are tied to its document `doc_id`."""
    parameters = {"generation_id": generation_id, "cluster_id": cluster_id, "doc_id": doc_id}
    return run(connection, "read_cluster_neighbours", **parameters).values()


def find_clusters(connection: Connection, generation_id: int, doc_ids: Sequence[int]) -> dict[int, int]:
    """Return the cluster of each document that is in a cluster, by doc_id."""
    parameters = {"generation_id": generation_id, "doc_ids": list(doc_ids)}
    return dict(run(connection, "find_cluster_ids", **parameters).rows())


def has_visible_work(connection: Connection, collection_id: CollectionId, generation_id: int) -> bool:
    """Whether changes of a collection, or work of a generation, wait for a worker, as far as the user may see them."""
    parameters = {"collection_id": collection_id, "generation_id": generation_id}
    return bool(run(connection, "has_visible_work", **parameters).value())
