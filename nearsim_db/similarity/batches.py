"""Batches as arrays, passed between encoding, the store and verification."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import overload
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.records import Evidence


@dataclass(frozen=True, slots=True)
class SignatureRows:
    """Signatures to store. A row with count 0 has no features: its digest, sketch and head are not set.

    Shapes (n,): doc_ids and revisions int64, counts int32, digests void of 16 bytes, numbers uint64; sketches
    (n, k).
    """

    doc_ids: NDArray[np.int64]
    revisions: NDArray[np.int64]
    counts: NDArray[np.int32]
    digests: NDArray[np.void]
    sketches: NDArray[np.generic]
    numbers: NDArray[np.uint64]

    def take(self, chosen: NDArray[np.bool_]) -> "SignatureRows":
        """Return the rows selected by a mask."""
        return SignatureRows(
            self.doc_ids[chosen],
            self.revisions[chosen],
            self.counts[chosen],
            self.digests[chosen],
            self.sketches[chosen],
            self.numbers[chosen],
        )

    def digest(self, row: int) -> UUID | None:
        """Return the digest of one row, None without features."""
        return UUID(bytes=self.digests[row].tobytes()) if self.counts[row] else None


def joined(parts: Sequence[SignatureRows]) -> SignatureRows:
    """Concatenate at least one batch of rows."""
    return SignatureRows(
        np.concatenate([part.doc_ids for part in parts]),
        np.concatenate([part.revisions for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.sketches for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )


class PackedDigests(Sequence[UUID]):
    """Digests in an array, void of 16 bytes of n; a UUID is only made of those that are read."""

    def __init__(self, digests: NDArray[np.void]) -> None:
        self.array = digests

    @classmethod
    def of(cls, digests: Sequence[UUID]) -> "PackedDigests":
        """Pack digests, unless they are."""
        if isinstance(digests, cls):
            return digests
        return cls(np.frombuffer(b"".join([one.bytes for one in digests]), "V16"))

    def are_distinct(self) -> bool:
        """Whether no two of them are equal."""
        halves = self.array.view(np.uint64).reshape(-1, 2)
        ordered = halves[np.lexsort(halves.T)]
        return not (ordered[1:] == ordered[:-1]).all(axis=1).any()

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, place: int) -> UUID: ...

    @overload
    def __getitem__(self, place: slice) -> "PackedDigests": ...

    def __getitem__(self, place: int | slice) -> "UUID | PackedDigests":
        if isinstance(place, slice):
            return PackedDigests(self.array[place])
        return UUID(bytes=self.array[place].tobytes())


@dataclass(frozen=True, slots=True)
class Signatures:
    """Stored signatures of heads: doc_ids int64 of n, sketches (n, k), digests n UUIDs.

    `distinct` if no two digests are known to be equal without comparing them.
    """

    doc_ids: NDArray[np.int64]
    sketches: NDArray[np.generic]
    digests: Sequence[UUID]
    distinct: bool = False

    def take(self, chosen: NDArray[np.bool_]) -> "Signatures":
        """Return the signatures selected by a mask."""
        digests = list(compress(self.digests, chosen.tolist()))
        return Signatures(self.doc_ids[chosen], self.sketches[chosen], digests)

    def joined(self, others: "Signatures") -> "Signatures":
        """Append other signatures."""
        return Signatures(
            np.concatenate((self.doc_ids, others.doc_ids)),
            np.concatenate((self.sketches, others.sketches)),
            [*self.digests, *others.digests],
        )


@dataclass(frozen=True, slots=True)
class VerifiedPairs:
    """Verified pairs of heads, with the feature digests that were compared; all of length m.

    left, right, shared_bands int64 with left < right; estimate float64, at most 1; intersection and union are
    None for metrics that count no features, distance is None for those that measure none.
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

    def take(self, places: NDArray[np.int64]) -> "VerifiedPairs":
        """Return the pairs at some places, in their order."""
        return VerifiedPairs(
            self.left[places],
            self.right[places],
            self.shared_bands[places],
            self.estimate[places],
            self.similarity[places],
            None if self.intersection is None else self.intersection[places],
            None if self.union is None else self.union[places],
            None if self.distance is None else self.distance[places],
            [self.left_digests[place] for place in places.tolist()],
            [self.right_digests[place] for place in places.tolist()],
        )

    def evidence(self, *, is_exact: bool) -> Iterator[Evidence]:
        """Yield the evidence of each; without `is_exact` only documents of one digest are verified."""
        unknown = [None] * len(self.left)
        return map(
            Evidence,
            self.similarity.tolist(),
            unknown if self.intersection is None else self.intersection.tolist(),
            unknown if self.union is None else self.union.tolist(),
            self.estimate.round(6).tolist(),
            self.shared_bands.tolist(),
            unknown if self.distance is None else self.distance.tolist(),
            [
                is_exact or left == right
                for left, right in zip(self.left_digests, self.right_digests, strict=True)
            ],
        )
