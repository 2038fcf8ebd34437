"""Band keys of heads, which determine in which bucket a candidate is verified."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import FeatureSpool, SpooledKeys
from nearsim_db.similarity.arrays import Ints, Keys, Ragged, Sketches
from nearsim_db.similarity.batches import PackedDigests, Signatures
from nearsim_db.similarity.candidates import are_by_band
from nearsim_db.similarity.sketch.kernels import FullRows, sketch_kernels
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import from_bigint, to_bigint
from nearsim_db.store.signatures import signatures
from nearsim_db.store.signatures.bands import FullBuckets, Links

_SKETCHES_PER_BATCH = 20_000
_SKETCHES_AT_ONCE = 100_000  # 51 MB by the default recipe
_HEADS_AT_ONCE = 1_000_000  # 24 bytes each
_MAPPED_AT_ONCE = 1_024  # rows of a file; the system maps 64 KB around each
_DIGEST_BYTES = 16
_BANDS_ABOVE_ZERO = 128  # whose bucket hashes are not negative
_MOST_GAPS = 8  # doc_ids a head up to which their rows are in a table


class BandKeys:
    """Band keys of heads, sorted by doc_id: doc_ids int64 of n, keys as stored, int64 (n, bands) or `Ragged`.

    Those of other heads are computed from their sketches when they are needed. `signatures` are those of the same
    heads, if there is memory for them, and `spool` has those of all heads. `spooled` are the same keys in its file.
    """

    def __init__(
        self,
        doc_ids: Ints,
        keys: Ints | Ragged,
        signatures: Signatures | None = None,
        spool: FeatureSpool | None = None,
        spooled: SpooledKeys | None = None,
    ) -> None:
        self._signatures = signatures
        self._spool = spool
        self._spooled = spooled
        self._doc_ids = doc_ids
        self._keys = keys
        self._by_band = not isinstance(keys, Ragged) and are_by_band(keys[:1].view(np.uint64))
        if not self._by_band and not isinstance(keys, Ragged) and spooled is None:
            keys.sort(axis=1)
        self._table = _table_of(doc_ids) if spooled is None else None

    @classmethod
    def of_spool(cls, context: Context) -> "BandKeys | None":
        """Return those that the leader of the build has written to the spool."""
        spool = context.build.spool
        found = None if spool is None else spool.find_keys(context.encoder.profile.bands)
        return None if found is None else cls(found.doc_ids, found.keys, None, spool, found)

    @staticmethod
    def are_spooled(context: Context) -> bool:
        """Whether the leader of the build may have to write them to the spool, as they are too many for memory."""
        spool = context.build.spool
        if spool is None or context.encoder.family.ordered:
            return False
        spool.gather()
        return len(spool) * context.encoder.profile.bands * 8 > context.build_megabytes << 20

    @classmethod
    def load(cls, connection: Connection, context: Context, heads: int | None = None) -> "BandKeys":
        """Read those of a whole generation, from the spool if it has all.

        If they are too many for memory, they are returned from the spool, to which the leader of the build, which has
        counted `heads`, writes them; none if it has not all heads.
        """
        is_leader = heads is not None
        if not is_leader and (written := cls.of_spool(context)) is not None:
            return written
        if context.build.spool is not None:
            context.build.spool.gather()
        heads = signatures.count_heads(connection, context.leaves) if heads is None else heads
        bands, family = context.encoder.profile.bands, context.encoder.family
        memory = context.build_megabytes << 20
        if family.ordered:
            return cls._load_ragged(connection, context, heads)
        spool, spooled = _spooled_heads(connection, context, heads)
        if heads * bands * 8 > memory:
            if is_leader and spool is not None:
                _write_keys(context, spool, spooled)
            none = np.zeros(0, np.int64)
            return cls.of_spool(context) or cls(none, none.reshape(0, bands), spool=spool)
        kept = heads * (bands * 8 + family.k * family.dtype.itemsize + _DIGEST_BYTES) <= memory
        doc_ids, keys = np.empty(heads, np.int64), np.empty((heads, bands), np.int64)
        sketches = np.empty((heads if kept else 0, family.k), family.dtype)
        digests, at = np.empty(heads if kept else 0, "V16"), 0
        read = (
            _stream(connection, context, with_digests=kept)
            if spool is None
            else spool.stream_signatures(spooled)
        )
        for one in read:
            end = at + len(one.doc_ids)
            rows = slice(at, end) if spool is None else np.searchsorted(spooled, one.doc_ids)
            doc_ids[rows] = one.doc_ids
            keys[rows] = to_bigint(context.encoder.matrix_keys(one.sketches))
            if kept:
                sketches[rows] = one.sketches
                digests[rows] = PackedDigests.of(one.digests).array
            at = end
        known = _signatures_of(doc_ids[:at], sketches[:at], digests[:at]) if kept else None
        return cls(doc_ids[:at], keys[:at], known, spool)

    @classmethod
    def _load_ragged(cls, connection: Connection, context: Context, heads: int) -> Self:
        """Read those of sketches that have different sizes; none if they are too many for memory."""
        memory, key_bytes = context.build_megabytes << 20, context.encoder.profile.band_rows * 8
        if heads * key_bytes > memory:
            return cls(np.zeros(0, np.int64), Ragged.of([]))
        kept = heads * (2 * key_bytes + _DIGEST_BYTES) <= memory
        read = [
            (one, context.encoder.ragged_keys(one.sketches))
            for one in _stream(connection, context, with_digests=kept)
        ]
        doc_ids = np.concatenate([np.zeros(0, np.int64), *(one.doc_ids for one, _ in read)])
        keys = Ragged.joined([Ragged.of([]), *(own for _, own in read)])
        if not kept or not read:
            return cls(doc_ids, keys)
        sketches = np.concatenate([one.sketches for one, _ in read])
        digests = np.concatenate([PackedDigests.of(one.digests).array for one, _ in read])
        return cls(doc_ids, keys, _signatures_of(doc_ids, sketches, digests))

    def __len__(self) -> int:
        return len(self._doc_ids)

    @property
    def ascends_by_band(self) -> bool:
        """Whether all buckets of a column, as bigint, are below those of the next."""
        return (
            not isinstance(self._keys, Ragged) and self._by_band and self._keys.shape[1] <= _BANDS_ABOVE_ZERO
        )

    def runs(self, rows: int) -> Iterator[tuple[Ints, Keys]]:
        """Yield doc_ids and keys in runs of about so many rows: of some bands if they ascend, else of some heads."""
        if not len(self):
            return
        if isinstance(self._keys, Ragged):
            step = max(1, rows * len(self) // max(1, len(self._keys.values)))
            for at in range(0, len(self), step):
                yield self._doc_ids[at : at + step], self._keys.take(slice(at, at + step))
            return
        if self.ascends_by_band:
            step = max(1, rows // len(self))
            for band in range(0, self._keys.shape[1], step):
                yield self._doc_ids, from_bigint(self._take(slice(len(self)), slice(band, band + step)))
            return
        step = max(1, rows // self._keys.shape[1])
        for at in range(0, len(self), step):
            chosen = slice(at, at + step)
            yield self._doc_ids[chosen], from_bigint(self._take(chosen))

    def _take(self, rows: Ints | slice, columns: slice = slice(None)) -> Ints:
        """Return keys, which are no `Ragged`, of ascending rows; few of a file are in memory at once."""
        assert not isinstance(self._keys, Ragged)
        if self._spooled is None:
            return self._keys[rows, columns]
        keys = self._keys[:, columns]
        places = range(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        found = np.empty((len(places), keys.shape[1]), np.int64)
        for at in range(0, len(places), _MAPPED_AT_ONCE):
            part = places[at : at + _MAPPED_AT_ONCE]
            chosen = slice(part.start, part.stop) if isinstance(part, range) else part
            found[at : at + _MAPPED_AT_ONCE] = keys[chosen]
            self._spooled.release()
        return found

    def signatures_of(self, doc_ids: Ints) -> tuple[Signatures, Ints] | None:
        """Return signatures and the rows of some heads among them; None if they must be read from the database."""
        if self._signatures is not None:
            rows = self._rows(doc_ids)
            return None if rows.min(initial=0) < 0 else (self._signatures, rows)
        if self._spool is None:
            return None
        distinct, rows = np.unique(doc_ids, return_inverse=True)
        read = self._spool.read_signatures(distinct)
        return None if read is None else (replace(read, distinct=True), rows.reshape(doc_ids.shape))

    def first_links(self, connection: Connection, context: Context, links: Links, full: FullBuckets) -> Links:
        """Return the links that are the first of their pair.

        `full` are all buckets over the limit. Pairs of documents that are no longer heads are left out.
        """
        own, (left, right) = self, self._rows_of(links)
        if min(left.min(initial=0), right.min(initial=0)) < 0:
            own = self._of(connection, context, np.unique(np.concatenate((links.left, links.right))))
            left, right = own._rows_of(links)
            present = (left >= 0) & (right >= 0)
            links, left, right = links.take(present), left[present], right[present]
        return own._first(context, links, left, right, full)

    def _first(self, context: Context, links: Links, left: Ints, right: Ints, full: FullBuckets) -> Links:
        ends = np.searchsorted(self._doc_ids, full.last_anchors, side="right")
        kernels, rows, keys = sketch_kernels(context.encoder.backend), FullRows(full.hashes, ends), self._keys
        if isinstance(keys, Ragged):
            first = kernels.first_ragged_links(keys.values, keys.offsets, links.buckets, left, right, rows)
        else:
            first = kernels.first_links(keys, self._by_band, links.buckets, left, right, rows)
        return links.take(first)

    def _rows_of(self, links: Links) -> tuple[Ints, Ints]:
        """Return the rows of both heads of links, -1 for those that are not in memory."""
        if self._spooled is not None:
            none = np.full(len(links.left), -1, np.int64)
            return none, none
        return self._rows(links.left), self._rows(links.right)

    def _rows(self, wanted: Ints) -> Ints:
        """Return the rows of some documents, -1 for those that are missing."""
        if not len(self._doc_ids):
            return np.full(len(wanted), -1, np.int64)
        if self._table is not None:
            places = wanted - self._doc_ids[0]
            inside = (places >= 0) & (places < len(self._table))
            return np.where(inside, self._table[np.where(inside, places, 0)], -1)
        rows = np.searchsorted(self._doc_ids, wanted).clip(max=len(self._doc_ids) - 1)
        return np.where(self._doc_ids[rows] == wanted, rows, -1)

    def _of(self, connection: Connection, context: Context, doc_ids: Ints) -> "BandKeys":
        """Return the keys of the heads among some documents, which are sorted; few sketches are in memory at once."""
        rows = self._rows(doc_ids)
        found = rows >= 0
        kept, missing = rows[found], doc_ids[~found]
        read = (
            self._read(connection, context, missing[at : at + _SKETCHES_AT_ONCE])
            for at in range(0, len(missing), _SKETCHES_AT_ONCE)
        )
        if isinstance(self._keys, Ragged):
            more = [(one.doc_ids, context.encoder.ragged_keys(one.sketches)) for one in read]
            order = np.argsort(np.concatenate((doc_ids[found], *(ids for ids, _ in more))))
            keys = Ragged.joined([self._keys.take(kept), *(own for _, own in more)]).take(order)
            found |= np.isin(doc_ids, np.concatenate((doc_ids[:0], *(ids for ids, _ in more))))
            return BandKeys(doc_ids[found], keys)
        if found.all():
            return BandKeys(doc_ids, self._take(kept))
        table = np.empty((len(doc_ids), self._keys.shape[1]), np.int64)
        table[found] = self._take(kept)
        for one in read:
            places = np.searchsorted(doc_ids, one.doc_ids)
            table[places] = to_bigint(context.encoder.matrix_keys(one.sketches))
            found[places] = True
        return BandKeys(doc_ids, table) if found.all() else BandKeys(doc_ids[found], table[found])

    def _read(self, connection: Connection, context: Context, doc_ids: Ints) -> Signatures:
        """Return the signatures of the heads among some documents, from the spool or the database."""
        read = None if self._spool is None else self._spool.read_signatures(doc_ids)
        if read is not None:
            return read
        return signatures.read_sketches(connection, context.leaves, doc_ids, context.encoder.family)


def _write_keys(context: Context, spool: FeatureSpool, doc_ids: Ints) -> None:
    """Write the band keys of all heads to the spool, which has their sketches, if the disk has room."""
    created = spool.create_keys(doc_ids, context.encoder.profile.bands)
    if created is None:
        return
    for one in spool.stream_signatures(doc_ids):
        keys = context.encoder.matrix_keys(one.sketches)
        stored = to_bigint(keys)
        if not are_by_band(keys[:1]):
            stored.sort(axis=1)
        created.keys[np.searchsorted(doc_ids, one.doc_ids)] = stored
        created.release()
    spool.complete_keys(created)


def _spooled_heads(connection: Connection, context: Context, heads: int) -> tuple[FeatureSpool | None, Ints]:
    """Return the spool and the doc_ids of all heads, ascending, if it has all of them, with distinct digests."""
    spool, none = context.build.spool, np.zeros(0, np.int64)
    if spool is None or not 0 < heads <= len(spool):
        return None, none
    found, halves = [none], [np.zeros(0, np.uint64)]
    for doc_ids, digests in signatures.stream_head_digests(connection, context.leaves, _HEADS_AT_ONCE):
        if not spool.has_all(doc_ids, digests):
            return None, none
        found.append(doc_ids)
        halves.append(digests.view(np.uint64)[::2].copy())
    ordered = np.concatenate(halves)
    ordered.sort()  # equal halves of two digests are as rare as they are harmless: sketches are read then
    return (None, none) if (ordered[1:] == ordered[:-1]).any() else (spool, np.concatenate(found))


def _stream(connection: Connection, context: Context, *, with_digests: bool) -> Iterator[Signatures]:
    """Yield the signatures of all heads in order, in batches; without digests these are empty."""
    read = connection, context.leaves, context.encoder.family, _SKETCHES_PER_BATCH
    if with_digests:
        with closing(signatures.stream_heads(*read)) as batches:
            yield from batches
    else:
        with closing(signatures.stream_head_sketches(*read)) as sketches:
            yield from (Signatures(*batch, ()) for batch in sketches)


def _signatures_of(doc_ids: Ints, sketches: Sketches, digests: NDArray[np.void]) -> Signatures | None:
    """Return the signatures of heads; None if two of them have equal digests."""
    packed = PackedDigests(digests)
    return Signatures(doc_ids, sketches, packed, distinct=True) if packed.are_distinct() else None


def _table_of(doc_ids: Ints) -> Ints | None:
    """Return the row of each doc_id from the first on, -1 where there is none; None if most have none."""
    if not len(doc_ids) or doc_ids[-1] - doc_ids[0] >= _MOST_GAPS * len(doc_ids):
        return None
    table = np.full(int(doc_ids[-1] - doc_ids[0]) + 1, -1, np.int64)
    table[doc_ids - doc_ids[0]] = np.arange(len(doc_ids))
    return table
