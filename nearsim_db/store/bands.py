"""Band rows of one generation, and the candidates that they give."""

from collections.abc import Iterator
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.codec import from_bigint, to_bigint
from nearsim_db.store.driver.copying import copy_columns
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement

Ids = NDArray[np.int64]

BUCKET_FIGURES = ("buckets", "largest_bucket", "buckets_over_limit", "links_left_out")


def empty_bands(connection: Connection, leaves: Leaves) -> None:
    """Begin the band table anew."""
    driver(connection).execute(statement("truncate_bands", leaves))


def write_bands(connection: Connection, leaves: Leaves, doc_ids: Ids, keys: NDArray[np.uint64]) -> int:
    """Load the band rows of heads, sorted by (bucket_hash, doc_id). `keys` is (n, bands) uint64."""
    if not len(doc_ids):
        return 0
    hashes = to_bigint(keys.reshape(-1))
    owners = np.repeat(doc_ids, keys.shape[1])
    order = np.lexsort((owners, hashes))
    columns = [("bucket_hash", hashes[order]), ("doc_id", owners[order])]
    return copy_columns(driver(connection), leaves.table("band"), columns)


def index_bands(connection: Connection, leaves: Leaves) -> None:
    """Build the band table's only index."""
    driver(connection).execute(statement("index_bands", leaves))


def delete_bands(connection: Connection, leaves: Leaves, doc_ids: Ids, keys: NDArray[np.uint64]) -> None:
    """Take out the band rows of heads, found by their keys: (n, bands) uint64."""
    if not len(doc_ids):
        return
    parameters = {
        "doc_ids": packed(np.repeat(doc_ids, keys.shape[1])),
        "bucket_hashes": packed(to_bigint(keys.reshape(-1))),
    }
    driver(connection).execute(statement("delete_bands", leaves), parameters)


def stream_candidates(
    connection: Connection, leaves: Leaves, bucket_limit: int, after: int, batch: int
) -> Iterator[NDArray[np.int64]]:
    """The linked heads of a whole generation, sorted, as (m, 2) int64 blocks; left above `after`."""
    with driver(connection).cursor(name="nearsim_candidates", binary=True) as cursor:
        parameters = {"bucket_limit": bucket_limit, "after": after}
        cursor.execute(statement("find_candidates", leaves), parameters)
        while rows := cursor.fetchmany(batch):
            yield np.array(rows, np.int64)


def look_up_candidates(
    connection: Connection, leaves: Leaves, bucket_limit: int, doc_ids: Ids, keys: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], Ids]:
    """The anchors in the buckets of some heads, as (m, 2) int64 of (head asked for, other).

    Also which of the heads are themselves anchors of buckets over the limit: these have to look through them.
    """
    parameters = {
        "doc_ids": packed(np.repeat(doc_ids, keys.shape[1])),
        "bucket_hashes": packed(to_bigint(keys.reshape(-1))),
        "bucket_limit": bucket_limit,
    }
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("look_up_candidates", leaves), parameters, prepare=True).fetchall()
    found = np.array(rows, np.int64).reshape(-1, 3)
    beyond = found[:, 2] > 0
    wide = found[beyond & (found[:, 1] > found[:, 0]), 0]
    return found[~beyond & (found[:, 0] != found[:, 1]), :2], np.unique(wide)


def look_up_members(
    connection: Connection,
    leaves: Leaves,
    bucket_limit: int,
    anchor: int,
    keys: NDArray[np.uint64],
    after: int,
    batch: int,
) -> Ids:
    """Members above `after` of the buckets over the limit that a head is an anchor of, in order, at most `batch`."""
    parameters = {
        "doc_id": anchor,
        "bucket_hashes": packed(to_bigint(keys.reshape(-1))),
        "bucket_limit": bucket_limit,
        "after": after,
        "batch": batch,
    }
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("look_up_members", leaves), parameters).fetchall()
    return np.array(rows, np.int64).reshape(-1)


def read_anchors(
    connection: Connection, leaves: Leaves, bucket_limit: int, keys: NDArray[np.uint64]
) -> tuple[set[tuple[int, int]], NDArray[np.uint64]]:
    """The anchors of some buckets as (bucket_hash, doc_id), and which of the buckets have more members than anchors.

    None and none when there is no limit: then every member is an anchor.
    """
    if bucket_limit == 0 or not keys.size:
        return set(), keys.reshape(-1)[:0]
    parameters = {"bucket_hashes": packed(to_bigint(keys.reshape(-1))), "bucket_limit": bucket_limit}
    rows = cast(
        list[tuple[int, int, bool]],
        driver(connection).execute(statement("read_anchors", leaves), parameters).fetchall(),
    )
    full = np.array(sorted({bucket for bucket, _, exceeds in rows if exceeds}), np.int64)
    return {(bucket, doc_id) for bucket, doc_id, _ in rows}, from_bigint(full)


def count_buckets(connection: Connection, leaves: Leaves, bucket_limit: int) -> dict[str, int]:
    """Buckets, the largest one, those over the limit, and the links left out for it."""
    row = (
        driver(connection)
        .execute(statement("count_buckets", leaves), {"bucket_limit": bucket_limit})
        .fetchone()
    )
    assert row is not None
    return dict(zip(BUCKET_FIGURES, (int(str(value)) for value in row), strict=True))
