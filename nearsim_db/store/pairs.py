"""The ledger of pairs, and the clusters that follow from it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from sqlalchemy import Connection

from nearsim_db.batches import VerifiedPairs
from nearsim_db.records import Cluster, Match, Pair
from nearsim_db.store.copying import Column, copy_columns
from nearsim_db.store.engine import driver
from nearsim_db.store.statements import Leaves, statement


def store_pairs(connection: Connection, leaves: Leaves, pairs: VerifiedPairs) -> int:
    """Put pairs into the ledger whose signatures still are those they were verified under; returns how many."""
    if not len(pairs.left):
        return 0
    inner = driver(connection)
    inner.execute(statement("create_found"))
    columns: list[Column] = [
        ("left_id", pairs.left),
        ("right_id", pairs.right),
        ("shared_bands", pairs.shared_bands.astype(np.int16)),
        ("estimate", pairs.estimate.astype(np.float32)),
        ("similarity", pairs.similarity),
        ("intersection_size", pairs.intersection.astype(np.int32)),
        ("union_size", pairs.union.astype(np.int32)),
        ("left_digest", _digest_column(pairs.left_digests)),
        ("right_digest", _digest_column(pairs.right_digests)),
    ]
    copy_columns(inner, sql.Identifier("found"), columns)
    stored = inner.execute(statement("store_pairs", leaves)).rowcount
    inner.execute("TRUNCATE found")
    return stored


def _digest_column(digests: Sequence[UUID]) -> NDArray[np.void]:
    return np.frombuffer(b"".join(digest.bytes for digest in digests), "V16")


def finish_pairs(connection: Connection, leaves: Leaves) -> None:
    """After a bulk load: index the right side and tie pairs to signatures."""
    driver(connection).execute(statement("finish_pairs", leaves))


def delete_pairs_of(connection: Connection, leaves: Leaves, doc_ids: Sequence[int]) -> None:
    """The pairs of documents that are no heads any more go."""
    driver(connection).execute(statement("delete_pairs_of", leaves), {"doc_ids": list(doc_ids)})


def read_edges(connection: Connection, leaves: Leaves, *, same_numbers: bool) -> NDArray[np.int64]:
    """What ties documents together, as (m, 2) int64; with `same_numbers` only between texts of equal numbers."""
    name = "read_edges_same_numbers" if same_numbers else "read_edges"
    blocks = [np.zeros((0, 2), np.int64)]
    with driver(connection).cursor(name="nearsim_edges", binary=True) as cursor:
        cursor.execute(statement(name, leaves))
        while rows := cursor.fetchmany(100_000):
            blocks.append(np.array(rows, np.int64))
    return np.concatenate(blocks)


def store_clusters(
    connection: Connection,
    leaves: Leaves,
    members: NDArray[np.int64],
    clusters: NDArray[np.int64],
    policy: str,
    sources: Sequence[str],
) -> None:
    """Replace a generation's clusters: document members[i] is in cluster clusters[i]; the policy picks survivors."""
    inner = driver(connection)
    inner.execute(statement("create_members"))
    copy_columns(inner, sql.Identifier("member"), [("doc_id", members), ("cluster_id", clusters)])
    inner.execute("ANALYZE member")
    inner.execute(statement("store_clusters", leaves), {"policy": policy, "sources": list(sources)})
    inner.execute("TRUNCATE member")


def stream_pairs(connection: Connection, leaves: Leaves, bands: int, min_similarity: float) -> Iterator[Pair]:
    """All pairs, twins expanded. A twin shares all `bands` bands."""
    parameters = {"bands": bands, "min_similarity": min_similarity}
    for row in _stream(connection, "read_pairs", leaves, parameters):
        left, right, similarity, intersection, union, estimate, shared = row
        yield Pair(left, right, float(similarity), intersection, union, _rounded(estimate), shared)


def stream_clusters(connection: Connection, leaves: Leaves) -> Iterator[Cluster]:
    """All clusters, the largest first."""
    for cluster, survivor, members in _stream(connection, "read_clusters", leaves, {}):
        yield Cluster(cluster, survivor, tuple(members))


def read_similar(
    connection: Connection, leaves: Leaves, doc_id: int, bands: int, min_similarity: float
) -> list[Match]:
    """The documents paired with one, the most similar first."""
    parameters = {"doc_id": doc_id, "bands": bands, "min_similarity": min_similarity}
    rows = cast(
        list[tuple[Any, ...]],
        driver(connection).execute(statement("read_similar", leaves), parameters).fetchall(),
    )
    return [
        Match(external_id, title, float(similarity), intersection, union, _rounded(estimate), shared)
        for external_id, title, similarity, intersection, union, estimate, shared in rows
    ]


def read_twins(
    connection: Connection, leaves: Leaves, heads: Sequence[int]
) -> list[tuple[int, str, str | None]]:
    """(head, external id, title) of some heads and all their twins."""
    rows = driver(connection).execute(statement("read_twins", leaves), {"doc_ids": list(heads)}).fetchall()
    return cast(list[tuple[int, str, str | None]], rows)


def _stream(
    connection: Connection, name: str, leaves: Leaves, parameters: Mapping[str, object]
) -> Iterator[tuple[Any, ...]]:
    with driver(connection).cursor(name=f"nearsim_{name}") as cursor:
        cursor.itersize = 5000
        cursor.execute(statement(name, leaves), parameters)
        yield from cursor


def _rounded(estimate: float) -> float:
    """A real column gives 0.699999988 for 0.7; six digits are more than any sketch resolves."""
    return round(float(estimate), 6)
