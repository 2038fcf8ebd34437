"""Clusters of one generation: ties between documents, members and survivors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.records import CollectionId
from nearsim_db.similarity.arrays import Floats, Ints, Mask
from nearsim_db.similarity.batches import Columns
from nearsim_db.similarity.clustering import NO_EDGES
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.codec import unpacked_ids
from nearsim_db.store.driver.statements import GenerationStatements, statement

_DOCUMENTS_AT_ONCE = 400_000  # that have ties


@dataclass(frozen=True, slots=True)
class Ties(Columns):
    """Ties between documents: `pairs` (m, 2) int64 of heads, `twins` (t, 2) of (head, twin), `pins` (p, 2).

    If numbers must be equal, the first twin of each number stands for the head. Ties read from both ends occur twice.
    """

    pairs: Ints
    twins: Ints
    pins: Ints

    @property
    def edges(self) -> Ints:
        """Return all kinds concatenated."""
        return np.concatenate((self.pairs, self.twins, self.pins))

    def among(self, doc_ids: Ints) -> "Ties":
        """Return the ties between sorted documents, each once; the smaller document first except for twins."""
        kinds = self.pairs, self.twins, self.pins
        pairs, twins, pins = (edges[np.isin(edges, doc_ids).all(axis=1)] for edges in kinds)
        return Ties(*(np.unique(edges, axis=0) for edges in (np.sort(pairs), twins, np.sort(pins))))


NO_TIES = Ties(NO_EDGES, NO_EDGES, NO_EDGES)


@dataclass(frozen=True, slots=True)
class Members(Columns):
    """Members of clusters, sorted by doc_id: doc_ids and cluster_ids int64, survives bool, all of one length."""

    doc_ids: Ints
    cluster_ids: Ints
    survives: Mask

    @property
    def edges(self) -> Ints:
        """Return each member with its cluster_id, (m, 2)."""
        return np.stack((self.doc_ids, self.cluster_ids), axis=1)

    def merged(self, other: "Members") -> "Members":
        """Merge with other members, disjoint from these."""
        both = Members.joined([self, other])
        return both.take(np.argsort(both.doc_ids))


NO_MEMBERS = Members(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))


class ClusterTable(GenerationStatements):
    """Ties of a generation's documents, and the members of its clusters."""

    def stream_ties(self, collection_id: CollectionId, *, same_numbers: bool) -> Iterator[Ties]:
        """Yield all ties of a generation in batches; with `same_numbers` only pairs and twins of equal numbers."""
        name = "read_ties_same_numbers" if same_numbers else "read_ties"
        self.run("plan_for_all_rows")
        with self.connection.backend.cursor(
            name=f"{self.connection.cursor_prefix}_{name}", binary=True
        ) as cursor:
            cursor.execute(statement(name, self.leaves), {"collection_id": collection_id})
            while rows := cursor.fetchmany(_DOCUMENTS_AT_ONCE):
                yield _ties(rows)

    def read_ties_of(self, collection_id: CollectionId, doc_ids: Ints, *, same_numbers: bool) -> Ties:
        """Return the ties of some documents; some may occur twice."""
        name = "read_ties_of_same_numbers" if same_numbers else "read_ties_of"
        parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
        return _ties(self.run(name, "binary", **parameters).rows())

    def read_similarities(self, pairs: Ints) -> Floats:
        """Return the similarities of pairs, each end given by its head or a twin: (m, 2) int64 -> (m,)."""
        parameters = {"left_ids": packed_ids(pairs[:, 0]), "right_ids": packed_ids(pairs[:, 1])}
        content = self.run("read_similarities", "binary", **parameters).value()
        return np.frombuffer(content, ">f8").astype(np.float64)

    def read_first_twins(self, heads: Ints) -> Ints:
        """Return the first twin of each number for some heads."""
        return np.array(self.run("read_first_twins", doc_ids=packed_ids(heads)).values(), np.int64)

    def read_members(self) -> Members:
        """Return all members of all clusters."""
        return self._members("read_members", {})

    def read_members_of(self, doc_ids: Ints) -> Members:
        """Return the clustered documents among some."""
        return self._members("read_members_of", {"doc_ids": packed_ids(doc_ids)})

    def read_clusters_of(self, doc_ids: Ints) -> Members:
        """Return all members of the clusters of some documents."""
        return self._members("read_clusters_of", {"doc_ids": packed_ids(doc_ids)})

    def read_survivors(self, cluster_ids: Ints) -> Members:
        """Return the survivors of some clusters."""
        return self._members("read_survivors", {"cluster_ids": packed_ids(cluster_ids)})

    def relabel(self, old_ids: Ints, new_ids: Ints) -> None:
        """Replace cluster_ids by others that are not among the old ones."""
        if len(old_ids):
            self.run("relabel_clusters", old_ids=packed_ids(old_ids), new_ids=packed_ids(new_ids))

    def replace_members(self, stored: Members, now: Members) -> None:
        """Write the difference between the `stored` rows of some documents and the rows they should have (`now`)."""
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
        rows = self.run(name, "binary", **parameters).rows()
        cluster_ids, survives, doc_ids = _unpacked(rows)
        order = np.argsort(doc_ids)
        return Members(doc_ids[order], cluster_ids[order], survives[order] > 0)

    def find_vetoed(self, collection_id: CollectionId, doc_ids: Ints, cluster_ids: Ints) -> Ints:
        """Return the documents, and the clusters by any member, that are or were vetoed with another document."""
        parameters = {
            "collection_id": collection_id,
            "doc_ids": packed_ids(doc_ids),
            "cluster_ids": packed_ids(cluster_ids),
        }
        return unpacked_ids(self.run("find_vetoed", "binary", **parameters).value())

    def rank_documents(self, doc_ids: Ints, policy: str, names: Sequence[str], scores: Floats) -> Ints:
        """Return documents in the order of the keep policy, best first; `names` are its sources, or its field.

        `scores` are the numbers that a policy ranks by which does not rank by the documents, the highest best.
        """
        parameters = {
            "doc_ids": packed_ids(doc_ids),
            "policy": policy,
            "names": list(names),
            "scores": scores.tolist(),
        }
        return unpacked_ids(self.run("rank_documents", "binary", **parameters).value())

    def has_veto(self, collection_id: CollectionId) -> bool:
        """Whether a collection has or had a veto."""
        return bool(self.run("has_veto", collection_id=collection_id).value())

    def read_vetoes(self, collection_id: CollectionId) -> Ints:
        """Return the active vetoes of a collection, (v, 2) int64."""
        content = self.run("read_vetoes", "binary", collection_id=collection_id).value()
        return unpacked_ids(content).reshape(-1, 2)

    def find_pinned(self, collection_id: CollectionId, doc_ids: Ints) -> Ints:
        """Return the documents with an active pin."""
        parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
        return unpacked_ids(self.run("find_pinned", "binary", **parameters).value())


