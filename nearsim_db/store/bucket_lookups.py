"""Look-ups of heads in their buckets: candidates, members and anchors."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.codec import from_bigint, to_bigint
from nearsim_db.store.driver.rows import fetch_rows, fetch_values
from nearsim_db.store.driver.statements import Leaves, statement

Ids = NDArray[np.int64]

_ID_BYTES = 8


def look_up_candidates(
    connection: Connection, leaves: Leaves, bucket_limit: int, doc_ids: Ids, keys: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], Ids]:
    """Return the anchors in the buckets of some heads, as (m, 2) int64 of (head, anchor), with repetitions.

    Also returns the heads that are anchors of buckets over the limit, which have to search these buckets.
    """
    hashes, heads = to_bigint(keys.reshape(-1)), np.repeat(doc_ids, keys.shape[1])
    order = np.argsort(hashes)  # neighbours are in the same pages of the index
    hashes, heads = hashes[order], heads[order]
    parameters = {"doc_ids": packed(heads), "bucket_hashes": packed(hashes), "bucket_limit": bucket_limit}
    command = statement("look_up_candidates", leaves)
    rows = fetch_rows(connection, command, parameters, binary=True, prepare=True)
    if not rows:
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    places, members = zip(*cast(list[tuple[int, bytes]], rows), strict=True)
    amounts = np.fromiter(map(len, members), np.int64, len(rows)) // _ID_BYTES
    found = np.frombuffer(b"".join(members), ">i8").astype(np.int64)
    heads = np.repeat(heads[list(places)], amounts)
    beyond = np.zeros(len(found), bool)
    if bucket_limit:
        beyond[np.cumsum(amounts)[amounts > bucket_limit] - 1] = True
    linked = ~beyond & (found != heads)
    return np.stack((heads[linked], found[linked]), axis=1), np.unique(heads[beyond & (found > heads)])


def look_up_members(
    connection: Connection,
    leaves: Leaves,
    bucket_limit: int,
    anchor: int,
    keys: NDArray[np.uint64],
    after: int,
    batch: int,
) -> Ids:
    """Return up to `batch` members above `after` of the anchor's buckets over the limit, in order."""
    parameters = {
        "doc_id": anchor,
        "bucket_hashes": packed(to_bigint(keys.reshape(-1))),
        "bucket_limit": bucket_limit,
        "after": after,
        "batch": batch,
    }
    members = fetch_values(connection, statement("look_up_members", leaves), parameters, binary=True)
    return np.array(members, np.int64)


def read_anchors(
    connection: Connection, leaves: Leaves, bucket_limit: int, keys: NDArray[np.uint64]
) -> tuple[set[tuple[int, int]], NDArray[np.uint64]]:
    """Return the anchors of some buckets as (bucket_hash, doc_id), and the buckets with more members than anchors.

    Both are empty without a limit: then every member is an anchor.
    """
    if bucket_limit == 0 or not keys.size:
        return set(), keys.reshape(-1)[:0]
    parameters = {"bucket_hashes": packed(to_bigint(keys.reshape(-1))), "bucket_limit": bucket_limit}
    rows = fetch_rows(connection, statement("read_anchors", leaves), parameters)
    full = np.array(sorted({bucket for bucket, _, exceeds in rows if exceeds}), np.int64)
    return {(bucket, doc_id) for bucket, doc_id, _ in rows}, from_bigint(full)
