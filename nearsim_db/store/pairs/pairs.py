"""The verified pairs of a generation: storing them under locks on their heads, loading many at once, deleting them."""

from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import numpy as np
from psycopg.errors import UniqueViolation

from nearsim_db.similarity.arrays import Ints, Mask
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.codec import Column, copy_rows
from nearsim_db.store.driver.statements import GenerationStatements

if TYPE_CHECKING:
    from nearsim_db.similarity.screening import VerifiedPairs

Row = TypeVar("Row")


class PairTable(GenerationStatements):
    """The verified pairs of a generation."""

    def store(self, pairs: "VerifiedPairs") -> Ints:
        """Insert pairs whose heads still have the digests that were verified, and lock the heads until the commit.

        Returns the pairs that are new, without pairs to be reviewed, as int64 of shape (m, 2).
        """
        is_new = self._lock_heads(pairs) & ~self._are_stored(pairs)
        # Inserted in the order of the key, so that sessions that insert the same pairs do not deadlock.
        order = np.lexsort((pairs.right, pairs.left))
        return self._insert(pairs.take(order[is_new[order]]))

    def load(self, pairs: "VerifiedPairs") -> None:
        """Load pairs of which few, if any, are stored yet; the caller keeps others from removing their heads."""
        self._insert(pairs)

    def _are_stored(self, pairs: "VerifiedPairs") -> Mask:
        """Return a mask of the pairs that are stored already."""
        stored = np.zeros(len(pairs.left), bool)
        if len(stored):
            parameters = {"left_ids": packed(pairs.left), "right_ids": packed(pairs.right)}
            stored[self.run("find_stored_pairs", **parameters).values()] = True
        return stored

    def _insert(self, pairs: "VerifiedPairs") -> Ints:
        """Insert pairs in this order; return those that are new, without pairs to be reviewed: int64, shape (m, 2)."""
        columns = _columns(pairs)
        try:
            if len(pairs.left):
                with self.connection.begin_nested():
                    copy_rows(self, "similar_pair", columns)
        except UniqueViolation:
            # Another session has inserted one of the pairs at the same time.
            optional = ("intersection_size", "union_size", "distance", "by_passage", "longest_passage")
            parameters = dict.fromkeys(optional) | {name: packed(values) for name, values in columns}
            rows = self.run("store_pairs", "binary", **parameters).rows()
            return np.array(rows, np.int64).reshape(-1, 2)
        return np.stack((pairs.left, pairs.right), axis=1)[~pairs.in_review]

    def _lock_heads(self, pairs: "VerifiedPairs") -> Mask:
        """Lock the heads of pairs, and return a mask of the pairs whose heads still have the verified digests."""
        if not len(pairs.left):
            return np.zeros(0, bool)

        parameters = {"doc_ids": packed(np.unique(np.concatenate((pairs.left, pairs.right))))}
        digests: dict[int, UUID] = dict(self.run("lock_heads", "binary", **parameters).rows())
        left = zip(pairs.left.tolist(), pairs.left_digests, strict=True)
        right = zip(pairs.right.tolist(), pairs.right_digests, strict=True)
        return np.array(
            [
                digests.get(left_id) == left_digest and digests.get(right_id) == right_digest
                for (left_id, left_digest), (right_id, right_digest) in zip(left, right, strict=True)
            ],
            np.bool_,
        )

    def delete_of(self, doc_ids: Ints) -> None:
        """Delete the pairs of documents that are no longer heads."""
        if len(doc_ids):
            self.run("delete_pairs_of", doc_ids=packed(doc_ids))


def _columns(pairs: "VerifiedPairs") -> list[Column]:
    """Return the columns of pairs that the metric defines."""
    scores = pairs.scores
    columns: list[Column] = [
        ("left_id", pairs.left),
        ("right_id", pairs.right),
        ("shared_bands", pairs.shared_bands.astype(np.int16)),
        ("estimate", pairs.estimate.astype(np.float32)),
        ("similarity", scores.similarity),
        ("in_review", pairs.in_review),
    ]

    if scores.intersection is not None and scores.union is not None:
        columns.append(("intersection_size", scores.intersection.astype(np.int32)))
        columns.append(("union_size", scores.union.astype(np.int32)))
    if scores.distance is not None:
        columns.append(("distance", scores.distance))
    if scores.by_passage is not None:
        columns.append(("by_passage", scores.by_passage))
    if scores.longest_passage is not None:
        columns.append(("longest_passage", scores.longest_passage.astype(np.int32)))
    return columns
