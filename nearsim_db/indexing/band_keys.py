"""Band keys of heads, which tell in which slice of a build a candidate is verified."""

from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.context import Context
from nearsim_db.store import signatures
from nearsim_db.store.bands import FullBuckets
from nearsim_db.store.build_slices import Slice
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import to_bigint

Ids = NDArray[np.int64]

_SKETCHES_PER_BATCH = 20_000
_KEPT_BYTES = 256 << 20


class BandKeys:
    """Band keys of heads, sorted by doc_id, as stored: doc_ids int64 of n, keys int64 (n, bands).

    Those of other heads are computed from their sketches when they are needed.
    """

    def __init__(self, doc_ids: Ids, keys: Ids) -> None:
        self._doc_ids = doc_ids
        self._keys = keys

    @classmethod
    def load(cls, connection: Connection, context: Context) -> "BandKeys":
        """Read those of a whole generation, or none if they are too many to be kept in memory."""
        heads = signatures.count_heads(connection, context.leaves)
        bands = context.encoder.profile.bands
        if heads * bands * 8 > _KEPT_BYTES:
            return cls(np.zeros(0, np.int64), np.zeros((0, bands), np.int64))
        doc_ids, keys = np.empty(heads, np.int64), np.empty((heads, bands), np.int64)
        family, at = context.encoder.family, 0
        with closing(
            signatures.stream_head_sketches(
                connection, context.leaves, family.dtype, family.k, _SKETCHES_PER_BATCH
            )
        ) as batches:
            for ids, sketches in batches:
                doc_ids[at : at + len(ids)] = ids
                keys[at : at + len(ids)] = to_bigint(context.encoder.band_keys(sketches))
                at += len(ids)
        return cls(doc_ids[:at], keys[:at])

    def without_earlier(
        self, connection: Connection, context: Context, candidates: Ids, part: Slice, full: FullBuckets
    ) -> Ids:
        """Return the candidates of a slice, (m, 2), that no bucket before the slice links.

        `full` are the buckets over the limit before the slice. Candidates that are no longer heads are left out.
        """
        if part.slice_no == 0:
            return candidates
        doc_ids, keys = self._of(connection, context, np.unique(candidates))
        if not len(doc_ids):
            return candidates[:0]
        rows = np.searchsorted(doc_ids, candidates).clip(max=len(doc_ids) - 1)
        candidates, rows = _present(doc_ids, candidates, rows)
        left, right = keys[rows[:, 0]], keys[rows[:, 1]]
        earlier = np.zeros(len(candidates), bool)
        for band in range(keys.shape[1]):
            key = left[:, band]
            shared = np.flatnonzero((key < part.low) & (right == key[:, None]).any(axis=1))
            earlier[shared] |= full.links(key[shared], candidates[shared, 0])
        own: Ids = candidates[~earlier]
        return own

    def _of(self, connection: Connection, context: Context, doc_ids: Ids) -> tuple[Ids, Ids]:
        """Return the heads among some documents, sorted, and their keys."""
        missing = np.setdiff1d(doc_ids, self._doc_ids, assume_unique=True)
        if not len(missing):
            return self._doc_ids, self._keys
        family = context.encoder.family
        read = signatures.read_sketches(connection, context.leaves, missing, family.dtype, family.k)
        known = np.intersect1d(doc_ids, self._doc_ids, assume_unique=True)
        found = np.concatenate((known, read.doc_ids))
        keys = np.concatenate(
            (
                self._keys[np.searchsorted(self._doc_ids, known)],
                to_bigint(context.encoder.band_keys(read.sketches)),
            )
        )
        order = np.argsort(found)
        return found[order], keys[order]


def _present(doc_ids: Ids, candidates: Ids, rows: Ids) -> tuple[Ids, Ids]:
    present = (doc_ids[rows] == candidates).all(axis=1)
    return candidates[present], rows[present]
