"""Band keys of heads, which determine in which bucket a candidate is verified."""

from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.context import Context
from nearsim_db.similarity.sketch.kernels import FullRows, sketch_kernels
from nearsim_db.store import signatures
from nearsim_db.store.bands import FullBuckets, Links
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import to_bigint

Ids = NDArray[np.int64]

_SKETCHES_PER_BATCH = 20_000
_MOST_GAPS = 8  # doc_ids a head up to which their rows are in a table


class BandKeys:
    """Band keys of heads, sorted by doc_id, as stored: doc_ids int64 of n, keys int64 (n, bands).

    Those of other heads are computed from their sketches when they are needed.
    """

    def __init__(self, doc_ids: Ids, keys: Ids) -> None:
        self._doc_ids = doc_ids
        self._keys = keys
        self._by_band = _is_by_band(keys)
        if not self._by_band:
            keys.sort(axis=1)
        self._table = _table_of(doc_ids)

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

    def first_links(self, connection: Connection, context: Context, links: Links, full: FullBuckets) -> Ids:
        """Return the pairs, (m, 2), of those links that no bucket before theirs links.

        `full` are the buckets over the limit, at least up to the last of the links. Pairs of documents that are no
        longer heads are left out.
        """
        own, left, right = self, self._rows(links.left), self._rows(links.right)
        if min(left.min(initial=0), right.min(initial=0)) < 0:
            own = self._of(connection, context, np.unique(np.concatenate((links.left, links.right))))
            left, right = own._rows(links.left), own._rows(links.right)
            present = (left >= 0) & (right >= 0)
            links, left, right = links.take(present), left[present], right[present]
        return own._first(context, links, left, right, full)

    def _first(self, context: Context, links: Links, left: Ids, right: Ids, full: FullBuckets) -> Ids:
        ends = np.searchsorted(self._doc_ids, full.last_anchors, side="right")
        first = sketch_kernels(context.encoder.backend).first_links(
            self._keys, self._by_band, links.buckets, left, right, FullRows(full.hashes, ends)
        )
        return np.stack((links.left[first], links.right[first]), axis=1)

    def _rows(self, wanted: Ids) -> Ids:
        """Return the rows of some documents, -1 for those that are missing."""
        if not len(self._doc_ids):
            return np.full(len(wanted), -1, np.int64)
        if self._table is not None:
            places = wanted - self._doc_ids[0]
            inside = (places >= 0) & (places < len(self._table))
            return np.where(inside, self._table[np.where(inside, places, 0)], -1)
        rows = np.searchsorted(self._doc_ids, wanted).clip(max=len(self._doc_ids) - 1)
        return np.where(self._doc_ids[rows] == wanted, rows, -1)

    def _of(self, connection: Connection, context: Context, doc_ids: Ids) -> "BandKeys":
        """Return the keys of the heads among some documents, sorted."""
        rows = self._rows(doc_ids)
        known, family = rows >= 0, context.encoder.family
        read = signatures.read_sketches(connection, context.leaves, doc_ids[~known], family.dtype, family.k)
        found = np.concatenate((doc_ids[known], read.doc_ids))
        keys = np.concatenate((self._keys[rows[known]], to_bigint(context.encoder.band_keys(read.sketches))))
        order = np.argsort(found)
        return BandKeys(found[order], keys[order])


def _table_of(doc_ids: Ids) -> Ids | None:
    """Return the row of each doc_id from the first on, -1 where there is none; None if most have none."""
    if not len(doc_ids) or doc_ids[-1] - doc_ids[0] >= _MOST_GAPS * len(doc_ids):
        return None
    table = np.full(int(doc_ids[-1] - doc_ids[0]) + 1, -1, np.int64)
    table[doc_ids - doc_ids[0]] = np.arange(len(doc_ids))
    return table


def _is_by_band(keys: Ids) -> bool:
    """Whether each column has the keys of its own band, whose number is the top byte; not so for bottom_k."""
    return bool(
        ((keys[:1].view(np.uint64) >> np.uint64(56)) == np.arange(keys.shape[1], dtype=np.uint64)).all()
    )
