"""The queries of lookups and result sets: prepared statements that need one round trip each, or two on a Citus cluster.

A lookup finds the documents that a text would be paired with. A result set is a list of documents that an application
found, such as the hits of a search. A `Deduper` finds the duplicates in a result set by the sketches that `read_signed`
returns.
"""

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
from nearsim_db.store.signatures.neighbours import BucketQueries, first_members

# doc_id, revision and sketch of a signed document.
SignedRow = tuple[int, int, bytes | None]


class Twin(NamedTuple):
    """A document that has the same features as a candidate, such as the candidate itself."""

    place: int  # number of the candidate, from 1
    doc_id: int
    external_id: str
    title: str | None
    body: str | None = None
    has_text: bool = False  # whether the body was requested and is stored in nearsim.document


class Unsigned(NamedTuple):
    """A document that was inserted after a check, and whose present revision is not signed yet."""

    doc_id: int
    external_id: str
    title: str | None


class LookupQueries(GenerationStatements):
    """The queries of lookups and result sets on a generation."""

    def look_up_anchors(
        self, bucket_limit: int, digest: UUID, keys: Keys, family: Family, purged_at: datetime | None
    ) -> Signatures | None:
        """Return the heads to compare with a text that is not in the index; their digests are packed.

        `digest` is the digest of the text's features, and `keys` are its bucket hashes, uint64. Returns None if the
        generation is no longer live, or if texts were purged from its collection after `purged_at`.
        """
        hashes = to_bigint(flat(keys))
        parameters = {
            "bucket_hashes": packed(hashes),
            "bucket_limit": bucket_limit,
            "digest": digest,
            "purged_at": purged_at,
        }
        # Only distributed band rows are fetched in a separate query.
        members = None
        if self.leaves.distributed:
            members = BucketQueries(self.connection, self.leaves).list_members_if_few(hashes)
        if members is None:
            rows = self._fetch("look_up_anchors", parameters)
        else:
            first = first_members(members, bucket_limit, np.unique(hashes))
            # A bucket limit of 0 means no limit.
            anchors = first.members[(first.numbers < bucket_limit) | (bucket_limit == 0)]
            rows = self._fetch("look_up_heads", {**parameters, "doc_ids": packed(anchors)})
        if not rows:
            return None

        # Sketches whose size depends on the text must be separated.
        doc_ids, sketches, digests, sizes = (column or b"" for column in rows[0])
        ends = np.cumsum(np.frombuffer(sizes, ">i4")).tolist()
        blobs = [sketches[begin:end] for begin, end in pairwise([0, *ends])] if family.ordered else [sketches]
        packed_digests = PackedDigests(np.frombuffer(digests, "V16"))
        return Signatures(unpacked_ids(doc_ids), sketches_from(blobs, family), packed_digests)

    def read_twins(self, digests: Sequence[UUID]) -> list[Twin] | None:
        """Return all documents with these digests, sorted by doc_id; None if the generation was or is being dropped."""
        rows = self._fetch_if_exists("read_twins", {"digests": packed(PackedDigests.of(digests).array)})
        return None if rows is None else [Twin(*row) for row in rows]

    def read_candidates(
        self, collection_id: CollectionId, digests: Sequence[UUID], unread: Sequence[int], max_twins: int
    ) -> list[Twin] | None:
        """Return the first documents with each of these digests, up to `max_twins` for a digest.

        `unread` has, for each digest, the doc_id of a document whose body is read too, or 0. Returns None if the
        generation was or is being dropped.
        """
        parameters = {
            "collection_id": collection_id,
            "digests": packed(PackedDigests.of(digests).array),
            "unread": packed_ids(unread),
            "max_twins": max_twins,
        }
        rows = self._fetch_if_exists("read_candidates", parameters)
        return None if rows is None else [Twin(*row) for row in rows]

    def lock_buckets(self, keys: Keys, external_id: str) -> bool:
        """Lock the buckets of a document against concurrent checked insertions until the transaction ends.

        `keys` are the bucket hashes of the document's text, uint64. Returns False without taking locks if the
        generation was dropped.
        """
        parameters = {"bucket_hashes": packed(to_bigint(flat(keys))), "external_id": external_id}
        return bool(self._fetch("lock_buckets", parameters))

    def list_unsigned(self, collection_id: CollectionId, keys: Keys, replaced: str) -> list[Unsigned]:
        """Return unsigned documents that may share a bucket with a text, except the document with the id `replaced`."""
        parameters = {
            "bucket_hashes": packed(to_bigint(flat(keys))),
            "collection_id": collection_id,
            "replaced": replaced,
        }
        return [Unsigned(*row) for row in self._fetch("list_unsigned", parameters)]

    def read_signed(
        self, purged_at: datetime | None, doc_ids: Sequence[int], revisions: Sequence[int]
    ) -> list[SignedRow] | None:
        """Return those of the documents that are signed.

        The sketch is None if the document has no features, or if its revision is the one in `revisions`. Returns None
        if the generation is no longer live, or if texts were purged from its collection after `purged_at`.
        """
        parameters = {
            "doc_ids": packed_ids(doc_ids),
            "revisions": packed_ids(revisions),
            "purged_at": purged_at,
        }
        rows = self._fetch_if_exists("read_result_set", parameters)
        return None if rows is None else [(doc_id, revision, sketch) for doc_id, revision, sketch in rows]

    def read_verdicts(self, purged_at: datetime | None) -> list[tuple[int, int, bool]] | None:
        """Return the verdicts in force as (left_id, right_id, is_pin); None in the same cases as `read_signed`."""
        rows = self._fetch_if_exists("read_active_verdicts", {"purged_at": purged_at})
        return None if rows is None else [(left, right, is_pin) for left, right, is_pin in rows]

    def _fetch(self, name: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        return self.run(_composed(name, self.leaves), "prepared", **parameters).rows()

    def _fetch_if_exists(self, name: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]] | None:
        """Return the rows of a statement, or None if the statement finds that the generation cannot be used."""
        rows = self._fetch(name, parameters)
        # If a usable generation has no rows to return, these statements return one row of NULLs.
        if not rows:
            return None
        return [] if rows[0][0] is None else rows


@lru_cache(maxsize=64)
def _composed(name: str, leaves: Leaves) -> bytes:
    return statement(name, leaves).as_bytes(None)
