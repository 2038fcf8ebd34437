"""Rejected records: files that list them, and the reasons and missing fields that warnings name."""

import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nearsim_db.errors import InputError, NearsimError
from nearsim_db.messages import count_of
from nearsim_db.readers.dates import parsed_instant
from nearsim_db.readers.folder import identity_of
from nearsim_db.readers.writers.file_format import compression_of
from nearsim_db.records import STANDARD_OUTPUT, Document, ReadDocument, Reject

_DATE_NAME = re.compile(
    "date|(date)?time(stamp)?|(pub|publish|publication|published|create|created|post|posted|issue|issued)(date|time|at|on)"
    "|published|created|posted|issued|date(published|created|posted|issued)"
)
_SEPARATORS = dict.fromkeys(map(ord, "_- .:"))
_NUMBER = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", re.IGNORECASE)
_FIRST_YEAR, _LAST_YEAR = 1990, 2100  # a number that is a time outside these years is not taken for a date
# The number of records without a date whose other fields are examined.
_MAX_UNDATED_RECORDS = 1_000


def with_refusals(
    records: Iterable[ReadDocument | Reject], refusal: Callable[[Document], str | None]
) -> Iterator[ReadDocument | Reject]:
    """Yield records, with a reject in place of each document for which `refusal` returns a reason."""
    for record in records:
        reason = refusal(record.document) if isinstance(record, ReadDocument) else None
        if reason is None or isinstance(record, Reject):
            yield record
        else:
            yield Reject(record.file, record.line, reason, record.document.external_id)


class FieldUse:
    """Notes whether any document has a source or a publication date."""

    def __init__(self) -> None:
        self.has_source: bool = False
        self.has_date: bool = False
        self._undated = 0
        self._dates: Counter[str] = Counter()

    def note(self, documents: Sequence[Document]) -> None:
        """Note the fields of documents."""
        self.has_source = self.has_source or any(
            document.source and document.source.strip() for document in documents
        )
        if self.has_date:
            return
        for document in documents[: _MAX_UNDATED_RECORDS - self._undated]:
            if document.published_at is not None:
                break
            self._undated += 1
            self._dates.update(name for name, value in document.attributes.items() if _is_date(name, value))
        self.has_date = any(document.published_at is not None for document in documents)

    def hints(self) -> list[str]:
        """Return a hint if no document has a publication date but another field contains dates."""
        if self.has_date or not self._dates:
            return []
        ((name, _),) = self._dates.most_common(1)
        return [
            f"no record has a publication date, but {name!r} holds dates; to use them: "
            f"--published-field {shlex.quote(name)}"
        ]


def _is_date(name: str, value: object) -> bool:
    if not _DATE_NAME.fullmatch(name.casefold().translate(_SEPARATORS)):
        return False
    try:
        instant = parsed_instant(value)
    except ValueError:
        return False
    if instant is None or not _NUMBER.fullmatch(str(value).strip()):
        return instant is not None
    # Other numbers, such as durations or grades, would be dates in 1970.
    return _FIRST_YEAR <= instant.year <= _LAST_YEAR


class AbsentKeys:
    """Counts, for texts joined of several keys (`--body-field a,b`), how often records lack each of the keys."""

    def __init__(self) -> None:
        self._documents = 0
        self._counts: Counter[str] = Counter()

    def note(self, records: Iterable[ReadDocument | Reject]) -> None:
        """Note the keys that each document lacks."""
        for record in records:
            if isinstance(record, ReadDocument):
                self._documents += 1
                self._counts.update(record.absent)

    def refusal(self, argument: str) -> str | None:
        """Return an error message if all documents lack a key; `argument` is the option that names the keys."""
        names = [f"'{name}'" for name, count in self._counts.items() if count == self._documents]
        return f"no record has {' or '.join(names)}, which {argument} names" if names else None


_MIN_REJECTS, _REASONS_SHOWN = 3, 3
# The maximum number of different reasons in memory. Reasons quote values of records, so there may be very many.
_MAX_REASONS = 1_000


