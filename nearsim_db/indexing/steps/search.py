"""search: from heads to candidates."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import DatabaseError, count_of
from nearsim_db.indexing.context import Context
from nearsim_db.store import lookups, signatures, verify_index
from nearsim_db.store.driver import Connection


def search_candidates(
    connection: Connection, context: Context, doc_ids: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the candidates of documents: (m, 2) int64, the smaller doc_id first, sorted and distinct.

    Also returns those of the documents that are anchors of buckets over the limit; `search_full_buckets` searches them.
    """
    family = context.encoder.family
    heads = signatures.read_sketches(connection, context.leaves, doc_ids, family.dtype, family.k)
    if not len(heads.doc_ids):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    # Twins that became heads concurrently need not be candidates: a full bucket may not link them.
    context.found.duplicate_digests.update(signatures.find_duplicate_heads(connection, context.leaves, heads))
    keys = context.encoder.band_keys(heads.sketches)
    found, anchors = lookups.look_up_candidates(
        connection, context.leaves, context.bucket_limit, heads.doc_ids, keys
    )
    return _distinct(np.sort(found, axis=1)), anchors


def _distinct(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct rows of (m, 2), sorted; several times faster than `np.unique` on an axis."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    distinct: NDArray[np.int64] = rows[first]
    return distinct


def search_full_buckets(
    connection: Connection, context: Context, anchor: int, after: int, batch: int
) -> NDArray[np.int64]:
    """Return the candidates of an anchor in its buckets over the limit, with doc_ids above `after`: (m, 2) int64.

    At most `batch`; fewer are the last.
    """
    family = context.encoder.family
    head = signatures.read_sketches(connection, context.leaves, [anchor], family.dtype, family.k)
    if not len(head.doc_ids):
        return np.zeros((0, 2), np.int64)
    keys = context.encoder.band_keys(head.sketches)
    members = lookups.look_up_members(
        connection, context.leaves, context.bucket_limit, anchor, keys, after, batch
    )
    return np.stack((np.full(len(members), anchor, np.int64), members), axis=1)


def require_bands(connection: Connection, context: Context, doc_ids: Sequence[int]) -> None:
    """Raise DatabaseError if band rows of documents are distributed and not committed on all nodes yet.

    Searches before they are committed on all nodes would be in vain: a document that is searched meanwhile does not see
    them either, and the pair of the two would be missed.
    """
    if not context.leaves.distributed:
        return
    hidden = doc_ids
    for _ in range(2):  # a document that was signed again in between has other keys
        family = context.encoder.family
        heads = signatures.read_sketches(connection, context.leaves, hidden, family.dtype, family.k)
        if not len(heads.doc_ids):
            return
        keys = context.encoder.band_keys(heads.sketches)
        hidden = verify_index.find_missing_bands(connection, context.leaves, heads.doc_ids, keys)
        if not hidden:
            return
    raise DatabaseError(
        f"band rows of {count_of(len(hidden), 'document')} are not on their nodes: a commit did not reach them yet, "
        "which SELECT recover_prepared_transactions() completes; or they are lost: nearsim verify-index --repair"
    )
