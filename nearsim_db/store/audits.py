"""What an audit reads of an index and its documents, and what a repair takes out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.codec import from_bigint, sketches_from, to_bigint
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import SCHEMA, Leaves, statement
from nearsim_db.store.work.queue import Stage

Ids = NDArray[np.int64]

# The bigints by which the rows of a table, and the entries of its index on them, are counted and summed.
_KEYS = {
    "signature": ("doc_id", "doc_id"),
    "band": ("bucket_hash", "doc_id"),
    "similar_pair": ("left_id", "right_id"),
    "cluster_member": ("doc_id", "doc_id"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """A document as it is there, and its signature: what there is none of is None.

    `first` is the first document that is signed with the same digest.
    """

    doc_id: int
    is_there: bool
    is_inside: bool
    revision: int | None
    is_signed: bool
    signed_revision: int | None
    feature_count: int | None
    digest: UUID | None
    sketch: bytes | None
    numbers: int | None
    head_id: int | None
    first: int | None


@dataclass(frozen=True, slots=True)
class StoredPair:
    """A pair with all that is stored of it."""

    left: int
    right: int
    shared_bands: int
    estimate: float
    similarity: float
    intersection: int | None
    union: int | None
    distance: float | None


@dataclass(frozen=True, slots=True)
class LeafState:
    """How a table stands in the catalog; `indexes` are the columns of those that can be used."""

    is_logged: bool
    is_attached: bool
    indexes: Sequence[str]
    unusable: Sequence[str]
    foreign_keys: int


def ids_after(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, after: int, amount: int
) -> list[int]:
    """The next documents, and signatures of documents that are gone, by doc_id."""
    parameters = {"collection_id": collection_id, "after": after, "amount": amount}
    return _column(connection, "list_ids_after", leaves, parameters)


def sample_ids(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, amount: int, seed: int
) -> list[int]:
    """A random sample of the same, in order."""
    parameters = {"collection_id": collection_id, "amount": amount, "seed": seed}
    return sorted(_column(connection, "sample_ids", leaves, parameters))


def read_standings(
    connection: Connection,
    leaves: Leaves,
    collection_id: CollectionId,
    doc_ids: Sequence[int],
    age_seconds: int | None,
) -> list[Standing]:
    """Some documents and how they are signed, by doc_id."""
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids), "age": age_seconds}
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("read_signed_documents", leaves), parameters).fetchall()
    return [Standing(*row) for row in cast(list[tuple[Any, ...]], rows)]


def find_changing(
    connection: Connection,
    leaves: Leaves,
    collection_id: CollectionId,
    doc_ids: Sequence[int] | Ids,
    stages: Sequence[Stage],
) -> set[int]:
    """Those of some documents that have work of some stages, or were changed; with 0 among them, any may be one."""
    parameters = {
        "collection_id": collection_id,
        "doc_ids": packed_ids(doc_ids),
        "stages": list(stages),
    }
    return set(_column(connection, "find_pending_documents", leaves, parameters))


def find_missing_bands(
    connection: Connection, leaves: Leaves, doc_ids: Ids, keys: NDArray[np.uint64]
) -> list[int]:
    """Those of some heads of whose band rows, given as (n, bands) uint64, any is not there."""
    parameters = {
        "doc_ids": packed(np.repeat(doc_ids, keys.shape[1])),
        "bucket_hashes": packed(to_bigint(keys.reshape(-1))),
    }
    return _column(connection, "find_missing_bands", leaves, parameters)


def stream_band_sums(
    connection: Connection, leaves: Leaves, batch: int
) -> Iterator[tuple[Ids, Ids, NDArray[np.uint64]]]:
    """The doc_ids that have band rows, in order, with how many and the XOR of their hashes; read from the table."""
    with driver(connection).cursor(name="nearsim_band_sums", binary=True) as cursor:
        cursor.execute(statement("checksum_bands", leaves))
        while rows := cast(list[tuple[int, int, int]], cursor.fetchmany(batch)):
            found = np.array(rows, np.int64)
            yield found[:, 0], found[:, 1], from_bigint(found[:, 2])


def stream_heads(
    connection: Connection, leaves: Leaves, dtype: np.dtype[np.generic], k: int, batch: int
) -> Iterator[tuple[Ids, NDArray[np.generic]]]:
    """The doc_ids of all heads, in order, with their sketches."""
    with driver(connection).cursor(name="nearsim_heads", binary=True) as cursor:
        cursor.execute(statement("read_sorted_heads", leaves))
        while rows := cast(list[tuple[int, bytes]], cursor.fetchmany(batch)):
            yield (
                np.array([row[0] for row in rows], np.int64),
                sketches_from([row[1] for row in rows], dtype, k),
            )


def read_pairs_at(
    connection: Connection, leaves: Leaves, doc_ids: Sequence[int], *, both: bool
) -> list[StoredPair]:
    """The pairs of which one of some documents is the right end, or with `both` either."""
    parameters = {"doc_ids": packed_ids(doc_ids), "both": both}
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("read_pairs_at", leaves), parameters).fetchall()
    return [StoredPair(*row) for row in cast(list[tuple[Any, ...]], rows)]


def choose_scan(connection: Connection, *, by_index: bool) -> None:
    """Until the transaction ends, read tables by their indexes, or without them."""
    driver(connection).execute(statement("set_scan_method"), {"by_index": by_index})


def sum_leaf(connection: Connection, leaves: Leaves, parent: str) -> tuple[int, int]:
    """How many rows a table has, and the XOR of their hashed keys."""
    first, second = map(sql.Identifier, _KEYS[parent])
    command = statement("checksum_leaf", first=first, second=second, leaf=leaves.table(parent))
    row = driver(connection).execute(command).fetchone()
    return cast(tuple[int, int], row)


def read_leaf_state(connection: Connection, leaves: Leaves, parent: str) -> LeafState | None:
    """How a table stands in the catalog; None where it is missing."""
    parameters = {"leaf": leaves.qualified(parent), "parent": f"{SCHEMA}.{parent}"}
    row = driver(connection).execute(statement("read_leaf_state"), parameters).fetchone()
    return None if row is None else LeafState(*cast(tuple[Any, ...], row))


def find_misshapen(connection: Connection, leaves: Leaves, size: int) -> list[int]:
    """Documents whose sketch has not so many bytes."""
    return _column(connection, "find_malformed_sketches", leaves, {"bytes": size})


def read_families(connection: Connection, leaves: Leaves, doc_ids: Sequence[int]) -> list[int]:
    """Those of some documents that are signed, and all that share a head or a digest with them."""
    return _column(connection, "read_families", leaves, {"doc_ids": packed_ids(doc_ids)})


def delete_all_bands(connection: Connection, leaves: Leaves, doc_ids: Sequence[int]) -> NDArray[np.uint64]:
    """Take out the band rows of some documents without their keys; returns in which buckets they were."""
    parameters = {"doc_ids": packed_ids(doc_ids)}
    return from_bigint(np.array(_column(connection, "delete_all_bands", leaves, parameters), np.int64))


def delete_pairs(connection: Connection, leaves: Leaves, ends: Ids) -> None:
    """Take out some pairs: (m, 2) int64."""
    parameters = {"left_ids": packed_ids(ends[:, 0]), "right_ids": packed_ids(ends[:, 1])}
    driver(connection).execute(statement("delete_pairs", leaves), parameters)


def read_external_ids(connection: Connection, doc_ids: Sequence[int]) -> dict[int, str]:
    """What the owner calls those of some documents that are there."""
    rows = driver(connection).execute(statement("read_external_ids"), {"doc_ids": packed_ids(doc_ids)})
    return dict(cast(list[tuple[int, str]], rows.fetchall()))


def _column(connection: Connection, name: str, leaves: Leaves, parameters: Mapping[str, object]) -> list[int]:
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement(name, leaves), parameters).fetchall()
    return [row[0] for row in cast(list[tuple[int]], rows)]
