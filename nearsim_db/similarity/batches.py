"""Batches as arrays, passed between encoding, the store and verification."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress
from typing import Any, Self, overload
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints, Mask, Sketches


class Columns:
    """A base of dataclasses of columns of one length: arrays, sequences, other `Columns`, or None for an absent one.

    An integer is a total, which parts are added up to and a selection keeps.
    """

    __slots__ = ()
    __match_args__: tuple[str, ...]  # the names of the columns

    def take(self, chosen: NDArray[Any]) -> Self:
        """Return the rows selected by a mask or by places."""
        return type(self)(*(_taken(getattr(self, name), chosen) for name in self.__match_args__))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate at least one part."""
        return cls(*[_joined([getattr(part, name) for part in parts]) for name in cls.__match_args__])


def _taken(column: Any, chosen: NDArray[Any]) -> Any:
    match column:
        case np.ndarray():
            return column[chosen]
        case Columns():
            return column.take(chosen)
        case None | int():
            return column
        case _:
            return [column[place] for place in np.arange(len(column))[chosen].tolist()]


def _joined(parts: list[Any]) -> Any:
    match parts[0]:
        case np.ndarray():
            return np.concatenate(parts)
        case Columns() as first:
            return type(first).joined(parts)
        case int():
            return sum(parts)
        case None:
            return None
        case _:
            return tuple(chain.from_iterable(parts))


@dataclass(frozen=True, slots=True)
class SignatureRows(Columns):
    """Signatures to store. A row with count 0 has no features: its digest, sketch and head are not set.

    Shapes (n,): doc_ids and revisions int64, counts int32, digests void of 16 bytes, numbers uint64; sketches
    (n, k).
    """

    doc_ids: Ints
    revisions: Ints
    counts: NDArray[np.int32]
    digests: NDArray[np.void]
    sketches: Sketches
    numbers: Hashes

    def digest(self, row: int) -> UUID | None:
        """Return the digest of one row, None without features."""
        return UUID(bytes=self.digests[row].tobytes()) if self.counts[row] else None


@lru_cache(maxsize=16_384)
def _uuid_of(digest: bytes) -> UUID:
    """Return a digest as UUID: the same object for those read lately, which compares faster than an equal one."""
    return UUID(bytes=digest)


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
    """Stored signatures of heads: doc_ids int64 of n, sketches (n, k), digests n UUIDs.

    `distinct` if no two digests are known to be equal without comparing them.
    """

    doc_ids: Ints
    sketches: Sketches
    digests: Sequence[UUID]
    distinct: bool = False

    def take(self, chosen: Mask) -> "Signatures":
        """Return the signatures selected by a mask."""
        digests = list(compress(self.digests, chosen.tolist()))
        return Signatures(self.doc_ids[chosen], self.sketches[chosen], digests)

    def joined(self, others: "Signatures") -> "Signatures":
        """Append other signatures; if their digests are packed, all are."""
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
        """Return the digests of some rows, packed if all are."""
        if isinstance(self.digests, PackedDigests):
            return PackedDigests(self.digests.array[rows])
        return [self.digests[row] for row in rows]
