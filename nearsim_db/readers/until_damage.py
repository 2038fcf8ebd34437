"""Records of files up to the first one that cannot be read further."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from nearsim_db.errors import InputError
from nearsim_db.records import ReadDocument, Reject

_MOST_REJECTS = 1_000
_FEWEST_REJECTS, _MOST_REASONS, _REASONS_SHOWN = 3, 1_000, 3


class UntilDamage:
    """The records of a source up to the first read error, which is kept in `damage`."""

    def __init__(self, records: Iterator[ReadDocument | Reject]) -> None:
        self._records = records
        self._begun: list[ReadDocument | Reject] = []
        self.damage: InputError | None = None
        self._read = self._rejected = 0
        self._reasons: Counter[str] = Counter()

    def has_documents(self) -> bool:
        """Read up to the first document; whether there is one, or more rejects than are kept in memory."""
        try:
            for record in self._records:
                self._begun.append(record)
                if isinstance(record, ReadDocument) or len(self._begun) == _MOST_REJECTS:
                    return True
        except InputError as error:
            self.damage = error
        return False

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        try:
            for record in chain(self._begun, self._records):
                self._read += 1
                if not isinstance(record, ReadDocument):
                    self._rejected += 1
                    if len(self._reasons) < _MOST_REASONS or record.reason in self._reasons:
                        self._reasons[record.reason] += 1
                yield record
        except InputError as error:
            self.damage = error

    def warnings(self) -> list[str]:
        """Return a warning with the most frequent reasons if most of several records were rejected."""
        rejected = self._rejected
        if rejected < _FEWEST_REJECTS or 2 * rejected <= self._read:
            return []
        frequent = self._reasons.most_common(_REASONS_SHOWN)
        shown = "; ".join(f"{count:,}: {reason}" for reason, count in frequent)
        more = "; ..." if len(self._reasons) > len(frequent) else ""
        return [f"{rejected:,} of {self._read:,} records were rejected ({shown}{more})"]
