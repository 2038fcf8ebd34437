"""Lookups in buckets: the anchors with which heads are linked, and further members of buckets over the limit."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nearsim_db.similarity.arrays import Hashes, Ints, Keys, flat, lengths, places_of
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.codec import from_bigint, to_bigint, unpacked_ids
from nearsim_db.store.signatures import bands
from nearsim_db.store.signatures.bands import BandStatements

_ID_BYTES = 8
# A separate query fetches the members of distributed buckets if the mean size of the buckets is at most this.
_MAX_MEAN_MEMBERS = 8


class BucketNeighbours(NamedTuple):
    """The documents with which heads share buckets; all arrays are int64."""

    linked: Ints  # shape (m, 2): a head and an anchor of one of its buckets, with repetitions
    anchors: (
        Ints  # heads that are anchors of buckets over the limit, so that they have to search these buckets
    )
    hidden: Ints  # heads some of whose distributed band rows are missing


class BucketMembers(NamedTuple):
    """Members of buckets, in doc_id order within each bucket; all arrays are int64 of shape (n,)."""

    places: Ints  # place of the bucket in the query
    members: Ints  # doc_id of the member
    numbers: Ints  # number of the member in its bucket, from 0


class BucketQueries(BandStatements):
    """Lookups in the buckets of a generation."""

    def look_up_candidates(self, bucket_limit: int, doc_ids: Ints, keys: Keys) -> BucketNeighbours:
        """Return the anchors in the buckets of these heads; `keys` are the bucket hashes of each head."""
        # Sorted in the order of the index, so that successive lookups read the same pages.
        hashes, heads = to_bigint(flat(keys)), np.repeat(doc_ids, lengths(keys))
        order = np.argsort(hashes)
        hashes, heads = hashes[order], heads[order]

        hidden, first = doc_ids[:0], None
        if self.leaves.distributed:
            rows = self.list_members_if_few(hashes)
            if rows is not None:
                hidden = _missing_heads(heads, hashes, rows)
                first = first_members(rows, bucket_limit, hashes)
            else:
                # This comes before the lookup, because rows that are visible now stay visible.
                hidden = self.find_missing_bands(doc_ids, keys)
        if first is None:
            first = self._first_members(bucket_limit, heads, hashes)

        # A member beyond the limit shows that its bucket is over the limit; a head that precedes it is an anchor there.
        owners = heads[first.places]
        is_beyond = (first.numbers >= bucket_limit) & (bucket_limit > 0)
        is_linked = ~is_beyond & (first.members != owners)
        return BucketNeighbours(
            np.stack((owners[is_linked], first.members[is_linked]), axis=1),
            np.unique(owners[is_beyond & (first.members > owners)]),
            hidden,
        )

    def find_missing_bands(self, doc_ids: Ints, keys: Keys) -> Ints:
        """Return, in order, the heads of which any band row is missing; `keys` are the bucket hashes of each head."""
        owners, hashes = np.repeat(doc_ids, lengths(keys)), to_bigint(flat(keys))
        results = self.run_by_shard("find_missing_bands", owners, hashes, "binary")
        return np.unique(np.array([doc_id for _, result in results for doc_id in result.values()], np.int64))

    def _first_members(self, bucket_limit: int, heads: Ints, hashes: Ints) -> BucketMembers:
        """Return the anchors of buckets, and one more member of buckets over the limit."""
        rows: list[tuple[int, bytes]] = []
        for positions, result in self.run_by_shard(
            "look_up_candidates",
            heads,
            hashes,
            "prepared",
            bucket_limit=bucket_limit,
        ):
            places_in_query = positions.tolist()
            rows += [(places_in_query[place], members) for place, members in result.rows()]

        places = np.array([place for place, _ in rows], np.int64)
        counts = np.fromiter((len(members) for _, members in rows), np.int64, len(rows)) // _ID_BYTES
        members = unpacked_ids(b"".join(members for _, members in rows))
        return BucketMembers(np.repeat(places, counts), members, places_of(np.zeros_like(counts), counts))

    def list_members_if_few(self, hashes: Ints) -> list[tuple[int, int]] | None:
        """Return the sorted (bucket_hash, doc_id) of all members of distributed buckets; None if there are too many."""
        limit = _MAX_MEAN_MEMBERS * min(len(hashes), bands.MIN_BUCKETS_BY_SHARD)
        members: list[tuple[int, int]] = []
        for _, result in self.run_by_shard("list_bucket_members", hashes, hashes, "prepared", limit=limit):
            rows = result.rows()
            members += [(bucket_hash, doc_id) for bucket_hash, doc_id in rows]
            if len(rows) == limit or len(members) > _MAX_MEAN_MEMBERS * len(hashes):
                return None
        return sorted(members)

    def look_up_members(self, bucket_limit: int, anchor: int, keys: Keys, after: int, batch: int) -> Ints:
        """Return members of the anchor's buckets over the limit, in order: up to `batch` after the doc_id `after`."""
        parameters = {
            "doc_id": anchor,
            "bucket_hashes": packed(to_bigint(flat(keys))),
            "bucket_limit": bucket_limit,
            "after": after,
            "batch": batch,
        }
        members = self.run("look_up_members", "binary", **parameters).values()
        return np.array(members, np.int64)

    def read_anchors(self, bucket_limit: int, keys: Keys) -> tuple[set[tuple[int, int]], Hashes]:
        """Return the anchors of these buckets as (bucket_hash, doc_id), and the hashes of the full buckets, sorted.

        Both are empty if there is no limit, because every member is an anchor then.
        """
        hashes = flat(keys)
        if bucket_limit == 0 or not len(hashes):
            return set(), hashes[:0]
        parameters = {"bucket_hashes": packed(to_bigint(hashes)), "bucket_limit": bucket_limit}
        rows = self.run("read_anchors", **parameters).rows()
        full = np.array(sorted({bucket for bucket, _, is_full in rows if is_full}), np.int64)
        return {(bucket, doc_id) for bucket, doc_id, _ in rows}, from_bigint(full)


def _missing_heads(heads: Ints, hashes: Ints, rows: Sequence[tuple[int, int]]) -> Ints:
    """Return the heads that are missing in any of their buckets; `rows` are (bucket_hash, doc_id) of all members."""
    existing = set(rows)
    expected = zip(hashes.tolist(), heads.tolist(), strict=True)
    return np.unique(np.array([row[1] for row in expected if row not in existing], np.int64))


def first_members(rows: Sequence[tuple[int, int]], bucket_limit: int, hashes: Ints) -> BucketMembers:
    """Return the anchors of buckets, and one more member of buckets over the limit.

    `rows` are (bucket_hash, doc_id) of all members, sorted.
    """
    buckets, members = np.array(rows, np.int64).reshape(-1, 2).T
    begins = np.searchsorted(buckets, hashes)
    counts = np.searchsorted(buckets, hashes, "right") - begins
    if bucket_limit:
        counts = np.minimum(counts, bucket_limit + 1)
    places, numbers = np.repeat(np.arange(len(hashes)), counts), places_of(np.zeros_like(counts), counts)
    return BucketMembers(places, members[places_of(begins, counts)], numbers)
