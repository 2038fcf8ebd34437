"""Check vectors that users supply, and convert them to PostgreSQL's 32-bit floats."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.messages import count_of
from nearsim_db.readers.values import kind, shown
from nearsim_db.records import Document, ReadDocument, Reject

_LENGTHS_SHOWN = 5
# Up to this number, numbers are converted faster without NumPy.
_MAX_PLAIN_NUMBERS = 16


def checked_vector(value: object, name: str) -> "array[float] | None":
    """Convert a list, array or NumPy array of finite numbers to 32-bit floats; return None for None.

    Raises InputError, whose message begins with `name`, for anything else: an empty array, NaN, infinities, numbers
    beyond the range of 32-bit floats, and other values.
    """
    if value is None:
        return None

    if type(value) is list and 0 < len(value) <= _MAX_PLAIN_NUMBERS and _are_plain(value):
        with suppress(OverflowError):
            short_vector = array("f", value)
            # The sum of so few 32-bit floats is finite if all of them are.
            if isfinite(sum(short_vector)):
                return short_vector

    numbers = _numbers(value, name)
    if not len(numbers):
        raise InputError(f"{name} is empty; leave it out, or give at least one number")

    # Numbers that are too large become infinite, which raises InputError below.
    with np.errstate(over="ignore"):
        rounded = numbers.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise InputError(_reason(numbers, rounded, name))
    return array("f", rounded.tobytes())


def _numbers(value: object, name: str) -> NDArray[np.generic]:
    """Convert a value to a one-dimensional array of floats or integers of any size."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for position, item in enumerate(value, 1) if not _are_plain(value) else ():
            # Compare exact types, because True and False are instances of int too.
            if not isinstance(item, float | np.floating) and type(item) is not int:
                raise InputError(
                    f"{name} has {kind(item)}, {shown(item)}, at position {position}; it must have numbers only"
                )
        try:
            return np.array(value, np.float64)
        except OverflowError:
            raise InputError(f"{name} has an integer beyond the range of 32-bit floats") from None

    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.dtype.kind in "fiu":
            return value
        raise InputError(
            f"{name} has shape {value.shape} and type {value.dtype}; it must be a one-dimensional array of numbers"
        )

    raise InputError(f"{name} is {kind(value)}, {shown(value)}; it must be an array of numbers")


def _are_plain(values: Sequence[object]) -> bool:
    return isinstance(values, array) or {float, int}.issuperset(map(type, values))


def _reason(numbers: NDArray[np.generic], rounded: NDArray[np.float32], name: str) -> str:
    index = int(np.flatnonzero(~np.isfinite(rounded))[0])
    number = float(numbers[index])
    reason = "beyond the range of 32-bit floats" if np.isfinite(number) else "which is not a finite number"
    return f"{name} has {number:g} at position {index + 1}, {reason}"


class VectorLengths:
    """Counts the lengths of the vectors of documents."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def count(self, documents: Iterable[Document]) -> None:
        """Count the vectors of some documents."""
        vectors = [document.vector for document in documents if document.vector is not None]
        self._counts.update(map(len, vectors))

    def warnings(self) -> list[str]:
        """Return a warning if there were several lengths."""
        if len(self._counts) < 2:
            return []
        counts = self._counts.most_common()
        shown = ", ".join(
            f"{length:,} ({count_of(documents, 'document')})" for length, documents in counts[:_LENGTHS_SHOWN]
        )
        omitted = f" and {len(counts) - _LENGTHS_SHOWN:,} more" if len(counts) > _LENGTHS_SHOWN else ""
        return [
            f"the vectors have different lengths: {shown}{omitted}; shorter ones are compared as if padded with zeros, "
            "which is rarely intended, as the vectors of one model have one length"
        ]


class VectorLengthCheck(VectorLengths):
    """Yields records unchanged, and counts the lengths of their vectors."""

    def __init__(self, records: Iterable[ReadDocument | Reject]) -> None:
        super().__init__()
        self._records = records

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        for record in self._records:
            if isinstance(record, ReadDocument) and record.document.vector is not None:
                self.count((record.document,))
            yield record
