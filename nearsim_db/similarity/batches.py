"""Whole batches as arrays: what passes between hashing, the store and verification."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SignatureRows:
    """Signatures to be stored. Rows whose `counts` are 0 have no features: no digest, no sketch, no head.

    Shapes (n,): doc_ids and revisions int64, counts int32, digests void of 16 bytes, numbers uint64; sketches (n, k).
    """

    doc_ids: NDArray[np.int64]
    revisions: NDArray[np.int64]
    counts: NDArray[np.int32]
    digests: NDArray[np.void]
    sketches: NDArray[np.generic]
    numbers: NDArray[np.uint64]

    def take(self, chosen: NDArray[np.bool_]) -> "SignatureRows":
        """The rows that a mask chooses."""
        return SignatureRows(
            self.doc_ids[chosen],
            self.revisions[chosen],
            self.counts[chosen],
            self.digests[chosen],
            self.sketches[chosen],
            self.numbers[chosen],
        )

    def digest(self, row: int) -> UUID | None:
        """The digest of one row, None without features."""
        return UUID(bytes=self.digests[row].tobytes()) if self.counts[row] else None


def joined(parts: Sequence[SignatureRows]) -> SignatureRows:
    """The rows of at least one part, in order."""
    return SignatureRows(
        np.concatenate([part.doc_ids for part in parts]),
        np.concatenate([part.revisions for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.sketches for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Signatures:
    """Stored signatures of heads. doc_ids int64 of n, sketches (n, k), digests n UUIDs."""

    doc_ids: NDArray[np.int64]
    sketches: NDArray[np.generic]
    digests: Sequence[UUID]

    def take(self, chosen: NDArray[np.bool_]) -> "Signatures":
        """The signatures that a mask chooses."""
        digests = [one for one, taken in zip(self.digests, chosen.tolist(), strict=True) if taken]
        return Signatures(self.doc_ids[chosen], self.sketches[chosen], digests)

    def joined(self, others: "Signatures") -> "Signatures":
        """These and others."""
        return Signatures(
            np.concatenate((self.doc_ids, others.doc_ids)),
            np.concatenate((self.sketches, others.sketches)),
            [*self.digests, *others.digests],
        )


@dataclass(frozen=True, slots=True)
class VerifiedPairs:
    """Verified pairs of heads, with the digests that the features had. All of length m.

    left, right, shared_bands int64 with left < right; estimate float64, at most 1; intersection and union are None
    for metrics that count no features, distance is None for those that measure none.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    shared_bands: NDArray[np.int64]
    estimate: NDArray[np.float64]
    similarity: NDArray[np.float64]
    intersection: NDArray[np.int64] | None
    union: NDArray[np.int64] | None
    distance: NDArray[np.float64] | None
    left_digests: Sequence[UUID]
    right_digests: Sequence[UUID]
