"""Remove near-duplicates from files by means of a temporary index."""

import os
import secrets
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from nearsim_db.errors import DEFAULT, InputError
from nearsim_db.index import Index
from nearsim_db.indexing.collections import TemporaryCollection, temporary_collection
from nearsim_db.readers import Source, open_vectors, refuse_overwriting_inputs
from nearsim_db.readers.input_file import STANDARD_INPUT, InputFile, file_type
from nearsim_db.readers.jsonl import read_jsonl
from nearsim_db.readers.output import json_line, open_output
from nearsim_db.readers.source import READERS
from nearsim_db.records import Document, IngestSummary, Progress, ReadDocument, Reject, silent
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.database import Database
from nearsim_db.store.documents import origin, stream_unique_origins

_REPORT_EVERY = 1_000


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output files: the remaining documents, and optionally pairs, clusters and rejects."""

    unique: Path
    pairs: Path | None = None
    clusters: Path | None = None
    rejects: Path | None = None


@dataclass(frozen=True, slots=True)
class DedupeSummary:
    """Counts of the input: read = unique + duplicates + rejected.

    `duplicates` counts cluster members other than survivors, and documents whose id recurs in a later file; `stats`
    are those of the temporary index.
    """

    ingest: IngestSummary
    unique: int
    duplicates: int
    stats: dict[str, Any]
    warnings: tuple[str, ...]


def dedupe(
    database: Database,
    source: Source,
    recipe: Recipe,
    outputs: Outputs,
    progress: Progress = silent,
    vectors: Path | None = None,
) -> DedupeSummary:
    """Write the survivors of `source` and its documents in no cluster, in input order.

    JSON lines are written byte for byte; for other formats {"id", "title", "text"} is written. Of documents with the
    same id the last is kept. `vectors` is a file for `open_vectors`. The input is read twice and never held in memory;
    output files are complete or absent. Raises InputError if a file cannot be read, or changes between the readings.
    """
    check_readable_twice(source.paths)
    inputs = source.paths if vectors is None else (*source.paths, vectors)
    refuse_overwriting_inputs((outputs.pairs, outputs.clusters, outputs.rejects), inputs)
    name = _unused_name()
    with (
        open_vectors(vectors) as beside,
        Index(database, name, progress=progress) as index,
        temporary_collection(database, name) as temporary,
    ):
        beside.check(source)
        index.create_profile(DEFAULT, recipe)
        summary = index.ingest(beside.joined(_with_origins(source)), rejects=outputs.rejects)
        # The user of dedupe has not created a profile.
        warnings = [one.removeprefix(f"profile {DEFAULT}: ") for one in index.warnings]
        for path, answers in ((outputs.pairs, index.pairs), (outputs.clusters, index.clusters)):
            if path is not None:
                with closing(answers()) as stream:
                    _write(path, _checked(map(json_line, stream), temporary), silent)
        with closing(_unique_lines(index, source)) as lines:
            unique = _write(outputs.unique, _checked(lines, temporary), progress)
        duplicates = summary.read - summary.rejected - unique
        return DedupeSummary(summary, unique, duplicates, index.stats(), (*beside.warnings, *warnings))


def check_readable_twice(paths: Sequence[Path]) -> None:
    """Raise InputError for standard input and pipes."""
    for path in paths:
        if path == STANDARD_INPUT or path.is_fifo():
            raise InputError(f"{path} cannot be read twice; save the input to a file first")


def _unused_name() -> str:
    return f"dedupe-{os.getpid()}-{secrets.token_hex(4)}"


def _with_origins(source: Source) -> Iterator[ReadDocument | Reject]:
    """Yield the records of a source; attributes are replaced by the position of the document."""
    for part, path in enumerate(source.paths):
        place = _line if _is_json_lines(path) else _ordinal
        for ordinal, record in enumerate(source.read(path)):
            if isinstance(record, ReadDocument):
                one = record.document
                # A few times as fast as dataclasses.replace.
                given = (one.external_id, one.title, one.body, one.source, one.url, one.published_at)
                document = Document(*given, origin(part, place(ordinal, record)), one.vector)
                yield ReadDocument(document, record.file, record.line, record.replaced)
            else:
                yield record


def _is_json_lines(path: Path) -> bool:
    return not path.is_dir() and READERS[file_type(path)] is read_jsonl


def _line(ordinal: int, record: ReadDocument) -> int:
    return record.line


def _ordinal(ordinal: int, record: ReadDocument) -> int:
    return ordinal


def _unique_lines(index: Index, source: Source) -> Generator[bytes, None, None]:
    with index.database.transaction() as connection:
        ((generation, _),) = index.profiles()
        origins = stream_unique_origins(connection, generation.collection_id, generation.leaves)
        for part, wanted in groupby(origins, key=itemgetter(0)):
            path = source.paths[part]
            yield from _select(_lines(source, path), (position for _, position in wanted), path)


def _checked(lines: Iterable[bytes], temporary: TemporaryCollection) -> Iterator[bytes]:
    """Yield lines that were read from the index; raise UnreachableError if it was lost meanwhile."""
    yield from lines
    temporary.check_kept()


def _lines(source: Source, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the output lines of a file, each with its position in the first reading."""
    if _is_json_lines(path):
        for number, line in InputFile(path).lines():
            if line is not None:
                yield number, line + b"\n"
        return
    for ordinal, record in enumerate(source.read(path)):
        if isinstance(record, ReadDocument):
            one = record.document
            yield ordinal, json_line({"id": one.external_id, "title": one.title, "text": one.body})


def _select(lines: Iterator[tuple[int, bytes]], wanted: Iterable[int], path: Path) -> Iterator[bytes]:
    """Yield the lines at the wanted positions; both iterables are in ascending order."""
    for position in wanted:
        for at, line in lines:
            if at == position:
                yield line
                break
        else:
            raise InputError(f"{path} became shorter between two readings; run the command again")


def _write(path: Path, lines: Iterable[bytes], progress: Progress) -> int:
    written = 0
    with open_output(path) as stream:
        for written, line in enumerate(lines, 1):
            stream.write(line)
            if written % _REPORT_EVERY == 0:
                progress("write", written, None)
    return written
