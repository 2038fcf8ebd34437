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
        if heads * bands * 8 > context.build_megabytes << 20:
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
        if part.slice_no == 0 or not len(candidates):
            return candidates
        doc_ids, keys, rows = self._doc_ids, self._keys, _rows(self._doc_ids, candidates)
        if rows is None:
            doc_ids, keys = self._of(connection, context, np.unique(candidates))
            candidates = candidates[np.isin(candidates, doc_ids).all(axis=1)]
            rows = np.searchsorted(doc_ids, candidates)
        own: Ids = candidates[~_linked_before(part.low, keys[rows[:, 0]], keys[rows[:, 1]], candidates, full)]
        return own

    def _of(self, connection: Connection, context: Context, doc_ids: Ids) -> tuple[Ids, Ids]:
        """Return the heads among some documents, sorted, and their keys."""
        missing = np.setdiff1d(doc_ids, self._doc_ids, assume_unique=True)
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


def _rows(doc_ids: Ids, wanted: Ids) -> Ids | None:
    """Return the rows of some documents in a sorted array, or None if it does not have them all."""
    if not len(doc_ids):
        return None
    rows: Ids = np.searchsorted(doc_ids, wanted).clip(max=len(doc_ids) - 1)
    return rows if (doc_ids[rows] == wanted).all() else None


def _linked_before(low: int, left: Ids, right: Ids, candidates: Ids, full: FullBuckets) -> NDArray[np.bool_]:
    """Whether a bucket below `low` links the candidates with these keys, each (m, bands)."""
    if _is_by_band(left):
        shared = (left == right) & (left < low)
    else:
        shared = np.stack([(key < low) & (right == key[:, None]).any(axis=1) for key in left.T], axis=1)
    rows, bands = np.nonzero(shared)
    links = full.links(left[rows, bands], candidates[rows, 0])
    linked = np.zeros(len(left), bool)
    linked[rows[links]] = True
    return linked


def _is_by_band(keys: Ids) -> bool:
    """Whether each column has the keys of its own band, whose number is the top byte; not so for bottom_k."""
    return bool(
        ((keys[:1].view(np.uint64) >> np.uint64(56)) == np.arange(keys.shape[1], dtype=np.uint64)).all()
    )
