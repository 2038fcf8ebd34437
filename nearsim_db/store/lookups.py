"""What a look-up asks of one generation: prepared statements, a round trip each."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.similarity.batches import Signatures
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.codec import sketches_from, to_bigint
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement

STRIPES = 1024  # of a generation: more of them would let more callers in at once, but take more of the server's locks
_STRIPE_SPACE = (
    0x6E79  # parts our bigint advisory locks from those of others, as `Lock` does the two-part ones
)


@lru_cache(maxsize=64)
def _composed(name: str, leaves: Leaves) -> bytes:
    return statement(name, leaves).as_bytes(None)


def look_up_anchors(
    connection: Connection,
    leaves: Leaves,
    bucket_limit: int,
    digest: UUID,
    keys: NDArray[np.uint64],
    dtype: np.dtype[np.generic],
    k: int,
    purged_at: datetime | None,
) -> Signatures | None:
    """The heads that a text outside the index would be paired with if they are alike enough, itself not among them.

    `keys` are its bucket hashes, uint64; `dtype` and `k` those of sketches. None where the generation does not serve
    any more, or texts were purged from its collection after `purged_at`.
    """
    parameters = {
        "bucket_hashes": packed(to_bigint(keys.reshape(-1))),
        "bucket_limit": bucket_limit,
        "digest": digest,
        "purged_at": purged_at,
    }
    rows = _fetch(connection, "look_up_anchors", leaves, parameters)
    if not rows:
        return None
    if rows[0][0] is None:
        rows = []
    doc_ids = np.array([row[0] for row in rows], np.int64)
    return Signatures(doc_ids, sketches_from([row[1] for row in rows], dtype, k), [row[2] for row in rows])


def read_twins(
    connection: Connection, leaves: Leaves, digests: Sequence[UUID]
) -> list[tuple[int, int, str, str | None]]:
    """(place of the digest from 1, doc_id, external id, title) of all documents with some digests, in doc_id order."""
    parameters = {"digests": packed(np.frombuffer(b"".join(one.bytes for one in digests), "V16"))}
    return cast(list[tuple[int, int, str, str | None]], _fetch(connection, "read_twins", leaves, parameters))


def hold_stripes(connection: Connection, leaves: Leaves, keys: NDArray[np.uint64]) -> None:
    """Let nobody else who does this look up and add a document that shares a bucket, until the transaction ends.

    `keys` are the bucket hashes, uint64. Everybody takes the stripes in the same order.
    """
    stripes = np.unique(keys % np.uint64(STRIPES)).astype(np.int64)
    base = (_STRIPE_SPACE << 48) | (leaves.generation_id * STRIPES)
    _fetch(connection, "lock_stripes", leaves, {"stripes": packed(stripes + base)})


def _fetch(
    connection: Connection, name: str, leaves: Leaves, parameters: dict[str, Any]
) -> list[tuple[Any, ...]]:
    with driver(connection).cursor(binary=True) as cursor:
        return cursor.execute(_composed(name, leaves), parameters, prepare=True).fetchall()
