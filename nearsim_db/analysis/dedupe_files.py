"""Files in, the same files without near-duplicates out: an index of their own, gone when that is done."""

import os
import secrets
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from nearsim_db.errors import DEFAULT, InputError
from nearsim_db.index import Index
from nearsim_db.indexing.collections import temporary_collection
from nearsim_db.readers import Source, open_vectors, refuse_overwriting_inputs
from nearsim_db.readers.input_file import STANDARD_INPUT, InputFile, file_type
from nearsim_db.readers.jsonl import read_jsonl
from nearsim_db.readers.output import json_line, open_output
from nearsim_db.readers.source import READERS
from nearsim_db.records import IngestSummary, Progress, ReadDocument, Reject, silent
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.database import Database
from nearsim_db.store.documents import origin, stream_unique_origins

_TOLD_EVERY = 1_000


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files to write: what stays, and on request pairs, clusters and rejected records."""

    unique: Path
    pairs: Path | None = None
    clusters: Path | None = None
    rejects: Path | None = None


@dataclass(frozen=True, slots=True)
class DedupeSummary:
    """What became of the input: read = unique + duplicates + rejected.

    `duplicates` counts the members of clusters that do not survive, and documents whose id stands again in a later
    file; `stats` are those of the temporary index.
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
    """Write what stays of `source`: survivors and documents in no cluster, in the order of the input.

    JSON lines are written byte for byte; of other files {"id", "title", "text"} is. Of documents with the same id the
    last one counts. `vectors` is a file as `open_vectors` takes it. The input is read twice and never held; files that
    were given out stay whole or absent.
    Raises InputError where a file cannot be read on, or has changed meanwhile.
    """
    check_readable_twice(source.paths)
    inputs = source.paths if vectors is None else (*source.paths, vectors)
    refuse_overwriting_inputs((outputs.pairs, outputs.clusters, outputs.rejects), inputs)
    name = _unused_name()
    with (
        open_vectors(vectors) as beside,
        Index(database, name, progress=progress) as index,
        temporary_collection(database, name),
    ):
        beside.check(source)
        index.create_profile(DEFAULT, recipe)
        summary = index.ingest(beside.joined(_with_origins(source)), rejects=outputs.rejects)
        # Whoever removes duplicates from a file has made no profile.
        told = [one.removeprefix(f"profile {DEFAULT}: ") for one in index.warnings]
        for path, answers in ((outputs.pairs, index.pairs), (outputs.clusters, index.clusters)):
            if path is not None:
                with closing(answers()) as stream:
                    _write(path, map(json_line, stream), silent)
        with closing(_unique_lines(index, source)) as lines:
            unique = _write(outputs.unique, lines, progress)
        duplicates = summary.read - summary.rejected - unique
        return DedupeSummary(summary, unique, duplicates, index.stats(), (*beside.warnings, *told))


def check_readable_twice(paths: Sequence[Path]) -> None:
    """Raise InputError for standard input and pipes."""
    for path in paths:
        if path == STANDARD_INPUT or path.is_fifo():
            raise InputError(f"the input is read twice, which {path} cannot be; save it to a file first")


def _unused_name() -> str:
    return f"dedupe-{os.getpid()}-{secrets.token_hex(4)}"


def _with_origins(source: Source) -> Iterator[ReadDocument | Reject]:
    """The records of a source, where they stand in place of the documents' own attributes."""
    for part, path in enumerate(source.paths):
        place = _line if _is_json_lines(path) else _ordinal
        for ordinal, record in enumerate(source.read(path)):
            if isinstance(record, ReadDocument):
                attributes = origin(part, place(ordinal, record))
                yield replace(record, document=replace(record.document, attributes=attributes))
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
            yield from _chosen(_lines(source, path), (position for _, position in wanted), path)


def _lines(source: Source, path: Path) -> Iterator[tuple[int, bytes]]:
    """Every line that could be written for a file, under the position it was given at the first reading."""
    if _is_json_lines(path):
        for number, line in InputFile(path).lines():
            if line is not None:
                yield number, line + b"\n"
        return
    for ordinal, record in enumerate(source.read(path)):
        if isinstance(record, ReadDocument):
            one = record.document
            yield ordinal, json_line({"id": one.external_id, "title": one.title, "text": one.body})


def _chosen(lines: Iterator[tuple[int, bytes]], wanted: Iterable[int], path: Path) -> Iterator[bytes]:
    """The lines at the wanted positions; both come in ascending order."""
    for position in wanted:
        for at, line in lines:
            if at == position:
                yield line
                break
        else:
            raise InputError(f"{path} has become shorter while it was read; run the command again")


def _write(path: Path, lines: Iterable[bytes], progress: Progress) -> int:
    written = 0
    with open_output(path) as stream:
        for written, line in enumerate(lines, 1):
            stream.write(line)
            if written % _TOLD_EVERY == 0:
                progress("write", written, None)
    return written
