"""Vectors that owners give: checked, and held as PostgreSQL will hold them."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.readers.values import kind, shown
from nearsim_db.records import ReadDocument, Reject

_LENGTHS_SHOWN = 5


def checked_vector(value: object, name: str) -> "array[float] | None":
    """A list, array or NumPy array of finite numbers as 32-bit floats, None for None; `name` begins the reason.

    Raises InputError for anything else: none at all, NaN, infinities, numbers beyond 32-bit floats, other values.
    """
    if value is None:
        return None
    numbers = _numbers(value, name)
    if not len(numbers):
        raise InputError(f"{name} is empty; leave it out, or give at least one number")
    with np.errstate(over="ignore"):
        rounded = numbers.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise InputError(_refusal(numbers, rounded, name))
    return array("f", rounded.tobytes())


def _numbers(value: object, name: str) -> NDArray[np.generic]:
    """The same numbers as an array of one dimension, of floats or integers of some size."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for place, one in enumerate(value) if not _are_plain(value) else ():
            if not isinstance(one, float | np.floating) and type(one) is not int:
                raise InputError(
                    f"{name} holds {kind(one)}, {shown(one)}, at place {place + 1}; it must hold numbers only"
                )
        try:
            return np.array(value, np.float64)
        except OverflowError:
            raise InputError(f"{name} holds an integer beyond what 32-bit floats can hold") from None
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.dtype.kind in "fiu":
            return value
        raise InputError(
            f"{name} is of shape {value.shape} and type {value.dtype}; it must be numbers in one dimension"
        )
    raise InputError(f"{name} is {kind(value)}, {shown(value)}; it must be an array of numbers")


def _are_plain(values: Sequence[object]) -> bool:
    return isinstance(values, array) or {float, int}.issuperset(map(type, values))


def _refusal(numbers: NDArray[np.generic], rounded: NDArray[np.float32], name: str) -> str:
    place = int(np.flatnonzero(~np.isfinite(rounded))[0])
    number = float(numbers[place])
    why = "beyond what 32-bit floats can hold" if np.isfinite(number) else "which is no finite number"
    return f"{name} holds {number:g} at place {place + 1}, {why}"


class VectorLengthCheck:
    """Records as they pass, and how long the vectors among them are."""

    def __init__(self, records: Iterable[ReadDocument | Reject]) -> None:
        self._records = records
        self._counts: Counter[int] = Counter()

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        for record in self._records:
            if isinstance(record, ReadDocument) and record.document.vector is not None:
                self._counts[len(record.document.vector)] += 1
            yield record

    def warnings(self) -> list[str]:
        """That there were several lengths, if there were."""
        if len(self._counts) < 2:
            return []
        counts = self._counts.most_common()
        shown = ", ".join(
            f"{length:,} ({documents:,} documents)" for length, documents in counts[:_LENGTHS_SHOWN]
        )
        more = f" and {len(counts) - _LENGTHS_SHOWN:,} more" if len(counts) > _LENGTHS_SHOWN else ""
        return [
            f"vectors of different lengths were read: {shown}{more}; they are compared as if the shorter ones ended in "
            "zeros, which is hardly ever meant: vectors of one model have one length"
        ]
