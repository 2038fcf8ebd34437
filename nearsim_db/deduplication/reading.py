"""Read the records of the input and of --against once, pass them on to be encoded, and note where each record is."""

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, starmap
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from nearsim_db.deduplication.comparison import Comparison, Labels
from nearsim_db.deduplication.records import Ranks
from nearsim_db.errors import InputError
from nearsim_db.messages import none_usable
from nearsim_db.readers import Fields, RejectWriter
from nearsim_db.readers.contract import ID
from nearsim_db.readers.labels import label_of
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.rejects import AbsentKeys, RejectReasons, stopped, with_refusals
from nearsim_db.readers.values import column_of
from nearsim_db.readers.vector_files import VectorFile
from nearsim_db.readers.vectors import VectorLengths
from nearsim_db.records import Document, IngestSummary, Progress, ReadDocument, Reject
from nearsim_db.similarity.arrays import Ints, Mask
from nearsim_db.similarity.field_rules import FieldRules
from nearsim_db.similarity.recipe import KeepRule, refuse_unusable_keep

REPORT_EVERY = 1_000
_BATCH_RECORDS = 500
_MAX_SEEN_NAMES, _SHOWN_NAMES = 1_000, 10
# Characters of texts plus numbers of vectors.
_BATCH_CHARACTERS = 2_000_000

Item = TypeVar("Item")


class Records(Protocol):
    """The records of one corpus, and the names of their fields; `read` yields the records of one of its files."""

    @property
    def fields(self) -> Fields: ...
    def read(self, path: Path, /) -> Iterator[ReadDocument | Reject]: ...
    def __iter__(self) -> Iterator[ReadDocument | Reject]: ...


class Added(Protocol):
    """Receives the records as they are read, and values of the fields that its keep policy and `sources_by` name."""

    @property
    def ranks(self) -> Ranks: ...
    @property
    def sources_by(self) -> str | None: ...
    def refusal(self, document: Document, /) -> str | None: ...
    def add(
        self,
        documents: Sequence[Document],
        values: Sequence[Sequence[object]] = (),
        field_labels: Sequence[bytes] = (),
        sources: Sequence[object] = (),
        /,
    ) -> None: ...
    def finish(self) -> None: ...


class _Origin(NamedTuple):
    """The place of a record."""

    part: "_Part"
    position: int  # in the part
    ordinal: int  # number in its file, from 1


@dataclass(frozen=True, slots=True)
class _Part:
    """An input, or all of --against together."""

    fields: Fields
    by_line: bool = False  # positions are lines; if not, they are numbers of records from 0
    name: str = ""  # the path of an input
    positions: "array[int]" = field(default_factory=lambda: array("q"))  # of the documents that were read


