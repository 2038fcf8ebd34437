"""Remove near-duplicates from files by means of a temporary index."""

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.dedupe_output import copy_unique, open_unique, output_encoding
from nearsim_db.errors import DEFAULT, InputError, none_usable
from nearsim_db.index import Index
from nearsim_db.indexing.collections import TemporaryCollection, temporary_collection
from nearsim_db.readers import Source, open_vectors, refuse_overwriting_inputs
from nearsim_db.readers.input_file import STANDARD_INPUT
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.output import json_line, open_output
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.reject_reasons import RejectReasons
from nearsim_db.readers.writers.file_format import Encoding, FileFormat
from nearsim_db.records import Cluster, IngestSummary, Pair, Progress, ReadDocument, Reject, silent
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.database import Database
from nearsim_db.store.documents import origin, read_unique_origins

_REPORT_EVERY = 1_000


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output files: the remaining documents, and optionally pairs, clusters and rejects.

    `format` is that of the remaining documents if the suffix of their file names none, by default that of the input.
    """

    unique: Path
    pairs: Path | None = None
    clusters: Path | None = None
    rejects: Path | None = None
    format: FileFormat | None = None


@dataclass(frozen=True, slots=True)
class DedupeSummary:
    """Counts of the input: read = unique + duplicates + rejected.

    `duplicates` counts cluster members other than survivors; `stats` are those of the temporary index. `rejected` says
    how many records were rejected and why, None if none was.
    """

    ingest: IngestSummary
    unique: int
    duplicates: int
    stats: dict[str, Any]
    warnings: tuple[str, ...]
    rejected: str | None


def dedupe(
    database: Database,
    source: Source,
    recipe: Recipe,
    outputs: Outputs,
    progress: Progress = silent,
    vectors: Path | None = None,
    *,
    strict: bool = False,
    most_rejected: int | None = None,
) -> DedupeSummary:
    """Write the survivors of `source` and its documents in no cluster, in input order.

    They are written as `copy_unique` does. A record is identified by its place: ids may recur. `vectors` is a file for
    `open_vectors`. The input is read twice and never held in memory; output files are complete or absent. Raises
    InputError if a file cannot be read, or changes between the readings, or if no record is usable; with `strict` for
    the first record that is rejected or whose date cannot be read; and before an input is replaced by an output that
    lacks more than `most_rejected` of its records.
    """
    check_readable_twice(source.paths)
    inputs = source.paths if vectors is None else (*source.paths, vectors)
    parts = [Input(source, path) for path in source.paths]
    encoding = output_encoding(parts, outputs.unique, outputs.format)
    refuse_overwriting_inputs((outputs.pairs, outputs.clusters, outputs.rejects), inputs)
    name, reasons = _unused_name(), RejectReasons()
    with ExitStack() as temporaries:
        beside = temporaries.enter_context(open_vectors(vectors))
        index = temporaries.enter_context(Index(database, name, progress=progress))
        temporary = temporaries.enter_context(temporary_collection(database, name))
        beside.check(source)
        index.create_profile(DEFAULT, recipe)
        places = temporaries.enter_context(RecordPlaces())
        summary = index.ingest(
            _numbered(reasons.counted(beside.joined(_with_origins(source, parts))), places),
            rejects=outputs.rejects,
            strict=strict,
            expected_bytes=source.content_bytes,
        )
        if summary.read and summary.rejected == summary.read:
            raise InputError(f"{none_usable(summary.read)} ({reasons.frequent()})")
        if most_rejected is not None and summary.rejected > most_rejected:
            _refuse_replacing(outputs.unique, inputs, reasons)
        # The user of dedupe has not created a profile.
        warnings = [one.removeprefix(f"profile {DEFAULT}: ") for one in index.warnings]
        if outputs.pairs is not None:
            with closing(index.pairs()) as pairs:
                lines = (_pair_line(pair, places) for pair in pairs)
                _write(outputs.pairs, _checked(lines, temporary))
        if outputs.clusters is not None:
            with closing(index.clusters()) as clusters:
                lines = (_cluster_line(cluster, places) for cluster in clusters)
                _write(outputs.clusters, _checked(lines, temporary))
        origins = _origins(index)
        temporary.check_kept()
        # The server counts and deletes the collection while this process writes.
        with ThreadPoolExecutor(1, thread_name_prefix="nearsim-close") as thread:
            closing_index = thread.submit(_close, index, temporary, temporaries.pop_all())
            unique = _copy(parts, outputs.unique, encoding, origins, progress)
        stats = closing_index.result()
    duplicates = summary.read - summary.rejected - unique
    warnings = [*reasons.of_dates(), *beside.warnings, *warnings]
    return DedupeSummary(summary, unique, duplicates, stats, tuple(warnings), reasons.rejected())


def _refuse_replacing(output: Path, inputs: Sequence[Path], reasons: RejectReasons) -> None:
    """Raise InputError if the output would replace an input."""
    if any(output.exists() and path.exists() and output.samefile(path) for path in inputs):
        raise InputError(
            f"{reasons.rejected()}, and {output} is both input and output: nothing was written; name another output, "
            "or write the rejected records to a file with --rejects"
        )


def _numbered(
    records: Iterable[ReadDocument | Reject], places: RecordPlaces
) -> Iterator[ReadDocument | Reject]:
    """Yield the records; the id of a document is replaced by its number, since ids may recur."""
    file, ordinal = None, 0
    for record in records:
        file, ordinal = record.file, ordinal + 1 if record.file == file else 1
        if isinstance(record, ReadDocument):
            record.document.external_id = str(places.add(record, ordinal))
        yield record


def _pair_line(pair: Pair, places: RecordPlaces) -> bytes:
    left, left_id = places.find(int(pair.left))
    right, right_id = places.find(int(pair.right))
    figures = {name: value for name, value in asdict(pair).items() if name != "distance" or value is not None}
    return json_line(figures | {"left": left_id, "right": right_id, "left_place": left, "right_place": right})


def _cluster_line(cluster: Cluster, places: RecordPlaces) -> bytes:
    members = [places.find(int(number)) for number in cluster.members]
    survivor, external_id = places.find(int(cluster.survivor))
    named = {
        "survivor": external_id,
        "members": [one for _, one in members],
        "survivor_place": survivor,
        "places": [one for one, _ in members],
    }
    return json_line(asdict(cluster) | named)


def _close(index: Index, temporary: TemporaryCollection, temporaries: ExitStack) -> dict[str, Any]:
    """Delete the temporary index, and return its stats."""
    with temporaries:
        stats = index.stats()
        temporary.check_kept()
        return stats


def _copy(
    parts: Sequence[Input],
    path: Path,
    encoding: Encoding,
    origins: Mapping[int, NDArray[np.int64]],
    progress: Progress,
) -> int:
    """Write the records at some origins; return how many there are."""
    unique = reported = 0
    with open_unique(parts, path, encoding) as writer:
        for unique in copy_unique(parts, origins, writer, encoding.delimiter):
            if unique >= reported + _REPORT_EVERY:
                progress("write", reported := unique, None)
    return unique


def check_readable_twice(paths: Sequence[Path]) -> None:
    """Raise InputError for standard input and pipes."""
    for path in paths:
        if path == STANDARD_INPUT or path.is_fifo():
            raise InputError(f"{path} cannot be read twice; save the input to a file first")


def _unused_name() -> str:
    return f"dedupe-{os.getpid()}-{secrets.token_hex(4)}"


def _with_origins(source: Source, parts: Sequence[Input]) -> Iterator[ReadDocument | Reject]:
    """Yield the records of a source; attributes are replaced by the position of the document."""
    for part, one_part in enumerate(parts):
        place = _line if one_part.format is FileFormat.JSONL else _ordinal
        for ordinal, record in enumerate(source.read(one_part.path)):
            if isinstance(record, ReadDocument):
                record.document.attributes = origin(part, place(ordinal, record))
            yield record


def _line(ordinal: int, record: ReadDocument) -> int:
    return record.line


def _ordinal(ordinal: int, record: ReadDocument) -> int:
    return ordinal


def _origins(index: Index) -> dict[int, NDArray[np.int64]]:
    with index.database.transaction() as connection:
        ((generation, _),) = index.profiles()
        return read_unique_origins(connection, generation.collection_id, generation.leaves)


def _checked(lines: Iterable[bytes], temporary: TemporaryCollection) -> Iterator[bytes]:
    """Yield lines that were read from the index; raise UnreachableError if it was lost meanwhile."""
    yield from lines
    temporary.check_kept()


def _write(path: Path, lines: Iterable[bytes]) -> None:
    with open_output(path) as stream:
        stream.writelines(lines)
