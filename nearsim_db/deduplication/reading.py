"""The records that are de-duplicated, and those of another corpus: read once, encoded, with where they are."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from nearsim_db.deduplication.comparison import Comparison, Labels
from nearsim_db.deduplication.ranks import Ranks
from nearsim_db.errors import InputError, none_usable
from nearsim_db.readers import Fields, RejectWriter, VectorLengthCheck
from nearsim_db.readers.contract import ID
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.rejects import RejectReasons, stopped
from nearsim_db.readers.values import column_of
from nearsim_db.readers.vector_files import VectorFile
from nearsim_db.records import Document, IngestSummary, Progress, ReadDocument, Reject
from nearsim_db.similarity.arrays import Ints, Mask
from nearsim_db.similarity.recipe import refuse_unusable_keep

REPORT_EVERY = 1_000

Item = TypeVar("Item")


class Records(Protocol):
    """Records with fields, of one corpus; `read` yields those of one of its parts."""

    @property
    def fields(self) -> Fields: ...
    def read(self, path: Path, /) -> Iterator[ReadDocument | Reject]: ...
    def __iter__(self) -> Iterator[ReadDocument | Reject]: ...


class Added(Protocol):
    """Where records are added as they are read, and the keep policy that needs a value of them."""

    @property
    def keep(self) -> str: ...
    @property
    def ranks(self) -> Ranks: ...
    def add(self, document: Document, value: object = None, /) -> None: ...
    def finish(self) -> None: ...


class DedupeInput:
    """Reads all records once; `summary`, and where the documents are in their inputs, are complete then.

    `empty_others` are the numbers from 0 of the sources of another corpus without any record.

    `parts` are the parts of the source, each with whether the positions of its records are their lines, not the numbers
    of records from 0.
    """

    def __init__(
        self,
        source: Records,
        parts: Sequence[tuple[Path, bool]],
        beside: VectorFile,
        against: Sequence[Records],
        comparison: Comparison,
    ) -> None:
        self.reasons: RejectReasons = RejectReasons()
        self.summary: IngestSummary = IngestSummary()
        self._beside = beside
        self._positions, self._others = [array("q") for _ in parts], array("q")
        self._current: array[int] | None = None
        self._position = self._ordinal = 0
        self._fields = source.fields
        self.labels: Labels = Labels(comparison)
        self.against_read: int = 0
        self.against_rejected: int = 0
        self.empty_others: list[int] = []
        records = chain(self._of_others(against), beside.joined(self._noted(source, parts)))
        self._records = VectorLengthCheck(self.reasons.counted(records))

    def _of_others(self, against: Sequence[Records]) -> Iterator[ReadDocument | Reject]:
        """Yield the records of another corpus."""
        own = self._fields
        for number, source in enumerate(against):
            self._fields, before = source.fields, self.against_read
            yield from self._numbered(source)
            if self.against_read == before:
                self.empty_others.append(number)
        self._fields = own

    def _noted(self, source: Records, parts: Sequence[tuple[Path, bool]]) -> Iterator[ReadDocument | Reject]:
        """Yield the records of a source, each before the next one is read, and note where it is."""
        for (path, by_line), positions in zip(parts, self._positions, strict=True):
            self._current = positions
            for position, record in enumerate(self._numbered(source.read(path))):
                self._position = record.line if by_line else position
                yield record

    def _numbered(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        """Yield records, each with its number in its file from 1 in `_ordinal`."""
        file = None
        for one in records:
            file, self._ordinal = one.file, self._ordinal + 1 if one.file == file else 1
            yield one

    def read(
        self,
        records: Added,
        places: RecordPlaces | None,
        rejects: RejectWriter,
        progress: Progress,
        *,
        strict: bool,
    ) -> None:
        """Encode all documents, and write the rejects."""
        summary, self.summary.first_rejects = self.summary, rejects.first
        across = self.labels.comparison.across
        for read, one in enumerate(self._records, 1):
            self._count(one)
            if isinstance(one, Reject):
                rejects.write(one)
            if strict:
                _refuse(one)
            if isinstance(one, Reject):
                continue
            if self._current is None:
                self._others.append(self.against_read - 1)
            else:
                self._current.append(self._position)
            if places is not None:
                places.add(one, self._ordinal)
            value = None if across is None else column_of(one, across, self._fields)
            self.labels.add(value, is_against=self._current is None)
            column = records.ranks.column
            records.add(one.document, None if column is None else column_of(one, column, self._fields))
            if read % REPORT_EVERY == 0:
                progress("read", read, None)
        records.finish()
        self.labels.finish()
        total = self.against_read + summary.read
        progress("read", total, total)
        if across is not None and self.labels.count and not self.labels.has_values:
            raise InputError(
                f"no record has '{across}', across which pairs count; name another field with "
                f"{self._fields.arguments.across}"
            )

        if self.labels.count:
            names = self._fields.arguments
            remedies = {
                "source": f"name the field that holds it with {names.source}",
                "latest": f"name the field that holds it with {names.published_at}",
                "highest": "name another column",
            }
            refuse_unusable_keep(records.keep, partial(self._has, records.ranks), remedies)

    def _has(self, ranks: Ranks, policy: str) -> bool:
        """Whether any document has what a keep policy ranks by."""
        fields = self.reasons.fields
        return {"source": fields.has_source, "latest": fields.has_date, "highest": ranks.has_numbers}[policy]

    def refuse_unusable(self) -> None:
        """Raise InputError if there are records, but none is usable or has the field that was named for the id."""
        summary = self.summary
        if summary.read and summary.rejected == summary.read:
            raise InputError(f"{none_usable(summary.read)} ({self.reasons.frequent()})")
        if summary.read and self.reasons.all_are_numbered and self._fields.id != ID:
            raise InputError(
                f"no record has the id '{self._fields.id}'; name another field with {self._fields.arguments.id}"
            )

    def _count(self, one: ReadDocument | Reject) -> None:
        summary, is_reject = self.summary, isinstance(one, Reject)
        if self._current is None:
            self.against_read += 1
            self.against_rejected += is_reject
            return
        summary.read += 1
        summary.rejected += is_reject
        if isinstance(one, ReadDocument):
            summary.unreadable_dates += one.unreadable_date is not None
            summary.replaced_characters += one.replaced

    @property
    def rejected(self) -> int:
        """The number of records that were rejected, those of the other corpus included."""
        return self.summary.rejected + self.against_rejected

    def refuse_replacing(
        self, outputs: Sequence[Path | None], inputs: Sequence[Path], most_rejected: int | None
    ) -> None:
        """Raise InputError if an output would replace an input, of which more records were rejected."""
        if most_rejected is None or self.rejected <= most_rejected:
            return
        given = {path.resolve() for path in inputs}
        for output in outputs:
            if output is not None and output.resolve() in given:
                raise InputError(
                    f"{self.reasons.rejected()}, and {output} is both input and output: nothing was written; name "
                    "another output, or write the rejected records to a file with --rejects"
                )

    def warnings(self) -> list[str]:
        """Return warnings about dates and vectors."""
        return [*self.reasons.of_dates(), *self._beside.warnings, *self._records.warnings()]

    @property
    def rows(self) -> list[int]:
        """The positions of all documents in their parts, after those of the other corpus."""
        return [row for part in (self._others, *self._positions) for row in part]

    def kept(self, removed: Mask) -> dict[int, Ints]:
        """Return the positions of the records that are not removed, by input."""
        first, found = self.labels.against, {}
        for part, positions in enumerate(self._positions):
            inside = removed[first : first + len(positions)]
            found[part] = np.frombuffer(positions, np.int64)[~inside]
            first += len(positions)
        return {part: kept for part, kept in found.items() if len(kept)}

    def placed(self, found: Mapping[int, Item]) -> list[dict[int, Item]]:
        """Return what some documents have by their positions, for each input."""
        first, placed = self.labels.against, []
        for positions in self._positions:
            numbers = enumerate(positions, first)
            placed.append({position: found[number] for number, position in numbers if number in found})
            first += len(positions)
        return placed


def _refuse(one: ReadDocument | Reject) -> None:
    """Raise InputError for a reject, or a date that cannot be read."""
    reason = one.reason if isinstance(one, Reject) else one.unreadable_date
    if reason is not None:
        raise stopped(one, reason)
