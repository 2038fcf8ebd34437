"""The ledger of pairs."""

from collections.abc import Iterator, Mapping
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.records import Match, Pair
from nearsim_db.similarity.batches import VerifiedPairs
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement


def store_pairs(connection: Connection, leaves: Leaves, pairs: VerifiedPairs) -> NDArray[np.int64]:
    """Put pairs into the ledger whose heads still are those they were verified under; returns the new ones, (m, 2).

    The heads stay as they are until the transaction ends.
    """
    kept = _hold_heads(connection, leaves, pairs)
    if not kept.any():
        return np.zeros((0, 2), np.int64)
    parameters = {
        "left_ids": packed(pairs.left[kept]),
        "right_ids": packed(pairs.right[kept]),
        "shared_bands": packed(pairs.shared_bands[kept].astype(np.int16)),
        "estimates": packed(pairs.estimate[kept].astype(np.float32)),
        "similarities": packed(pairs.similarity[kept]),
        "intersections": None
        if pairs.intersection is None
        else packed(pairs.intersection[kept].astype(np.int32)),
        "unions": None if pairs.union is None else packed(pairs.union[kept].astype(np.int32)),
        "distances": None if pairs.distance is None else packed(pairs.distance[kept]),
    }
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("store_pairs", leaves), parameters).fetchall()
    return np.array(rows, np.int64).reshape(-1, 2)


def _hold_heads(connection: Connection, leaves: Leaves, pairs: VerifiedPairs) -> NDArray[np.bool_]:
    """Hold the heads of pairs, and say which pairs were verified under what these are now."""
    if not len(pairs.left):
        return np.zeros(0, bool)
    parameters = {"doc_ids": packed(np.unique(np.concatenate((pairs.left, pairs.right))))}
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("lock_heads", leaves), parameters).fetchall()
    held = dict(cast(list[tuple[int, UUID]], rows))
    ends = zip(
        pairs.left.tolist(), pairs.left_digests, pairs.right.tolist(), pairs.right_digests, strict=True
    )
    return np.array([held.get(a) == x and held.get(b) == y for a, x, b, y in ends], np.bool_)


def finish_pairs(connection: Connection, leaves: Leaves) -> None:
    """After a bulk load: index the right side and tie pairs to signatures."""
    driver(connection).execute(statement("finish_pairs", leaves))


def delete_pairs_of(connection: Connection, leaves: Leaves, doc_ids: NDArray[np.int64]) -> None:
    """The pairs of documents that are no heads any more go."""
    if len(doc_ids):
        driver(connection).execute(statement("delete_pairs_of", leaves), {"doc_ids": packed(doc_ids)})


def stream_pairs(connection: Connection, leaves: Leaves, bands: int, min_similarity: float) -> Iterator[Pair]:
    """All pairs, twins expanded. A twin shares all `bands` bands."""
    parameters = {"bands": bands, "min_similarity": min_similarity}
    for row in _stream(connection, "read_pairs", leaves, parameters):
        left, right, similarity, intersection, union, estimate, shared, distance = row
        yield Pair(left, right, float(similarity), intersection, union, _rounded(estimate), shared, distance)


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
        Match(
            external_id, title, float(similarity), intersection, union, _rounded(estimate), shared, distance
        )
        for external_id, title, similarity, intersection, union, estimate, shared, distance in rows
    ]


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
