"""Queries behind lookups and result sets: prepared statements, one round trip each, on a Citus cluster two."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from nearsim_db.records import CollectionId
from nearsim_db.similarity.arrays import Keys, flat
from nearsim_db.similarity.batches import PackedDigests, Signatures
from nearsim_db.similarity.sketch.family import Family
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.codec import sketches_from, to_bigint, unpacked_ids
from nearsim_db.store.driver.statements import GenerationStatements, Leaves, statement
from nearsim_db.store.signatures.neighbours import BucketQueries, first_of

Signed = tuple[int, int, bytes | None]  # doc_id, revision, sketch


class Twin(NamedTuple):
    """A document with the features of a candidate.

    `place` is the number of the candidate, from 1. `has_text` if the body was requested and is in the documents.
    """

    place: int
    doc_id: int
    external_id: str
    title: str | None
    body: str | None = None
    has_text: bool = False


class Unsigned(NamedTuple):
    """A document that was inserted after a check and is not signed as it is now."""

    doc_id: int
    external_id: str
    title: str | None


class LookupQueries(GenerationStatements):
    """Queries behind lookups and result sets of a generation."""

    def look_up_anchors(
        self, bucket_limit: int, digest: UUID, keys: Keys, family: Family, purged_at: datetime | None
    ) -> Signatures | None:
        """Return the heads to compare with a text that is not in the index, their digests packed.

        `keys` are its bucket hashes, uint64; `family` that of sketches. None if the generation is no longer live,
        or if texts were purged from its collection after `purged_at`.
        """
        hashes = to_bigint(flat(keys))
        parameters = {
            "bucket_hashes": packed(hashes),
            "bucket_limit": bucket_limit,
            "digest": digest,
            "purged_at": purged_at,
        }
        members = (
            BucketQueries(self.connection, self.leaves).few_members(hashes)
            if self.leaves.distributed
            else None
        )
        if members is None:
            rows = self._fetch("look_up_anchors", parameters)
        else:
            first = first_of(members, bucket_limit, np.unique(hashes))
            anchors = first.members[(first.numbers < bucket_limit) | (bucket_limit == 0)]
            rows = self._fetch("look_up_heads", {**parameters, "doc_ids": packed(anchors)})
        if not rows:
            return None
        doc_ids, sketches, digests, sizes = (one or b"" for one in rows[0])
        ends = np.cumsum(np.frombuffer(sizes, ">i4")).tolist()
        blobs = [sketches[begin:end] for begin, end in pairwise([0, *ends])] if family.ordered else [sketches]
        packed_digests = PackedDigests(np.frombuffer(digests, "V16"))
        return Signatures(unpacked_ids(doc_ids), sketches_from(blobs, family), packed_digests)

    def read_twins(self, digests: Sequence[UUID]) -> list[Twin] | None:
        """Return all documents with some digests, by doc_id. None if the generation is being dropped."""
        rows = self._fetch_known("read_twins", {"digests": packed(PackedDigests.of(digests).array)})
        return None if rows is None else [Twin(*row) for row in rows]

    def read_candidates(
        self, collection_id: CollectionId, digests: Sequence[UUID], unread: Sequence[int], most: int
    ) -> list[Twin] | None:
        """Return the first documents with each of some digests, at most `most`, with the bodies of those in `unread`.

        `unread` has a doc_id for each digest, 0 for none. None if the generation is being dropped.
        """
        parameters = {
            "collection_id": collection_id,
            "digests": packed(PackedDigests.of(digests).array),
            "unread": packed_ids(unread),
            "most": most,
        }
        rows = self._fetch_known("read_candidates", parameters)
        return None if rows is None else [Twin(*row) for row in rows]

    def lock_buckets(self, keys: Keys, external_id: str) -> bool:
        """Lock the buckets of a document against concurrent checked insertions, until the transaction ends.

        `keys` are the bucket hashes of its text, uint64. Return False, without locks, if the generation is gone.
        """
        parameters = {"bucket_hashes": packed(to_bigint(flat(keys))), "external_id": external_id}
        return bool(self._fetch("lock_buckets", parameters))

    def list_unsigned(self, collection_id: CollectionId, keys: Keys, replaced: str) -> list[Unsigned]:
        """Return unsigned documents that may share a bucket with a text, except the one with the id `replaced`."""
        parameters = {
            "bucket_hashes": packed(to_bigint(flat(keys))),
            "collection_id": collection_id,
            "replaced": replaced,
        }
        return [Unsigned(*row) for row in self._fetch("list_unsigned", parameters)]

    def read_signed(
        self, purged_at: datetime | None, doc_ids: Sequence[int], revisions: Sequence[int]
    ) -> list[Signed] | None:
        """Return the signed documents among some, without a sketch if they have no features or the given revision.

        None if the generation is no longer live, or if texts were purged from its collection after `purged_at`.
        """
        parameters = {
            "doc_ids": packed_ids(doc_ids),
            "revisions": packed_ids(revisions),
            "purged_at": purged_at,
        }
        rows = self._fetch_known("read_result_set", parameters)
        return None if rows is None else [(doc_id, revision, sketch) for doc_id, revision, sketch in rows]

    def read_verdicts(self, purged_at: datetime | None) -> list[tuple[int, int, bool]] | None:
        """Return the active verdicts as (left_id, right_id, whether pinned); None as for `read_signed`."""
        rows = self._fetch_known("read_active_verdicts", {"purged_at": purged_at})
        return None if rows is None else [(left, right, is_pin) for left, right, is_pin in rows]

    def _fetch(self, name: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        return self.run(_composed(name, self.leaves), "prepared", **parameters).rows()

    def _fetch_known(self, name: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]] | None:
        """Return the rows of a generation, an all-NULL row means none; None if it is not live, or not there."""
        rows = self._fetch(name, parameters)
        if not rows:
            return None
        return [] if rows[0][0] is None else rows


@lru_cache(maxsize=64)
def _composed(name: str, leaves: Leaves) -> bytes:
    return statement(name, leaves).as_bytes(None)
