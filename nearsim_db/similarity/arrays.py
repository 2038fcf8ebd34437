"""Names for types of arrays, and ragged arrays: rows of different lengths in one array."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]  # doc_ids, places, counts, offsets
Hashes = NDArray[np.uint64]  # ids of shingles, band keys
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Sketches = NDArray[np.generic]  # (n, k), of the dtype of the sketch family
FeatureSets = Sequence[NDArray[Any]]  # the features of each document, in the form that the metric takes


def offsets_of(lengths: Ints | Mask) -> Ints:
    """Return where rows of these lengths begin in one array, and where the last row ends: int64 of n + 1."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


def places_of(begins: Ints, lengths: Ints) -> Ints:
    """Return the places of all elements of rows that begin at `begins` and have these lengths, row by row."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)


def are_fresh(*columns: Hashes | Ints) -> Mask:
    """Return at which places a run of equal rows begins: bool of n. The rows are sorted, and given as columns."""
    fresh = np.zeros(len(columns[0]), np.bool_)
    fresh[:1] = True
    for column in columns:
        fresh[1:] |= column[1:] != column[:-1]
    return fresh


@dataclass(frozen=True, slots=True)
class Ragged:
    """n rows of different lengths in one array. Row i is `values[offsets[i]:offsets[i + 1]]`."""

    values: Hashes
    offsets: Ints  # int64 of n + 1

    @classmethod
    def of(cls, rows: Sequence[Hashes]) -> "Ragged":
        """Concatenate rows."""
        values = np.concatenate([np.zeros(0, np.uint64), *rows])
        return cls(values, offsets_of(np.fromiter(map(len, rows), np.int64, len(rows))))

    @classmethod
    def joined(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """Concatenate at least one part."""
        lengths = [np.diff(part.offsets) for part in parts]
        return cls(np.concatenate([part.values for part in parts]), offsets_of(np.concatenate(lengths)))

    def united(self, other: "Ragged") -> "Ragged":
        """Return the union of each row with the same row of `other`, ascending and without repetitions."""
        owners = np.concatenate(
            [np.repeat(np.arange(len(rows)), np.diff(rows.offsets)) for rows in (self, other)]
        )
        values = np.concatenate((self.values, other.values))
        order = np.lexsort((values, owners))
        owners, values = owners[order], values[order]
        fresh = are_fresh(owners, values)
        return Ragged(values[fresh], offsets_of(np.bincount(owners[fresh], minlength=len(self))))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, chosen: NDArray[Any] | slice) -> "Ragged":
        """Return the rows that a mask, an array of row numbers or a slice selects."""
        lengths, begins = np.diff(self.offsets)[chosen], self.offsets[:-1][chosen]
        return Ragged(self.values[places_of(begins, lengths)], offsets_of(lengths))


Keys = Hashes | Ragged  # the band keys of n documents: (n, bands), or rows of different lengths


def flat(keys: Keys) -> Hashes:
    """Return all band keys, document by document."""
    return keys.values if isinstance(keys, Ragged) else keys.reshape(-1)


def lengths(keys: Keys) -> Ints:
    """Return the number of band keys of each document: int64 of n."""
    return np.diff(keys.offsets) if isinstance(keys, Ragged) else np.full(len(keys), keys.shape[1], np.int64)


def joined(parts: Sequence[Keys]) -> Keys:
    """Concatenate one or more parts, which are all arrays or all ragged."""
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if ragged:
        return Ragged.joined(ragged)
    arrays: Hashes = np.concatenate([part for part in parts if not isinstance(part, Ragged)])
    return arrays


def checksums(keys: Keys) -> Hashes:
    """Return the exclusive or of the band keys of each document: uint64 of n."""
    totals = np.append(np.zeros(1, np.uint64), np.bitwise_xor.accumulate(flat(keys)))
    ends = offsets_of(lengths(keys))
    sums: Hashes = totals[ends[1:]] ^ totals[ends[:-1]]
    return sums
