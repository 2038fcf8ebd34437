"""Why records are rejected, for a warning if most of them are."""

from collections import Counter
from collections.abc import Iterable, Iterator

from nearsim_db.records import ReadDocument, Reject

_FEWEST_REJECTS, _MOST_REASONS, _REASONS_SHOWN = 3, 1_000, 3


class RejectReasons:
    """Counts the records that pass through `counted`, and the reasons of the rejects among them."""

    def __init__(self) -> None:
        self._read = self._rejected = 0
        self._reasons: Counter[str] = Counter()

    def counted(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        """Yield records, counting them."""
        for record in records:
            self._read += 1
            if not isinstance(record, ReadDocument):
                self._rejected += 1
                if len(self._reasons) < _MOST_REASONS or record.reason in self._reasons:
                    self._reasons[record.reason] += 1
            yield record

    def frequent(self) -> str:
        """Return the most frequent reasons with their numbers, as "2: not JSON; 1: 'id' is empty"."""
        frequent = self._reasons.most_common(_REASONS_SHOWN)
        shown = "; ".join(f"{count:,}: {reason}" for reason, count in frequent)
        return f"{shown}; ..." if len(self._reasons) > len(frequent) else shown

    def warnings(self) -> list[str]:
        """Return a warning with the most frequent reasons if most of several records were rejected."""
        rejected = self._rejected
        if rejected < _FEWEST_REJECTS or 2 * rejected <= self._read:
            return []
        return [f"{rejected:,} of {self._read:,} records were rejected ({self.frequent()})"]
