"""Heads in their buckets: the neighbours of heads, anchors and further members."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nearsim_db.similarity.arrays import Hashes, Ints, Keys, flat, lengths, places_of
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.codec import from_bigint, to_bigint, unpacked_ids
from nearsim_db.store.signatures import bands
from nearsim_db.store.signatures.bands import BandStatements

_ID_BYTES = 8
_FEW_MEMBERS = 8  # of a bucket on average


class Neighbours(NamedTuple):
    """The heads in the buckets of some heads.

    `linked` are (m, 2) int64 of (head, anchor), with repetitions; `anchors` are the heads that are anchors of buckets
    over the limit, which have to search these buckets; `hidden` those of whose distributed band rows some are missing.
    """

    linked: Ints
    anchors: Ints
    hidden: Ints


class Members(NamedTuple):
    """Members of buckets, int64 of n each: places of the buckets, members in order, and their numbers from 0."""

    places: Ints
    members: Ints
    numbers: Ints


class BucketQueries(BandStatements):
    """Heads in the buckets of a generation: neighbours, anchors and further members."""

    def look_up_candidates(self, bucket_limit: int, doc_ids: Ints, keys: Keys) -> Neighbours:
        """Return the anchors in the buckets of some heads."""
        hashes, heads = to_bigint(flat(keys)), np.repeat(doc_ids, lengths(keys))
        order = np.argsort(hashes)  # neighbours are in the same pages of the index
        hashes, heads = hashes[order], heads[order]
        hidden, found = doc_ids[:0], None
        if self.leaves.distributed:
            rows = self.few_members(hashes)
            if rows is not None:
                hidden, found = _missing_heads(heads, hashes, rows), first_of(rows, bucket_limit, hashes)
            else:
                # Before the look-up: rows visible now stay visible.
                hidden = self.find_missing_bands(doc_ids, keys)
        if found is None:
            found = self._first_members(bucket_limit, heads, hashes)
        owners, beyond = heads[found.places], (found.numbers >= bucket_limit) & (bucket_limit > 0)
        linked = ~beyond & (found.members != owners)
        return Neighbours(
            np.stack((owners[linked], found.members[linked]), axis=1),
            np.unique(owners[beyond & (found.members > owners)]),
            hidden,
        )

    def find_missing_bands(self, doc_ids: Ints, keys: Keys) -> Ints:
        """Return the heads that lack any of their band rows, given by their keys, in order."""
        owners, hashes = np.repeat(doc_ids, lengths(keys)), to_bigint(flat(keys))
        found = self.run_by_shard("find_missing_bands", owners, hashes, "binary")
        return np.unique(np.array([doc_id for _, result in found for doc_id in result.values()], np.int64))

    def _first_members(self, bucket_limit: int, heads: Ints, hashes: Ints) -> Members:
        """Return the anchors of buckets, and one more member if there are more."""
        rows: list[tuple[int, bytes]] = []
        for lot, result in self.run_by_shard(
            "look_up_candidates",
            heads,
            hashes,
            "prepared",
            bucket_limit=bucket_limit,
        ):
            positions = lot.tolist()
            rows += [(positions[place], members) for place, members in result.rows()]
        places = np.array([place for place, _ in rows], np.int64)
        amounts = np.fromiter((len(members) for _, members in rows), np.int64, len(rows)) // _ID_BYTES
        members = unpacked_ids(b"".join(members for _, members in rows))
        return Members(np.repeat(places, amounts), members, places_of(np.zeros_like(amounts), amounts))

    def few_members(self, hashes: Ints) -> list[tuple[int, int]] | None:
        """Return (bucket_hash, doc_id) of all members of buckets on nodes, sorted; None if they are many."""
        most, rows = _FEW_MEMBERS * min(len(hashes), bands.MANY), list[tuple[int, int]]()
        for _, result in self.run_by_shard("list_bucket_members", hashes, hashes, "prepared", most=most):
            part = result.rows()
            rows += [(bucket_hash, doc_id) for bucket_hash, doc_id in part]
            if len(part) == most or len(rows) > _FEW_MEMBERS * len(hashes):
                return None
        return sorted(rows)

    def look_up_members(self, bucket_limit: int, anchor: int, keys: Keys, after: int, batch: int) -> Ints:
        """Return up to `batch` members above `after` of the anchor's buckets over the limit, in order."""
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
        """Return the anchors of some buckets as (bucket_hash, doc_id), and the buckets with more members than anchors.

        Both are empty without a limit: then every member is an anchor.
        """
        hashes = flat(keys)
        if bucket_limit == 0 or not len(hashes):
            return set(), hashes[:0]
        parameters = {"bucket_hashes": packed(to_bigint(hashes)), "bucket_limit": bucket_limit}
        rows = self.run("read_anchors", **parameters).rows()
        full = np.array(sorted({bucket for bucket, _, exceeds in rows if exceeds}), np.int64)
        return {(bucket, doc_id) for bucket, doc_id, _ in rows}, from_bigint(full)


def _missing_heads(heads: Ints, hashes: Ints, rows: Sequence[tuple[int, int]]) -> Ints:
    """Return the heads without the row of some bucket."""
    known = set(rows)
    needed = zip(hashes.tolist(), heads.tolist(), strict=True)
    return np.unique(np.array([row[1] for row in needed if row not in known], np.int64))


def first_of(rows: Sequence[tuple[int, int]], bucket_limit: int, hashes: Ints) -> Members:
    """Return what `_first_members` does, from the sorted members of all buckets."""
    buckets, members = np.array(rows, np.int64).reshape(-1, 2).T
    begins = np.searchsorted(buckets, hashes)
    amounts = np.searchsorted(buckets, hashes, "right") - begins
    if bucket_limit:
        amounts = np.minimum(amounts, bucket_limit + 1)
    places, numbers = np.repeat(np.arange(len(hashes)), amounts), places_of(np.zeros_like(amounts), amounts)
    return Members(places, members[places_of(begins, amounts)], numbers)
