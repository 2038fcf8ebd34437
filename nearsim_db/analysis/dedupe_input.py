"""The records of the files that `dedupe` reads: encoded, counted, and where to find them again."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.encoded_records import EncodedRecords
from nearsim_db.analysis.file_pairs import Clusters
from nearsim_db.errors import InputError, none_usable
from nearsim_db.readers import RejectWriter, Source, VectorLengthCheck
from nearsim_db.readers.input_file import STANDARD_INPUT
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.rejects import RejectReasons, stopped
from nearsim_db.readers.vector_file import VectorFile
from nearsim_db.readers.writers.file_format import FileFormat
from nearsim_db.records import IngestSummary, Progress, ReadDocument, Reject

_REPORT_EVERY = 1_000


def check_readable_twice(paths: Sequence[Path]) -> None:
    """Raise InputError for standard input and pipes."""
    for path in paths:
        if path == STANDARD_INPUT or path.is_fifo():
            raise InputError(f"{path} cannot be read twice; save the input to a file first")


class DedupeInput:
    """Reads all records once; `summary`, and where the documents are in their inputs, are complete then."""

    def __init__(self, source: Source, parts: Sequence[Input], beside: VectorFile) -> None:
        self.reasons, self.summary, self._beside = RejectReasons(), IngestSummary(), beside
        self._positions = [array("q") for _ in parts]
        self._current, self._position = array("q"), 0
        self._records = VectorLengthCheck(self.reasons.counted(beside.joined(self._noted(source, parts))))

    def _noted(self, source: Source, parts: Sequence[Input]) -> Iterator[ReadDocument | Reject]:
        """Yield the records of a source, each before the next one is read, and note where it is."""
        for part, positions in zip(parts, self._positions, strict=True):
            self._current, by_line = positions, part.format is FileFormat.JSONL
            for ordinal, record in enumerate(source.read(part.path)):
                self._position = record.line if by_line else ordinal
                yield record

    def read(
        self,
        records: EncodedRecords,
        places: RecordPlaces | None,
        rejects: RejectWriter,
        progress: Progress,
        *,
        strict: bool,
    ) -> None:
        """Encode all documents, and write the rejects. Raises InputError if no record is usable."""
        summary, self.summary.first_rejects = self.summary, rejects.first
        for ordinal, one in _numbered(self._records):
            summary.read += 1
            if isinstance(one, Reject):
                summary.rejected += 1
                rejects.write(one)
            if strict:
                _refuse(one)
            if isinstance(one, Reject):
                continue
            summary.unreadable_dates += one.unreadable_date is not None
            summary.replaced_characters += one.replaced
            self._current.append(self._position)
            if places is not None:
                places.add(one, ordinal)
            records.add(one.document)
            if summary.read % _REPORT_EVERY == 0:
                progress("read", summary.read, None)
        records.finish()
        progress("read", summary.read, summary.read)
        if summary.read and summary.rejected == summary.read:
            raise InputError(f"{none_usable(summary.read)} ({self.reasons.frequent()})")

    def refuse_replacing(self, output: Path, inputs: Sequence[Path], most_rejected: int | None) -> None:
        """Raise InputError if the output would replace an input of which more records were rejected."""
        if most_rejected is None or self.summary.rejected <= most_rejected:
            return
        if any(output.exists() and path.exists() and output.samefile(path) for path in inputs):
            raise InputError(
                f"{self.reasons.rejected()}, and {output} is both input and output: nothing was written; name another "
                "output, or write the rejected records to a file with --rejects"
            )

    def warnings(self) -> list[str]:
        """Return warnings about dates and vectors."""
        return [*self.reasons.of_dates(), *self._beside.warnings, *self._records.warnings()]

    def kept(self, clusters: Clusters) -> dict[int, NDArray[np.int64]]:
        """Return the positions of survivors and of documents in no cluster, by input."""
        first, found = 0, {}
        removed = clusters.numbers[~clusters.survives]
        for part, positions in enumerate(self._positions):
            inside = removed[(removed >= first) & (removed < first + len(positions))] - first
            found[part] = np.delete(np.frombuffer(positions, np.int64), inside)
            first += len(positions)
        return {part: kept for part, kept in found.items() if len(kept)}


def _numbered(records: Iterable[ReadDocument | Reject]) -> Iterator[tuple[int, ReadDocument | Reject]]:
    """Yield records with their numbers in their files from 1."""
    file, ordinal = None, 0
    for one in records:
        file, ordinal = one.file, ordinal + 1 if one.file == file else 1
        yield ordinal, one


def _refuse(one: ReadDocument | Reject) -> None:
    """Raise InputError for a reject, or a date that cannot be read."""
    reason = one.reason if isinstance(one, Reject) else one.unreadable_date
    if reason is not None:
        raise stopped(one, reason)