def _are_stored(now: Members, stored: Members) -> Mask:
    if not len(stored.doc_ids):
        return np.zeros(len(now.doc_ids), bool)
    rows = np.searchsorted(stored.doc_ids, now.doc_ids).clip(max=len(stored.doc_ids) - 1)
    same: Mask = (
        (stored.doc_ids[rows] == now.doc_ids)
        & (stored.cluster_ids[rows] == now.cluster_ids)
        & (stored.survives[rows] == now.survives)
    )
    return same


def _ties(rows: Sequence[tuple[int, int, bytes]]) -> Ties:
    keys, kinds, others = _unpacked(rows)
    edges = np.stack((keys, others), axis=1)
    return Ties(*(edges[kinds == kind] for kind in range(3)))


def _unpacked(rows: Sequence[tuple[int, int, bytes]]) -> tuple[Ints, Ints, Ints]:
    """Return rows of (id, kind, packed ids) as three arrays of equal length, id and kind repeated."""
    lengths = np.array([len(row[2]) // 8 for row in rows], np.int64)
    keys = np.array([row[0] for row in rows], np.int64)
    kinds = np.array([row[1] for row in rows], np.int64)
    return np.repeat(keys, lengths), np.repeat(kinds, lengths), unpacked_ids(b"".join(row[2] for row in rows))
