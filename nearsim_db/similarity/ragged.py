"""Rows of different lengths in one array: band keys of families whose sketches are as long as the texts require."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes, Ints


@dataclass(frozen=True, slots=True)
class Ragged:
    """n rows of uint64: row i is `values[offsets[i]:offsets[i + 1]]`; `offsets` is int64 of n + 1."""

    values: Hashes
    offsets: Ints

    @classmethod
    def of(cls, rows: Sequence[Hashes]) -> "Ragged":
        """Concatenate rows."""
        values = np.concatenate([np.zeros(0, np.uint64), *rows])
        return cls(values, _offsets(np.fromiter(map(len, rows), np.int64, len(rows))))

    @classmethod
    def joined(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """Concatenate at least one part."""
        lengths = [np.diff(part.offsets) for part in parts]
        return cls(np.concatenate([part.values for part in parts]), _offsets(np.concatenate(lengths)))

    def united(self, other: "Ragged") -> "Ragged":
        """Return the rows with those of as many others added, sorted, each value of a row once."""
        owners = np.concatenate(
            [np.repeat(np.arange(len(one)), np.diff(one.offsets)) for one in (self, other)]
        )
        values = np.concatenate((self.values, other.values))
        order = np.lexsort((values, owners))
        owners, values = owners[order], values[order]
        fresh = np.ones(len(values), bool)
        fresh[1:] = (owners[1:] != owners[:-1]) | (values[1:] != values[:-1])
        return Ragged(values[fresh], _offsets(np.bincount(owners[fresh], minlength=len(self))))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, chosen: NDArray[Any] | slice) -> "Ragged":
        """Return the rows selected by a mask, by places or by a slice."""
        lengths, begins = np.diff(self.offsets)[chosen], self.offsets[:-1][chosen]
        offsets = _offsets(lengths)
        places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
        return Ragged(self.values[places], offsets)


Keys = Hashes | Ragged  # band keys of n documents: (n, bands), or rows of different lengths


def flat(keys: Keys) -> Hashes:
    """Return all band keys, document by document."""
    return keys.values if isinstance(keys, Ragged) else keys.reshape(-1)


def lengths(keys: Keys) -> Ints:
    """Return the number of band keys of each document: int64 of n."""
    return np.diff(keys.offsets) if isinstance(keys, Ragged) else np.full(len(keys), keys.shape[1], np.int64)


def joined(parts: Sequence[Keys]) -> Keys:
    """Concatenate at least one part, all of one kind."""
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if ragged:
        return Ragged.joined(ragged)
    arrays: Hashes = np.concatenate([part for part in parts if not isinstance(part, Ragged)])
    return arrays


def checksums(keys: Keys) -> Hashes:
    """Return the exclusive or of the band keys of each document: uint64 of n."""
    totals = np.append(np.zeros(1, np.uint64), np.bitwise_xor.accumulate(flat(keys)))
    ends = _offsets(lengths(keys))
    sums: Hashes = totals[ends[1:]] ^ totals[ends[:-1]]
    return sums


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
