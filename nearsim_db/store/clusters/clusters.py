"""The clusters of a generation: ties between documents, members, survivors, and vetoes that keep clusters apart."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.records import CollectionId
from nearsim_db.similarity.arrays import Floats, Ints, Mask
from nearsim_db.similarity.batches import ColumnBatch
from nearsim_db.similarity.clustering import NO_EDGES
from nearsim_db.similarity.recipe import KeepPolicy
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.codec import unpacked_ids
from nearsim_db.store.driver.statements import GenerationStatements, statement

# Each row has the ties of one kind that a document has.
_ROWS_PER_FETCH = 400_000


@dataclass(frozen=True, slots=True)
class Ties(ColumnBatch):
    """Ties between documents; all arrays are int64 of shape (n, 2). A tie that was read from both ends occurs twice.

    If only documents with equal numbers are tied, the first twin with each number takes the place of the head.
    """

    pairs: Ints  # two heads that are a pair
    twins: Ints  # a head and its twin
    pins: Ints  # two documents that a person pinned

    @property
    def edges(self) -> Ints:
        """Return the ties of all kinds."""
        return np.concatenate((self.pairs, self.twins, self.pins))

    def among(self, doc_ids: Ints) -> "Ties":
        """Return the ties between these documents, sorted and without repetitions.

        In a tie of twins the head comes first, in other ties the smaller doc_id.
        """
        kinds = self.pairs, self.twins, self.pins
        pairs, twins, pins = (edges[np.isin(edges, doc_ids).all(axis=1)] for edges in kinds)
        return Ties(*(np.unique(edges, axis=0) for edges in (np.sort(pairs), twins, np.sort(pins))))


NO_TIES = Ties(NO_EDGES, NO_EDGES, NO_EDGES)


@dataclass(frozen=True, slots=True)
class Members(ColumnBatch):
    """Members of clusters, sorted by doc_id."""

    doc_ids: Ints  # int64, shape (n,)
    cluster_ids: Ints  # int64, shape (n,)
    survives: Mask  # bool, shape (n,): whether the member is the survivor

    @property
    def edges(self) -> Ints:
        """Return each member with its cluster_id, as int64 of shape (n, 2)."""
        return np.stack((self.doc_ids, self.cluster_ids), axis=1)

    def merged(self, other: "Members") -> "Members":
        """Merge with other members that have no document in common with these."""
        both = Members.joined([self, other])
        return both.take(np.argsort(both.doc_ids))


NO_MEMBERS = Members(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))


class ClusterTable(GenerationStatements):
    """The ties between a generation's documents, and the members of its clusters."""

    def stream_ties(self, collection_id: CollectionId, *, same_numbers: bool) -> Iterator[Ties]:
        """Yield all ties of a generation in batches.

        `same_numbers`: only tie pairs and twins whose numbers are equal
        """
        name = "read_ties_same_numbers" if same_numbers else "read_ties"
        self.run("plan_for_all_rows")
        with self.connection.backend.cursor(
            name=f"{self.connection.cursor_prefix}_{name}", binary=True
        ) as cursor:
            cursor.execute(statement(name, self.leaves), {"collection_id": collection_id})
            while rows := cursor.fetchmany(_ROWS_PER_FETCH):
                yield _ties(rows)

    def read_ties_of(self, collection_id: CollectionId, doc_ids: Ints, *, same_numbers: bool) -> Ties:
        """Return the ties of these documents; a tie between two of them may occur twice."""
        name = "read_ties_of_same_numbers" if same_numbers else "read_ties_of"
        parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
        return _ties(self.run(name, "binary", **parameters).rows())

    def read_similarities(self, pairs: Ints) -> Floats:
        """Return the similarities of pairs, whose documents may be heads or twins.

        `pairs` is int64 of shape (m, 2), the result float64 of shape (m,).
        """
        parameters = {"left_ids": packed_ids(pairs[:, 0]), "right_ids": packed_ids(pairs[:, 1])}
        content = self.run("read_similarities", "binary", **parameters).value()
        return np.frombuffer(content, ">f8").astype(np.float64)

    def read_first_twins(self, heads: Ints) -> Ints:
        """Return, for each of these heads and each digest of numbers among its twins, the first such twin."""
        return np.array(self.run("read_first_twins", doc_ids=packed_ids(heads)).values(), np.int64)

    def read_members(self) -> Members:
        """Return all members of all clusters."""
        return self._members("read_members", {})

    def read_members_of(self, doc_ids: Ints) -> Members:
        """Return those of the documents that are members of clusters."""
        return self._members("read_members_of", {"doc_ids": packed_ids(doc_ids)})

    def read_clusters_of(self, doc_ids: Ints) -> Members:
        """Return all members of the clusters to which these documents belong."""
        return self._members("read_clusters_of", {"doc_ids": packed_ids(doc_ids)})

    def read_survivors(self, cluster_ids: Ints) -> Members:
        """Return the survivors of these clusters."""
        return self._members("read_survivors", {"cluster_ids": packed_ids(cluster_ids)})

    def relabel(self, old_ids: Ints, new_ids: Ints) -> None:
        """Replace cluster_ids; no new id may occur among the old ids."""
        if len(old_ids):
            self.run("relabel_clusters", old_ids=packed_ids(old_ids), new_ids=packed_ids(new_ids))

    def replace_members(self, stored: Members, now: Members) -> None:
        """Write the differences between the `stored` rows of documents and the rows that they should have (`now`)."""
        removed = stored.doc_ids[~np.isin(stored.doc_ids, now.doc_ids)]
        if len(removed):
            self.run("delete_members", doc_ids=packed_ids(removed))

        changed = now.take(~_are_stored(now, stored))
        if len(changed.doc_ids):
            parameters = {
                "doc_ids": packed_ids(changed.doc_ids),
                "cluster_ids": packed_ids(changed.cluster_ids),
                "survives": packed(changed.survives.astype(np.int16)),
            }
            self.run("upsert_members", **parameters)

    def _members(self, name: str, parameters: Mapping[str, object]) -> Members:
        cluster_ids, survives, doc_ids = _unpacked(self.run(name, "binary", **parameters).rows())
        order = np.argsort(doc_ids)
        return Members(doc_ids[order], cluster_ids[order], survives[order] > 0)

    def find_vetoed(self, collection_id: CollectionId, doc_ids: Ints, cluster_ids: Ints) -> Ints:
        """Return those of the documents that have or had a veto, and those of the clusters with such a member."""
        parameters = {
            "collection_id": collection_id,
            "doc_ids": packed_ids(doc_ids),
            "cluster_ids": packed_ids(cluster_ids),
        }
        return unpacked_ids(self.run("find_vetoed", "binary", **parameters).value())

    def sample_largest(self, *, max_clusters: int, max_texts: int, min_texts: int) -> list[tuple[int, Ints]]:
        """Return the number of documents of each of the largest clusters, with the heads of a sample of its texts."""
        parameters = {"max_clusters": max_clusters, "max_texts": max_texts, "min_texts": min_texts}
        rows = self.run("sample_largest", "binary", **parameters).rows()
        return [(documents, unpacked_ids(heads)) for _, documents, heads in rows]

    def rank_documents(self, doc_ids: Ints, policy: KeepPolicy, scores: Floats) -> Ints:
        """Return documents in the order of the keep policy, the best first.

        `scores`: a number for each document, by which the rule `central` ranks them; the highest is the best
        """
        parameters = {
            "doc_ids": packed_ids(doc_ids),
            "rule_count": len(policy.deciding),
            "rules": list(map(str, policy.deciding)),
            "prefers_last": policy.prefers_last,
            "scores": scores.tolist(),
        }
        return unpacked_ids(self.run("rank_documents", "binary", **parameters).value())

    def read_chosen(self, doc_ids: Ints) -> Ints:
        """Return those of the documents that a person chose to keep."""
        return np.array(self.run("read_chosen", doc_ids=packed_ids(doc_ids)).values(), np.int64)

    def has_veto(self, collection_id: CollectionId) -> bool:
        """Whether a collection has or had a veto."""
        return bool(self.run("has_veto", collection_id=collection_id).value())

    def read_vetoes(self, collection_id: CollectionId) -> Ints:
        """Return the vetoes of a collection that are in force, as int64 of shape (v, 2)."""
        content = self.run("read_vetoes", "binary", collection_id=collection_id).value()
        return unpacked_ids(content).reshape(-1, 2)

    def find_pinned(self, collection_id: CollectionId, doc_ids: Ints) -> Ints:
        """Return those of the documents that have a pin in force."""
        parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
        return unpacked_ids(self.run("find_pinned", "binary", **parameters).value())


