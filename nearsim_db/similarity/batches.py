"""Batches of signatures and other rows as arrays, which encoding, the store and verification exchange."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress
from typing import Any, Self, overload
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints, Mask, Sketches


class ColumnBatch:
    """Base class of dataclasses whose fields are columns of the same length.

    A column is an array, a sequence, another batch, or None if it is absent. A field that is an integer is a total:
    totals of joined parts are added, and a selection of rows keeps the total.
    """

    __slots__ = ()
    __match_args__: tuple[str, ...]  # the names of the columns

    def take(self, chosen: NDArray[Any]) -> Self:
        """Return the rows that a mask or an array of row numbers selects."""
        return type(self)(*(_taken(getattr(self, name), chosen) for name in self.__match_args__))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate at least one part."""
        return cls(*[_joined([getattr(part, name) for part in parts]) for name in cls.__match_args__])


def _taken(column: Any, chosen: NDArray[Any]) -> Any:
    match column:
        case np.ndarray():
            return column[chosen]
        case ColumnBatch():
            return column.take(chosen)
        case None | int():
            return column
        case _:
            return [column[place] for place in np.arange(len(column))[chosen].tolist()]


def _joined(parts: list[Any]) -> Any:
    match parts[0]:
        case np.ndarray():
            return np.concatenate(parts)
        case ColumnBatch() as first:
            return type(first).joined(parts)
        case int():
            return sum(parts)
        case None:
            return None
        case _:
            return tuple(chain.from_iterable(parts))


@dataclass(frozen=True, slots=True)
class SignatureRows(ColumnBatch):
    """Signatures to store. The digest and the sketch of a row without features are meaningless."""

    doc_ids: Ints
    revisions: Ints
    counts: NDArray[np.int32]  # number of features
    digests: NDArray[np.void]  # digests of the features, 16 bytes each
    sketches: Sketches  # (n, k)
    numbers: Hashes  # digests of the runs of digits in each text, 0 for a text without digits

    def digest(self, row: int) -> UUID | None:
        """Return the digest of a row, or None if it has no features."""
        return UUID(bytes=self.digests[row].tobytes()) if self.counts[row] else None


@lru_cache(maxsize=16_384)
def _uuid_of(digest: bytes) -> UUID:
    """Return a digest as a UUID.

    A recent digest gives the same object again, because identical objects compare faster than equal ones.
    """
    return UUID(bytes=digest)


class PackedDigests(Sequence[UUID]):
    """A sequence of digests in one array, void of 16 bytes. A UUID is created only when a digest is read."""

    def __init__(self, digests: NDArray[np.void]) -> None:
        self.array = digests

    @classmethod
    def of(cls, digests: Sequence[UUID]) -> "PackedDigests":
        """Pack digests. Digests that are already packed are returned unchanged."""
        if isinstance(digests, cls):
            return digests
        return cls(np.frombuffer(b"".join([digest.bytes for digest in digests]), "V16"))

    def are_distinct(self) -> bool:
        """Whether no two digests are equal."""
        halves = self.array.view(np.uint64).reshape(-1, 2)
        first = np.sort(halves[:, 0])
        if not (first[1:] == first[:-1]).any():
            return True
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
        return _uuid_of(self.array[place].tobytes())

    def __iter__(self) -> Iterator[UUID]:
        return map(_uuid_of, self.array.tolist())


@dataclass(frozen=True, slots=True)
class Signatures:
    """Stored signatures of n heads: documents that have no twin with a smaller doc_id."""

    doc_ids: Ints
    sketches: Sketches  # (n, k)
    digests: Sequence[UUID]
    distinct: bool = (
        False  # True only if no two digests are equal, and this is certain without comparing them
    )

    def take(self, chosen: Mask) -> "Signatures":
        """Return the signatures that a mask selects."""
        digests = list(compress(self.digests, chosen.tolist()))
        return Signatures(self.doc_ids[chosen], self.sketches[chosen], digests)

    def joined(self, others: "Signatures") -> "Signatures":
        """Append other signatures. The digests of the result are packed if those of `others` are."""
        if isinstance(others.digests, PackedDigests):
            packed = PackedDigests.of(self.digests).array, others.digests.array
            digests: Sequence[UUID] = PackedDigests(np.concatenate(packed))
        else:
            digests = [*self.digests, *others.digests]
        return Signatures(
            np.concatenate((self.doc_ids, others.doc_ids)),
            np.concatenate((self.sketches, others.sketches)),
            digests,
        )

    def digests_at(self, rows: Ints | Sequence[int]) -> Sequence[UUID]:
        """Return the digests of some rows, packed if all digests are packed."""
        if isinstance(self.digests, PackedDigests):
            return PackedDigests(self.digests.array[rows])
        return [self.digests[row] for row in rows]
