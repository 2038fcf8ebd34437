"""By what a keep policy ranks records of files."""

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf, isnan, nan

import numpy as np

from nearsim_db.records import Document
from nearsim_db.similarity.arrays import Floats, Ints

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Ranks:
    """What a keep policy ranks documents by: source, length, date, `column`. A document without a date is dated now."""

    def __init__(self, policy: str, names: Sequence[str]) -> None:
        self.policy = policy
        self.column: str | None = names[0] if policy == "highest" else None
        self._places = {name: at for at, name in reversed(list(enumerate(names)))}
        self._now = _microseconds(datetime.now(UTC))
        self._dates = array("q")
        self._keys = array("d")  # by which the policy ranks first, the smallest best

    def __len__(self) -> int:
        return len(self._dates)

    @property
    def has_numbers(self) -> bool:
        """Whether any document has a number in the column."""
        return any(key != inf for key in self._keys)

    def add(self, document: Document, value: object = None) -> None:
        """Add a document with its value of the column."""
        date = self._now if document.published_at is None else _microseconds(document.published_at)
        self._dates.append(date)
        if self.policy == "source":
            self._keys.append(self._places.get(document.source or "", len(self._places)))
        elif self.policy == "longest":
            self._keys.append(-len(document.title or "") - len(document.body or ""))
        elif self.policy == "latest":
            self._keys.append(-date)
        elif self.policy == "highest":
            number = _number(value)
            self._keys.append(inf if number is None else -number)

    def rank_by(self, values: Floats) -> None:
        """Rank first by values of the documents, the largest best."""
        self._keys = array("d", (-values).tobytes())

    def is_older(self, number: int, age_seconds: int | None) -> bool:
        """Whether a document is older than an age."""
        return age_seconds is not None and self._dates[number] < self._now - age_seconds * 1_000_000

    def order(self, numbers: Ints) -> Ints:
        """Return documents, best first; ties go to the earlier date, then to the first, or to the last for latest."""
        dates = np.frombuffer(self._dates, np.int64)[numbers]
        keys = np.frombuffer(self._keys, np.float64)[numbers] if self._keys else np.zeros(len(numbers))
        places = -numbers if self.policy == "latest" else numbers
        return numbers[np.lexsort((places, dates, keys))]

    def earlier_first(self, one: int, other: int) -> tuple[int, int]:
        """Return two documents, the earlier one first if both have dates that differ, otherwise in their order."""
        first, second = self._dates[one], self._dates[other]
        if self._now not in (first, second) and first != second:
            return (one, other) if first < second else (other, one)
        return (one, other) if one < other else (other, one)


def _number(value: object) -> float | None:
    """Return a number, also one that is written as text; None for anything else."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) else nan
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else number


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