class RecordReader:
    """Reads all records once. After `read`, the counts and the positions of all documents are complete.

    Documents are numbered in the order in which they are read, those of --against first. `parts` are the inputs of the
    source, each with whether the positions of its records are lines; if not, they are numbers of records from 0.
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
        self.rejected_by_file: Counter[str] = Counter()
        self.summary: IngestSummary = IngestSummary()
        self.labels: Labels = Labels(comparison)
        self.against_read: int = 0
        self.against_rejected: int = 0
        self.empty_against: list[int] = []  # numbers, from 0, of the sources of --against without any record
        self._source, self._against, self._beside = source, against, beside
        self._parts = [(path, _Part(source.fields, by_line, str(path))) for path, by_line in parts]
        self._against_part = _Part(source.fields)
        self._origins: list[_Origin] = []  # of the records of the batch that is being read
        self._vectors = VectorLengths()
        self._has_field_value = False
        self._absent = AbsentKeys()
        self._seen_names: dict[str, None] = {}  # of files and sources, for the message about an unknown one

    def read(
        self,
        records: Added,
        places: RecordPlaces | None,
        rejects: RejectWriter,
        progress: Progress,
        *,
        strict: bool,
    ) -> None:
        """Read everything, add all documents to `records`, and write the rejects."""
        self.summary.first_rejects = rejects.first
        reported = 0
        progress("read", 0, None)  # a file may begin with minutes of blank lines

        # Read --against first, because its records are always kept.
        input_records = self._beside.joined(chain.from_iterable(starmap(self._own_records, self._parts)))
        for is_against, source in ((True, self._against_records()), (False, input_records)):
            for batch in _batches(with_refusals(source, records.refusal)):
                self._count(batch, is_against=is_against)
                for record in batch:
                    if isinstance(record, Reject):
                        rejects.write(record)
                    if strict:
                        _refuse(record)
                self._add(batch, records, places, is_against=is_against)
                if (read := self.against_read + self.summary.read) >= reported + REPORT_EVERY:
                    progress("read", reported := read, None)

        records.finish()
        self.labels.finish()
        total = self.against_read + self.summary.read
        progress("read", total, total)
        self._refuse_unused(records)

    def _against_records(self) -> Iterator[ReadDocument | Reject]:
        """Yield the records of --against; their positions count through all of its sources."""
        read = 0
        for number, source in enumerate(self._against):
            before = read
            for record in self._noted(source, replace(self._against_part, fields=source.fields), read):
                read += 1
                yield record
            if read == before:
                self.empty_against.append(number)

    def _own_records(self, path: Path, part: _Part) -> Iterator[ReadDocument | Reject]:
        return self._noted(self._source.read(path), part, 0)

    def _noted(
        self, records: Iterable[ReadDocument | Reject], part: _Part, first: int
    ) -> Iterator[ReadDocument | Reject]:
        """Yield records, and note the origin of each."""
        file, ordinal, note = None, 0, self._origins.append
        for position, record in enumerate(records, first):
            ordinal = ordinal + 1 if record.file == file else 1
            file = record.file
            note(_Origin(part, record.line if part.by_line else position, ordinal))
            yield record

    def _count(self, batch: Sequence[ReadDocument | Reject], *, is_against: bool) -> None:
        documents = [document for document in batch if isinstance(document, ReadDocument)]
        rejected = len(batch) - len(documents)
        self.reasons.count(batch)
        self._vectors.count(document.document for document in documents)
        if is_against:
            self.against_read += len(batch)
            self.against_rejected += rejected
            return

        self._absent.note(documents)
        self.rejected_by_file.update(record.file for record in batch if isinstance(record, Reject))
        summary = self.summary
        summary.read += len(batch)
        summary.rejected += rejected
        summary.unreadable_dates += sum([document.unreadable_date is not None for document in documents])
        summary.replaced_characters += sum([document.replaced for document in documents])

    def _add(
        self,
        batch: Sequence[ReadDocument | Reject],
        records: Added,
        places: RecordPlaces | None,
        *,
        is_against: bool,
    ) -> None:
        """Add the documents of a batch to `records`, and their places to `places`."""
        kept = [
            (record, origin)
            for record, origin in zip(batch, self._origins, strict=False)  # a file of vectors may end earlier
            if isinstance(record, ReadDocument)
        ]
        self._origins.clear()
        if not kept:
            return

        for record, origin in kept:
            origin.part.positions.append(origin.position)
            if places is not None:
                places.add(record, origin.ordinal)
        across, fields = self.labels.comparison.across, records.ranks.fields
        by = records.sources_by
        rules, only_from = self.labels.comparison.field_rules, self.labels.comparison.only_from
        self.labels.add(
            len(kept),
            []
            if across is None
            else [column_of(record, across, origin.part.fields) for record, origin in kept],
            []
            if only_from is None
            else [self._is_from(only_from, record, origin) for record, origin in kept],
            is_against=is_against,
        )
        records.add(
            [record.document for record, _ in kept],
            [[column_of(record, name, origin.part.fields) for name in fields] for record, origin in kept]
            if fields
            else (),
            () if rules is None else [self._field_label(rules, record, origin) for record, origin in kept],
            () if by is None else [column_of(record, by, origin.part.fields) for record, origin in kept],
        )

    def _field_label(self, rules: FieldRules, record: ReadDocument, origin: _Origin) -> bytes:
        values = [column_of(record, name, origin.part.fields) for name in rules.within]
        self._has_field_value |= any(value is not None for value in values)
        return label_of(rules, values, record.document.published_at)

    def _is_from(self, name: str, record: ReadDocument, origin: _Origin) -> bool:
        """Whether a record is from the file, the input or the source with this name."""
        source = (record.document.source or "").strip()
        names = [record.file, origin.part.name, *([source] if source else [])]
        if len(self._seen_names) < _MAX_SEEN_NAMES:
            self._seen_names |= dict.fromkeys(names)
        return name in names or str(Path(name)) in names[:2]

    def _refuse_unused(self, records: Added) -> None:
        """Raise InputError if no document has a field that the comparison or the keep policy relies on."""
        across = self.labels.comparison.across
        if across is not None and self.labels.count and not self.labels.has_values:
            raise InputError(
                f"no record has '{across}', across which pairs count; name another field with "
                f"{self._source.fields.arguments.across}"
            )

        only_from = self.labels.comparison.only_from
        if only_from is not None and self.labels.count and not self.labels.has_removable:
            shown = list(self._seen_names)[:_SHOWN_NAMES]
            ellipsis = ", ..." if len(self._seen_names) > len(shown) else ""
            raise InputError(
                f"no record is from {only_from!r}, which {self._source.fields.arguments.only_from} names; name an "
                f"input or a source of records ({', '.join(shown)}{ellipsis})"
            )

        rules = self.labels.comparison.field_rules
        if rules is not None and self.labels.count:
            self._refuse_unused_rules(rules)

        if self.labels.count:
            names = self._source.fields.arguments
            remedies = {
                "source": f"name the field that holds it with {names.source}",
                "latest": f"name the field that holds it with {names.published_at}",
                "highest": "name another column",
                "has": "name another field, but no part of a joined text",
            }
            refuse_unusable_keep(records.ranks.policy, partial(self._has, records.ranks), remedies)

    def _refuse_unused_rules(self, rules: FieldRules) -> None:
        """Raise InputError if no document has a field that the rules are about."""
        names = self._source.fields.arguments
        if rules.within and not self._has_field_value:
            raise InputError(
                f"no record has '{', '.join(rules.within)}', within which pairs count; name another field with "
                f"{names.within}"
            )
        if rules.days and not self.reasons.fields.has_date:
            raise InputError(
                f"match.within_days is {rules.days}, but no record has a date; name the field that holds it with "
                f"{names.published_at}"
            )

    def _has(self, ranks: Ranks, rule: KeepRule) -> bool:
        """Whether any document has the field by which a keep rule ranks."""
        fields = self.reasons.fields
        match rule.kind:
            case "source":
                return fields.has_source
            case "latest":
                return fields.has_date
            case _:
                return ranks.has_values(rule)

    def refuse_unusable(self) -> None:
        """Raise InputError if no record is usable, or if an option names an id or text key that no record has."""
        summary = self.summary
        if summary.read and summary.rejected == summary.read:
            raise InputError(f"{none_usable(summary.read)} ({self.reasons.frequent()})")
        if summary.read and self.reasons.all_are_numbered and self._source.fields.id != ID:
            names = self._source.fields
            raise InputError(
                f"no record has the id '{names.id}'; name another field with {names.arguments.id}"
            )
        argument = self._source.fields.arguments.body
        if (absent := self._absent.refusal(argument)) is not None:
            raise InputError(f"{absent}; leave it out of {argument}, or correct it")

    @property
    def rejected(self) -> int:
        """The number of rejected records, including those of --against."""
        return self.summary.rejected + self.against_rejected

    def refuse_replacing(
        self, outputs: Sequence[Path | None], inputs: Sequence[Path], max_rejected: int | None
    ) -> None:
        """Raise InputError if more than `max_rejected` records are rejected and an output would replace an input."""
        if max_rejected is None or self.rejected <= max_rejected:
            return
        input_paths = {path.resolve() for path in inputs}
        for output in outputs:
            if output is not None and output.resolve() in input_paths:
                raise InputError(
                    f"{self.reasons.rejected()}, and {output} is both input and output: nothing was written; name "
                    "another output, or write the rejected records to a file with --rejects"
                )

    def warnings(self) -> list[str]:
        """Return warnings about dates and vectors."""
        return [*self.reasons.of_dates(), *self._beside.warnings, *self._vectors.warnings()]

    @property
    def rows(self) -> list[int]:
        """The positions of all documents in their parts; those of --against come first."""
        parts = (self._against_part, *(part for _, part in self._parts))
        return [position for part in parts for position in part.positions]

    def kept(self, removed: Mask) -> dict[int, Ints]:
        """Return the positions of the records that are not removed, by number of the input."""
        # The documents of --against have the first numbers.
        first, kept = self.labels.against, {}
        for number, (_, part) in enumerate(self._parts):
            inside = removed[first : first + len(part.positions)]
            kept[number] = np.frombuffer(part.positions, np.int64)[~inside]
            first += len(part.positions)
        return {number: positions for number, positions in kept.items() if len(positions)}

    def read_again(self, numbers: Collection[int]) -> Iterator[tuple[int, Document]]:
        """Read the input again, and yield the documents of these numbers."""
        wanted = {number: number for number in numbers}
        for (path, part), number_of_position in zip(self._parts, self.placed(wanted), strict=True):
            if not number_of_position:
                continue
            for position, record in enumerate(self._source.read(path)):
                place = record.line if part.by_line else position
                if place in number_of_position and isinstance(record, ReadDocument):
                    yield number_of_position[place], record.document

    def placed_numbers(self) -> list[tuple[Ints, int]]:
        """Return for each input the positions of its documents, ascending, and the number of its first document."""
        first, placed = self.labels.against, []
        for _, part in self._parts:
            placed.append((np.frombuffer(part.positions, np.int64), first))
            first += len(part.positions)
        return placed

    def placed(self, items: Mapping[int, Item]) -> list[dict[int, Item]]:
        """Return `items`, which are by number of the document, by position of the document for each input."""
        first, placed = self.labels.against, []
        for _, part in self._parts:
            numbers = enumerate(part.positions, first)
            placed.append({position: items[number] for number, position in numbers if number in items})
            first += len(part.positions)
        return placed


def _refuse(record: ReadDocument | Reject) -> None:
    """Raise InputError for a reject, and for a document with an unreadable date."""
    reason = record.reason if isinstance(record, Reject) else record.unreadable_date
    if reason is not None:
        raise stopped(record, reason)


def _batches(records: Iterable[ReadDocument | Reject]) -> Iterator[list[ReadDocument | Reject]]:
    """Yield records in batches. After an InputError, yield the records before it, then raise the error."""
    batch: list[ReadDocument | Reject] = []
    size = 0

    try:
        for record in records:
            batch.append(record)
            if isinstance(record, ReadDocument):
                document = record.document
                size += len(document.body or "")
                size += 0 if document.vector is None else len(document.vector)
            if len(batch) >= _BATCH_RECORDS or size >= _BATCH_CHARACTERS:
                yield batch
                batch, size = [], 0
    except InputError:
        yield batch
        raise
    if batch:
        yield batch