class RejectReasons:
    """Counts records, and among them rejects, records without an id, and records with unreadable dates."""

    def __init__(self) -> None:
        self._read = self._rejected = self._undated = self._numbered = 0
        self._reasons: Counter[str] = Counter()
        self._first_date = ""
        self.fields: FieldUse = FieldUse()  # which optional fields the documents have
        self.absent: AbsentKeys = AbsentKeys()  # which keys of their texts the documents lack

    def counted(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        """Yield records and count them."""
        for record in records:
            self.count((record,))
            yield record

    def count(self, records: Sequence[ReadDocument | Reject]) -> None:
        """Count some records."""
        documents = [record for record in records if isinstance(record, ReadDocument)]
        self._read += len(records)
        self.absent.note(documents)
        self.fields.note([record.document for record in documents])
        self._numbered += sum([record.is_numbered for record in documents])
        for undated in [record for record in documents if record.unreadable_date is not None]:
            self._undated += 1
            self._first_date = self._first_date or f"{place_of(undated)}: {undated.unreadable_date}"

        if len(documents) == len(records):
            return
        for reason in [record.reason for record in records if isinstance(record, Reject)]:
            self._rejected += 1
            if len(self._reasons) < _MAX_REASONS or reason in self._reasons:
                self._reasons[reason] += 1

    def frequent(self) -> str:
        """Return the most frequent reasons with their numbers, such as "2: not JSON; 1: 'id' is empty"."""
        frequent = self._reasons.most_common(_REASONS_SHOWN)
        shown = "; ".join(f"{count:,}: {reason}" for reason, count in frequent)
        return f"{shown}; ..." if len(self._reasons) > len(frequent) else shown

    def rejected(self) -> str | None:
        """Return a sentence about how many records were rejected and why, or None if no record was."""
        if not self._rejected:
            return None
        were = "was" if self._rejected == 1 else "were"
        return f"{self._rejected:,} of {count_of(self._read, 'record')} {were} rejected ({self.frequent()})"

    def warnings(self) -> list[str]:
        """Return warnings about keys that all records lack, records without an id, unreadable dates, and rejects.

        Rejects are mentioned if there are several and they are most of the records.
        """
        rejected, warnings = self.rejected(), self.of_dates()
        if (absent := self.absent.refusal("--body-field")) is not None:
            warnings = [f"{absent}: the texts lack it", *warnings]
        if self._numbered:
            warnings = [
                f"{count_of(self._numbered, 'record')} without an id: their ids are file and line, so that lines added "
                "above would change them; if a field holds the id, name it with --id-field",
                *warnings,
            ]
        if rejected is None or self._rejected < _MIN_REJECTS or 2 * self._rejected <= self._read:
            return warnings
        return [rejected, *warnings]

    @property
    def all_are_numbered(self) -> bool:
        """Whether no usable record has an id of its own."""
        return self._numbered == self._read - self._rejected

    def of_dates(self) -> list[str]:
        """Return a warning if dates could not be read, otherwise a hint if another field contains the dates."""
        if not self._undated:
            return self.fields.hints()
        kept = (
            "is kept without its date, which" if self._undated == 1 else "are kept without their dates, which"
        )
        return [
            f"{count_of(self._undated, 'record')} {kept} cannot be read (the first in {self._first_date})"
        ]


def place_of(record: ReadDocument | Reject) -> str:
    """Return the place of a record for messages: its file and line."""
    return f"{record.file}, line {record.line:,}" if record.line else record.file


def stopped(record: ReadDocument | Reject, reason: str) -> InputError:
    """Return the error with which strict reading stops at a record."""
    external_id = record.document.external_id if isinstance(record, ReadDocument) else record.external_id
    named = "" if external_id is None else f"document {external_id!r}; "
    return InputError(f"{place_of(record)}: {reason} ({named}stopped at the first reject)")


_FIRST_KEPT = 5
_MAX_LISTED_PER_FILE = 100_000
_FLUSHED_SINGLY = 1_000
# This function does not escape characters beyond ASCII.
_quoted = json.encoder.encode_basestring
_KEYS = {"file", "line", "id", "reason"}


def refuse_overwriting_inputs(outputs: Sequence[Path | None], inputs: Sequence[Path]) -> None:
    """Raise InputError if an output file is also an input, even under another name."""
    read = {identity_of(path): path for path in inputs}
    for output in outputs:
        identity = None if output is None else identity_of(output)
        if identity is not None and identity in read:
            raise InputError(f"{output} is both input and output; name another output file")


@dataclass(frozen=True, slots=True)
class RejectLines:
    """The lines of a reject file, separated into lines about certain documents and all other lines."""

    kept: tuple[bytes, ...]  # all other lines
    external_ids: frozenset[str]  # the documents that the removed lines are about
    removed: int  # the number of removed lines


def split_rejects(path: Path, external_ids: Collection[str]) -> RejectLines:
    """Separate the lines of a reject file about certain documents from all other lines.

    Raises InputError if the file is not a reject file.
    """
    kept: list[bytes] = []
    removed: list[str] = []
    for line, row in read_rejects(path):
        if row["id"] in external_ids:
            removed.append(str(row["id"]))
        else:
            kept.append(line)
    return RejectLines(tuple(kept), frozenset(removed), len(removed))


def read_rejects(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the lines of a reject file, each with its values. Raises InputError if it is not a reject file."""
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                yield line, _values_in(line, path, number)
    except OSError as error:
        raise InputError(f"cannot read the reject file {path}: {error.strerror or error}") from error


def _values_in(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or row.keys() != _KEYS or not isinstance(row["line"], int):
        raise InputError(
            f"{path} is not a reject file: line {number:,} lacks the keys {', '.join(sorted(_KEYS))}"
        )
    return row


class RejectWriter:
    """Writes rejects to a file as JSON lines {"file", "line", "id", "reason"}; without a path it only counts them.

    The file is created on entry, even if nothing is rejected, and replaces the file of an earlier run. The path '-' is
    standard output. At most 100,000 rejects of each input file are listed; a last line has the number of the others.
    Raises NearsimError if the file cannot be written, and InputError for a name that ends in a suffix of compression.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._stream: TextIOWrapper | None = None
        self.count: int = 0  # the number of rejects
        self.first: list[Reject] = []  # the first few rejects, for a summary
        self._file = ""
        self._of_file = 0

    def __enter__(self) -> Self:
        if self._path is not None:
            if compression_of(self._path):
                raise InputError(
                    f"cannot write {self._path}: rejects are not compressed; end the name in .jsonl"
                )
            try:
                stream = sys.stdout.buffer if self._path == STANDARD_OUTPUT else self._path.open("wb")
                # A lone surrogate becomes \udXXX, which is its JSON escape.
                self._stream = TextIOWrapper(stream, encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise self._failure(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is None:
            return
        try:
            self._write_unlisted()
            if self._path == STANDARD_OUTPUT:
                self._stream.detach()  # this flushes, and leaves standard output open
            else:
                self._stream.close()
        except OSError as closing:
            # After a failed write, closing fails for the same reason; that error is being raised already.
            if error is None:
                raise self._failure(closing) from closing
        finally:
            self._stream = None

    def write(self, reject: Reject) -> None:
        """Count a reject and write it if there is a file; the first 1,000 are written at once, later ones in blocks."""
        self.count += 1
        if len(self.first) < _FIRST_KEPT:
            self.first.append(reject)
        if self._stream is None:
            return

        try:
            if reject.file != self._file:
                self._write_unlisted()
                self._file, self._of_file = reject.file, 0
            self._of_file += 1
            if self._of_file <= _MAX_LISTED_PER_FILE:
                self._write_line(reject)
            if self.count <= _FLUSHED_SINGLY or self.count % _FLUSHED_SINGLY == 0:
                self._stream.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _write_unlisted(self) -> None:
        """Write a line with the number of rejects of the file that were not listed, if there are any."""
        unlisted = self._of_file - _MAX_LISTED_PER_FILE
        if unlisted > 0:
            reason = f"{unlisted:,} more rejected records of this file are not listed"
            self._write_line(Reject(self._file, 0, reason))

    def _write_line(self, reject: Reject) -> None:
        assert self._stream is not None
        external_id = "null" if reject.external_id is None else _quoted(reject.external_id)
        self._stream.write(
            f'{{"file": {_quoted(reject.file)}, "line": {reject.line}, "id": {external_id}, '
            f'"reason": {_quoted(reject.reason)}}}\n'
        )

    def _failure(self, error: OSError) -> NearsimError:
        return NearsimError(f"cannot write the reject file {self._path}: {error.strerror}; name another file")