def _are_stored(now: Members, stored: Members) -> Mask:
    if not len(stored.doc_ids):
        return np.zeros(len(now.doc_ids), bool)
    rows = np.searchsorted(stored.doc_ids, now.doc_ids).clip(max=len(stored.doc_ids) - 1)
    are_equal: Mask = (
        (stored.doc_ids[rows] == now.doc_ids)
        & (stored.cluster_ids[rows] == now.cluster_ids)
        & (stored.survives[rows] == now.survives)
    )
    return are_equal


def _ties(rows: Sequence[tuple[int, int, bytes]]) -> Ties:
    """Return ties from rows of a document, a kind (0 for pairs, 1 for twins, 2 for pins) and packed other documents."""
    doc_ids, kinds, other_ids = _unpacked(rows)
    edges = np.stack((doc_ids, other_ids), axis=1)
    return Ties(*(edges[kinds == kind] for kind in range(3)))


def _unpacked(rows: Sequence[tuple[int, int, bytes]]) -> tuple[Ints, Ints, Ints]:
    """Return rows of (id, number, packed ids) as three arrays of equal length, in which id and number are repeated."""
    counts = np.array([len(row[2]) // 8 for row in rows], np.int64)
    keys = np.array([row[0] for row in rows], np.int64)
    numbers = np.array([row[1] for row in rows], np.int64)
    return np.repeat(keys, counts), np.repeat(numbers, counts), unpacked_ids(b"".join(row[2] for row in rows))
