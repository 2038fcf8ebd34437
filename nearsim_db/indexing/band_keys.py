"""Band keys of all heads of a generation, in memory or in a temporary file.

Two heads that share several buckets are linked several times. From their band keys a slice of a build can see whether a
link is the first of its pair, and it verifies the pair only then.
"""

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Self

import numpy as np

from nearsim_db.indexing.context import Context
from nearsim_db.similarity.arrays import Ints, Keys, Ragged, Sketches
from nearsim_db.similarity.backend import sketch_kernels
from nearsim_db.similarity.linked_pairs import are_by_band
from nearsim_db.similarity.sketch.kernels import FullRows
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import from_bigint, to_bigint
from nearsim_db.store.signatures.bands import LastAnchors, Links

_SKETCHES_PER_BATCH = 20_000
_HEADS_PER_BATCH = 1_000_000  # 24 bytes each
# The top byte of a bucket hash is the number of its band, so the hashes of the first 128 bands, stored as bigint, are
# not negative.
_MAX_NON_NEGATIVE_BANDS = 128
# Up to this ratio, an array that is indexed by doc_id is worth its memory.
_MAX_DOC_IDS_PER_HEAD = 8


class BandKeys:
    """Band keys of the heads of a generation, sorted by doc_id. Threads may share them.

    doc_ids: (n,) int64. keys: the stored bucket hashes, (n, bands) int64, or `Ragged` if heads have different numbers
    of keys. A matrix larger than `Context.build_megabytes` is in a temporary file without a name.
    """

    def __init__(self, doc_ids: Ints, keys: Ints | Ragged) -> None:
        self._doc_ids = doc_ids
        self._keys = keys
        self._is_by_band = not isinstance(keys, Ragged) and are_by_band(keys[:1].view(np.uint64))
        self._table = _table_of(doc_ids)

    @classmethod
    def load(cls, connection: Connection, context: Context) -> Self:
        """Compute the keys from the sketches of all heads, from the spool if it has all of them, else from tables."""
        table, spool = context.tables(connection).signatures, context.build.spool
        if spool is not None and spool.match_heads(table.stream_head_digests(_HEADS_PER_BATCH)):
            sketches = spool.stream_head_sketches()
        else:
            sketches = table.stream_head_sketches(context.encoder.family, _SKETCHES_PER_BATCH)
        with closing(sketches):
            if context.encoder.family.ordered:
                return cls(*_ragged_keys(context, sketches))
            return cls(*_matrix_keys(context, sketches, table.count_heads()))

    def __len__(self) -> int:
        return len(self._doc_ids)

    @property
    def ascends_by_band(self) -> bool:
        """Whether all keys of a column, as bigint, are less than all keys of the next column."""
        return (
            not isinstance(self._keys, Ragged)
            and self._is_by_band
            and self._keys.shape[1] <= _MAX_NON_NEGATIVE_BANDS
        )

    def runs(self, rows: int) -> Iterator[tuple[Ints, Keys]]:
        """Yield doc_ids and keys in runs of about `rows` band rows.

        If keys ascend by band, a run has some bands of all heads; otherwise it has all bands of some heads.
        """
        if not len(self):
            return

        if isinstance(self._keys, Ragged):
            step = max(1, rows * len(self) // max(1, len(self._keys.values)))
            for at in range(0, len(self), step):
                yield self._doc_ids[at : at + step], self._keys.take(slice(at, at + step))
        elif self.ascends_by_band:
            step = max(1, rows // len(self))
            for band in range(0, self._keys.shape[1], step):
                yield self._doc_ids, from_bigint(self._keys[:, band : band + step])
        else:
            step = max(1, rows // self._keys.shape[1])
            for at in range(0, len(self), step):
                yield self._doc_ids[at : at + step], from_bigint(self._keys[at : at + step])

    def first_links(self, context: Context, links: Links, full: LastAnchors) -> Links:
        """Return the links that are the first link of their pair; `full` has all buckets over the limit.

        Links of documents that are no longer heads are left out.
        """
        left, right = self._rows(links.left), self._rows(links.right)
        are_heads = (left >= 0) & (right >= 0)
        if not are_heads.all():
            links, left, right = links.take(are_heads), left[are_heads], right[are_heads]

        ends = np.searchsorted(self._doc_ids, full.last_anchors, side="right")
        kernels, rows, keys = sketch_kernels(context.encoder.backend), FullRows(full.hashes, ends), self._keys
        if isinstance(keys, Ragged):
            is_first = kernels.first_ragged_links(keys.values, keys.offsets, links.buckets, left, right, rows)
        else:
            is_first = kernels.first_links(keys, self._is_by_band, links.buckets, left, right, rows)
        return links.take(is_first)

    def _rows(self, doc_ids: Ints) -> Ints:
        """Return the rows of documents, -1 for a document that is not a head."""
        if not len(self._doc_ids):
            return np.full(len(doc_ids), -1, np.int64)
        if self._table is not None:
            offsets = doc_ids - self._doc_ids[0]
            is_inside = (offsets >= 0) & (offsets < len(self._table))
            return np.where(is_inside, self._table[np.where(is_inside, offsets, 0)], -1)
        rows = np.searchsorted(self._doc_ids, doc_ids).clip(max=len(self._doc_ids) - 1)
        return np.where(self._doc_ids[rows] == doc_ids, rows, -1)


def _matrix_keys(
    context: Context, sketches: Iterable[tuple[Ints, Sketches]], heads: int
) -> tuple[Ints, Ints]:
    """Return doc_ids and keys of all heads whose sketches have the same size."""
    keys = _allocate(heads, context.encoder.profile.bands, context.build_megabytes << 20)
    doc_ids, count = np.empty(heads, np.int64), 0
    for batch_ids, batch in sketches:
        rows = slice(count, count + len(batch_ids))
        doc_ids[rows] = batch_ids
        computed = context.encoder.matrix_keys(batch)
        keys[rows] = to_bigint(computed)
        # The kernels that look for the first common bucket expect the keys of each head in order.
        if not are_by_band(computed[:1]):
            keys[rows].sort(axis=1)
        count = rows.stop
    return doc_ids[:count], keys[:count]


def _allocate(heads: int, bands: int, max_memory_bytes: int) -> Ints:
    """Return an array (heads, bands), in a temporary file if it is too large for memory and fits on the disk."""
    size = heads * bands * np.dtype(np.int64).itemsize
    if size > max_memory_bytes:
        try:
            with tempfile.TemporaryFile(prefix="nearsim-") as file:
                os.posix_fallocate(file.fileno(), 0, size)
                mapped = mmap.mmap(file.fileno(), size)  # outlives the file object
        except OSError:
            pass
        else:
            return np.frombuffer(mapped, np.int64).reshape(heads, bands)
    return np.empty((heads, bands), np.int64)


def _ragged_keys(context: Context, sketches: Iterable[tuple[Ints, Sketches]]) -> tuple[Ints, Ragged]:
    """Return doc_ids and keys of all heads whose sketches differ in size, in memory."""
    parts = [(doc_ids, context.encoder.ragged_keys(batch)) for doc_ids, batch in sketches]
    doc_ids = np.concatenate([np.zeros(0, np.int64), *(doc_ids for doc_ids, _ in parts)])
    return doc_ids, Ragged.joined([Ragged.of([]), *(keys for _, keys in parts)])


def _table_of(doc_ids: Ints) -> Ints | None:
    """Return an array that maps `doc_id - doc_ids[0]` to a row, -1 if the document is not a head.

    Returns None if heads are so few among these ids that the array would waste memory.
    """
    if not len(doc_ids) or doc_ids[-1] - doc_ids[0] >= _MAX_DOC_IDS_PER_HEAD * len(doc_ids):
        return None
    table = np.full(int(doc_ids[-1] - doc_ids[0]) + 1, -1, np.int64)
    table[doc_ids - doc_ids[0]] = np.arange(len(doc_ids))
    return table
