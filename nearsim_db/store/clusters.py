"""The clusters of one generation: what ties documents, who is a member, who survives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.records import Cluster, CollectionId
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ties:
    """What ties documents together: `pairs` (m, 2) int64 of heads, `twins` (t, 2) of (head, twin), `pins` (p, 2).

    Where the numbers must be the same, the first of the twins of one number stands for the head. Ties that were read
    from both ends are there twice.
    """

    pairs: Ids
    twins: Ids
    pins: Ids

    @property
    def edges(self) -> Ids:
        """All kinds together."""
        return np.concatenate((self.pairs, self.twins, self.pins))

    def joined(self, other: "Ties") -> "Ties":
        """These and others."""
        kinds = zip(self._kinds, other._kinds, strict=True)
        return Ties(*(np.concatenate(both) for both in kinds))

    def among(self, doc_ids: Ids) -> "Ties":
        """Those between documents that are given sorted, each once, the smaller document first but for twins."""
        pairs, twins, pins = (edges[np.isin(edges, doc_ids).all(axis=1)] for edges in self._kinds)
        return Ties(*(np.unique(edges, axis=0) for edges in (np.sort(pairs), twins, np.sort(pins))))

    @property
    def _kinds(self) -> tuple[Ids, Ids, Ids]:
        return self.pairs, self.twins, self.pins


NO_EDGES: Ids = np.zeros((0, 2), np.int64)
NO_TIES = Ties(NO_EDGES, NO_EDGES, NO_EDGES)


@dataclass(frozen=True, slots=True)
class Members:
    """Members of clusters, sorted by doc_id: doc_ids and cluster_ids int64, survives bool, all of one length."""

    doc_ids: Ids
    cluster_ids: Ids
    survives: NDArray[np.bool_]

    @property
    def edges(self) -> Ids:
        """Each member with its cluster_id, (m, 2)."""
        return np.stack((self.doc_ids, self.cluster_ids), axis=1)

    def take(self, chosen: NDArray[np.bool_]) -> "Members":
        """The rows that a mask chooses."""
        return Members(self.doc_ids[chosen], self.cluster_ids[chosen], self.survives[chosen])

    def joined(self, other: "Members") -> "Members":
        """These and others that are not among them."""
        order = np.argsort(np.concatenate((self.doc_ids, other.doc_ids)))
        return Members(
            np.concatenate((self.doc_ids, other.doc_ids))[order],
            np.concatenate((self.cluster_ids, other.cluster_ids))[order],
            np.concatenate((self.survives, other.survives))[order],
        )


NO_MEMBERS = Members(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))


def read_ties(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, *, same_numbers: bool
) -> Ties:
    """All ties of a generation; with `same_numbers` pairs and twins of equal numbers only."""
    name = "read_ties_same_numbers" if same_numbers else "read_ties"
    return _ties(connection, name, leaves, {"collection_id": collection_id})


def read_ties_of(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, doc_ids: Ids, *, same_numbers: bool
) -> Ties:
    """The ties of some documents; some may be given twice."""
    name = "read_ties_of_same_numbers" if same_numbers else "read_ties_of"
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
    return _ties(connection, name, leaves, parameters)


def read_similarities(connection: Connection, leaves: Leaves, pairs: Ids) -> NDArray[np.float64]:
    """How similar documents are of which a head or twin is paired with one of the other: (m, 2) int64 -> (m,)."""
    parameters = {"left_ids": packed_ids(pairs[:, 0]), "right_ids": packed_ids(pairs[:, 1])}
    row = (
        driver(connection).execute(statement("read_similarities", leaves), parameters, binary=True).fetchone()
    )
    return np.frombuffer(cast(tuple[bytes], row)[0], ">f8").astype(np.float64)


def read_family_firsts(connection: Connection, leaves: Leaves, heads: Ids) -> Ids:
    """Of the twins of some heads the first of each number."""
    parameters = {"doc_ids": packed_ids(heads)}
    rows = driver(connection).execute(statement("read_first_twins", leaves), parameters).fetchall()
    return np.array(rows, np.int64).reshape(-1)


def read_members(connection: Connection, leaves: Leaves) -> Members:
    """All members of all clusters."""
    return _members(connection, "read_members", leaves, {})


def read_members_of(connection: Connection, leaves: Leaves, doc_ids: Ids) -> Members:
    """Those of some documents that are in a cluster."""
    return _members(connection, "read_members_of", leaves, {"doc_ids": packed_ids(doc_ids)})


def read_clusters_of(connection: Connection, leaves: Leaves, doc_ids: Ids) -> Members:
    """All members of the clusters that some documents are in."""
    return _members(connection, "read_clusters_of", leaves, {"doc_ids": packed_ids(doc_ids)})


def read_survivors(connection: Connection, leaves: Leaves, cluster_ids: Ids) -> Members:
    """The survivors of some clusters."""
    return _members(connection, "read_survivors", leaves, {"cluster_ids": packed_ids(cluster_ids)})


def rank_documents(connection: Connection, doc_ids: Ids, policy: str, sources: Sequence[str]) -> Ids:
    """Documents in the order of the keep policy, the best first."""
    parameters = {"doc_ids": packed_ids(doc_ids), "policy": policy, "sources": list(sources)}
    row = driver(connection).execute(statement("rank_documents"), parameters, binary=True).fetchone()
    return _ids(cast(tuple[bytes], row)[0])


def relabel_clusters(connection: Connection, leaves: Leaves, old_ids: Ids, new_ids: Ids) -> None:
    """Clusters get other cluster_ids, none of which is among the old ones."""
    if len(old_ids):
        parameters = {"old_ids": packed_ids(old_ids), "new_ids": packed_ids(new_ids)}
        driver(connection).execute(statement("relabel_clusters", leaves), parameters)


def replace_members(connection: Connection, leaves: Leaves, stored: Members, now: Members) -> None:
    """Of some documents `stored` are the rows there are, `now` those there should be: write what differs."""
    gone = stored.doc_ids[~np.isin(stored.doc_ids, now.doc_ids)]
    if len(gone):
        driver(connection).execute(statement("delete_members", leaves), {"doc_ids": packed_ids(gone)})
    changed = now.take(~_are_stored(now, stored))
    if len(changed.doc_ids):
        parameters = {
            "doc_ids": packed_ids(changed.doc_ids),
            "cluster_ids": packed_ids(changed.cluster_ids),
            "survives": packed(changed.survives.astype(np.int16)),
        }
        driver(connection).execute(statement("upsert_members", leaves), parameters)


def stream_clusters(connection: Connection, leaves: Leaves) -> Iterator[Cluster]:
    """All clusters, the largest first."""
    with driver(connection).cursor(name="nearsim_clusters") as cursor:
        cursor.itersize = 5000
        for row in cursor.execute(statement("read_clusters", leaves)):
            cluster, survivor, members = cast(tuple[Any, ...], row)
            yield Cluster(cluster, survivor, tuple(members))


def _are_stored(now: Members, stored: Members) -> NDArray[np.bool_]:
    if not len(stored.doc_ids):
        return np.zeros(len(now.doc_ids), bool)
    rows = np.searchsorted(stored.doc_ids, now.doc_ids).clip(max=len(stored.doc_ids) - 1)
    same: NDArray[np.bool_] = (
        (stored.doc_ids[rows] == now.doc_ids)
        & (stored.cluster_ids[rows] == now.cluster_ids)
        & (stored.survives[rows] == now.survives)
    )
    return same


def _ties(connection: Connection, name: str, leaves: Leaves, parameters: Mapping[str, object]) -> Ties:
    keys, kinds, others = _unpacked(connection, name, leaves, parameters)
    edges = np.stack((keys, others), axis=1)
    return Ties(*(edges[kinds == kind] for kind in range(3)))


def _members(connection: Connection, name: str, leaves: Leaves, parameters: Mapping[str, object]) -> Members:
    cluster_ids, survives, doc_ids = _unpacked(connection, name, leaves, parameters)
    order = np.argsort(doc_ids)
    return Members(doc_ids[order], cluster_ids[order], survives[order] > 0)


def _unpacked(
    connection: Connection, name: str, leaves: Leaves, parameters: Mapping[str, object]
) -> tuple[Ids, Ids, Ids]:
    """Rows of (id, kind, many packed ids) as three arrays of a length, id and kind repeated."""
    with driver(connection).cursor(binary=True) as cursor:
        rows = cast(
            list[tuple[int, int, bytes]], cursor.execute(statement(name, leaves), parameters).fetchall()
        )
    lengths = np.array([len(row[2]) // 8 for row in rows], np.int64)
    keys = np.array([row[0] for row in rows], np.int64)
    kinds = np.array([row[1] for row in rows], np.int64)
    return np.repeat(keys, lengths), np.repeat(kinds, lengths), _ids(b"".join(row[2] for row in rows))


def _ids(content: bytes) -> Ids:
    return np.frombuffer(content, ">i8").astype(np.int64)
