"""Why records are rejected or kept without their date, for warnings."""

from collections import Counter
from collections.abc import Iterable, Iterator

from nearsim_db.errors import InputError, count_of
from nearsim_db.records import ReadDocument, Reject

_FEWEST_REJECTS, _MOST_REASONS, _REASONS_SHOWN = 3, 1_000, 3


class RejectReasons:
    """Counts the records that pass through `counted`, the rejects among them, and those with unreadable dates."""

    def __init__(self) -> None:
        self._read = self._rejected = self._undated = 0
        self._reasons: Counter[str] = Counter()
        self._first_date = ""

    def counted(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        """Yield records, counting them."""
        for record in records:
            self._read += 1
            if isinstance(record, ReadDocument):
                if record.unreadable_date is not None:
                    self._undated += 1
                    self._first_date = self._first_date or f"{place_of(record)}: {record.unreadable_date}"
            else:
                self._rejected += 1
                if len(self._reasons) < _MOST_REASONS or record.reason in self._reasons:
                    self._reasons[record.reason] += 1
            yield record

    def frequent(self) -> str:
        """Return the most frequent reasons with their numbers, as "2: not JSON; 1: 'id' is empty"."""
        frequent = self._reasons.most_common(_REASONS_SHOWN)
        shown = "; ".join(f"{count:,}: {reason}" for reason, count in frequent)
        return f"{shown}; ..." if len(self._reasons) > len(frequent) else shown

    def rejected(self) -> str | None:
        """Return how many records were rejected and why, None if none was."""
        if not self._rejected:
            return None
        were = "was" if self._rejected == 1 else "were"
        return f"{self._rejected:,} of {count_of(self._read, 'record')} {were} rejected ({self.frequent()})"

    def warnings(self) -> list[str]:
        """Return warnings if most of several records were rejected, and if dates could not be read."""
        rejected = self.rejected()
        if rejected is None or self._rejected < _FEWEST_REJECTS or 2 * self._rejected <= self._read:
            return self.of_dates()
        return [rejected, *self.of_dates()]

    def of_dates(self) -> list[str]:
        """Return a warning if dates could not be read."""
        if not self._undated:
            return []
        kept = (
            "is kept without its date, which" if self._undated == 1 else "are kept without their dates, which"
        )
        return [
            f"{count_of(self._undated, 'record')} {kept} cannot be read (the first in {self._first_date})"
        ]


def place_of(record: ReadDocument | Reject) -> str:
    """Return where a record was read, for messages."""
    return f"{record.file}, line {record.line:,}" if record.line else record.file


def stopped(record: ReadDocument | Reject, reason: str) -> InputError:
    """Return the error of a record at which --strict stops."""
    external_id = record.document.external_id if isinstance(record, ReadDocument) else record.external_id
    named = "" if external_id is None else f"document {external_id!r}; "
    return InputError(f"{place_of(record)}: {reason} ({named}stopped because of --strict)")
