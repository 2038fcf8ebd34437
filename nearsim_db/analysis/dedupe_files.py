"""Remove near-duplicates from files: read, encode, link, verify, cluster, write; no database is used."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis import dedupe_rows
from nearsim_db.analysis.dedupe_output import copy_unique, open_unique, output_encoding
from nearsim_db.analysis.encoded_records import EncodedRecords
from nearsim_db.analysis.file_pairs import Clusters, HeadPairs, Twins, cluster, find_pairs
from nearsim_db.errors import InputError, none_usable
from nearsim_db.readers import (
    RejectWriter,
    Source,
    VectorLengthCheck,
    open_vectors,
    refuse_overwriting_inputs,
)
from nearsim_db.readers.input_file import STANDARD_INPUT
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.output import open_output
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.rejects import RejectReasons, stopped
from nearsim_db.readers.writers.file_format import Encoding, FileFormat
from nearsim_db.records import IngestSummary, Progress, ReadDocument, Reject, silent
from nearsim_db.similarity import candidate_forecast, recipe_warnings
from nearsim_db.similarity.backend import plain_characters
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, refuse_unusable_keep
from nearsim_db.store.settings import encoding_from_environment

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

    `duplicates` counts cluster members other than survivors; `pairs` those of documents, copies included. `rejected`
    says how many records were rejected and why, None if none was.
    """

    ingest: IngestSummary
    unique: int
    duplicates: int
    pairs: int
    clusters: int
    profile: Profile
    warnings: tuple[str, ...]
    rejected: str | None


@dataclass(frozen=True, slots=True)
class _Result:
    """What was found in the records read."""

    records: EncodedRecords
    twins: Twins
    pairs: HeadPairs
    clusters: Clusters


def dedupe(
    source: Source,
    recipe: Recipe,
    outputs: Outputs,
    progress: Progress = silent,
    vectors: Path | None = None,
    *,
    strict: bool = False,
    most_rejected: int | None = None,
    threads: int | None = None,
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
    backend, available = encoding_from_environment()
    profile, reasons = resolve(recipe), RejectReasons()
    encoder = Encoder(profile, backend, 0 if backend else plain_characters(source.content_bytes))
    with ExitStack() as opened:
        beside = opened.enter_context(open_vectors(vectors))
        pool = opened.enter_context(ThreadPoolExecutor(threads or available, thread_name_prefix="nearsim"))
        records = opened.enter_context(EncodedRecords(encoder, pool, threads or available))
        places = opened.enter_context(RecordPlaces()) if outputs.pairs or outputs.clusters else None
        beside.check(source)
        positions = _Positions(parts)
        counted = VectorLengthCheck(reasons.counted(beside.joined(positions.noted(source))))
        with RejectWriter(outputs.rejects) as rejects:
            summary = _read(counted, records, positions, places, rejects, progress, strict=strict)
        if summary.read and summary.rejected == summary.read:
            raise InputError(f"{none_usable(summary.read)} ({reasons.frequent()})")
        refuse_unusable_keep(recipe.cluster.keep, lambda: reasons.fields.has_source)
        if most_rejected is not None and summary.rejected > most_rejected:
            _refuse_replacing(outputs.unique, inputs, reasons)
        result = _compare(encoder, records, pool, progress)
        if outputs.pairs is not None and places is not None:
            _write(
                outputs.pairs, dedupe_rows.pair_lines(profile, result.pairs, result.twins, records, places)
            )
        if outputs.clusters is not None and places is not None:
            _write(outputs.clusters, dedupe_rows.cluster_lines(result.clusters, places))
        origins = positions.kept(result.clusters)
        unique = _copy(parts, outputs.unique, encoding, origins, progress)
        sizes = result.twins.sizes()
        pairs = int(
            (sizes[result.pairs.left] * sizes[result.pairs.right]).sum() + (sizes * (sizes - 1) // 2).sum()
        )
        warnings = [
            *reasons.of_dates(),
            *beside.warnings,
            *recipe_warnings.of_profile(profile),
            *counted.warnings(),
            *_warnings(encoder, result),
        ]
    return DedupeSummary(
        summary,
        unique,
        summary.read - summary.rejected - unique,
        pairs,
        int(result.clusters.survives.sum()),
        profile,
        tuple(warnings),
        reasons.rejected(),
    )


def _read(
    given: Iterable[ReadDocument | Reject],
    records: EncodedRecords,
    positions: "_Positions",
    places: RecordPlaces | None,
    rejects: RejectWriter,
    progress: Progress,
    *,
    strict: bool,
) -> IngestSummary:
    """Encode all documents, and write the rejects."""
    summary = IngestSummary(first_rejects=rejects.first)
    file, ordinal = None, 0
    for one in given:
        summary.read += 1
        file, ordinal = one.file, ordinal + 1 if one.file == file else 1
        if isinstance(one, Reject):
            summary.rejected += 1
            rejects.write(one)
            if strict:
                raise stopped(one, one.reason)
            continue
        if strict and one.unreadable_date is not None:
            raise stopped(one, one.unreadable_date)
        summary.unreadable_dates += one.unreadable_date is not None
        summary.replaced_characters += one.replaced
        positions.keep()
        if places is not None:
            places.add(one, ordinal)
        records.add(one.document)
        if summary.read % _REPORT_EVERY == 0:
            progress("read", summary.read, None)
    records.finish()
    progress("read", summary.read, summary.read)
    return summary


def _compare(encoder: Encoder, records: EncodedRecords, pool: Executor, progress: Progress) -> _Result:
    twins = Twins.of(records)
    pairs = find_pairs(encoder, records, twins, pool, progress)
    progress("clusters", 0, len(records))
    return _Result(records, twins, pairs, cluster(encoder, records, twins, pairs))


def _warnings(encoder: Encoder, result: _Result) -> Iterator[str]:
    """Yield warnings about a recipe for these records."""
    records, heads, profile = result.records, result.twins.heads, encoder.profile
    halves = records.digests[heads].view(">u8").reshape(-1, 2)
    sample = heads[np.lexsort((halves[:, 1], halves[:, 0]))[: candidate_forecast.SAMPLE_SIZE]]
    sketches = records.sketches[sample]
    counts = records.counts
    totals = recipe_warnings.FeatureTotals(
        int((counts > 0).sum()), int((counts == 1).sum()), int((counts == 0).sum()), int(counts[heads].sum())
    )
    yield from recipe_warnings.of_texts(profile, records.texts)
    yield from recipe_warnings.of_features(profile, totals)
    yield from recipe_warnings.of_sketches(profile, sketches)
    short = None if profile.recipe.normalise.html else records.heads.warning(profile, encoder.backend)
    expected = candidate_forecast.candidates_per_document(
        encoder.band_keys(sketches), profile.amplification, len(heads)
    )
    yield from [
        one
        for one in (short, candidate_forecast.warning(expected, profile.recipe.match.verify))
        if one is not None
    ]
    full = result.pairs.full
    limit = profile.recipe.match.bucket_limit
    yield from recipe_warnings.of_limit(limit, full.links_left_out, len(full.rows.keys))


def _refuse_replacing(output: Path, inputs: Sequence[Path], reasons: RejectReasons) -> None:
    """Raise InputError if the output would replace an input."""
    if any(output.exists() and path.exists() and output.samefile(path) for path in inputs):
        raise InputError(
            f"{reasons.rejected()}, and {output} is both input and output: nothing was written; name another output, "
            "or write the rejected records to a file with --rejects"
        )


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


class _Positions:
    """Where the documents are in their inputs, to be read again."""

    def __init__(self, parts: Sequence[Input]) -> None:
        self._parts = parts
        self._positions = [array("q") for _ in parts]
        self._current, self._position = array("q"), 0

    def noted(self, source: Source) -> Iterator[ReadDocument | Reject]:
        """Yield the records of a source, each before the next one is read."""
        for part, positions in zip(self._parts, self._positions, strict=True):
            by_line = part.format is FileFormat.JSONL
            self._current = positions
            for ordinal, record in enumerate(source.read(part.path)):
                self._position = record.line if by_line else ordinal
                yield record

    def keep(self) -> None:
        """Add the record that was yielded last, which is a document."""
        self._current.append(self._position)

    def kept(self, clusters: Clusters) -> dict[int, NDArray[np.int64]]:
        """Return the positions of survivors and of documents in no cluster, by input."""
        first, found = 0, {}
        removed = clusters.numbers[~clusters.survives]
        for part, positions in enumerate(self._positions):
            inside = removed[(removed >= first) & (removed < first + len(positions))] - first
            found[part] = np.delete(np.frombuffer(positions, np.int64), inside)
            first += len(positions)
        return {part: kept for part, kept in found.items() if len(kept)}


def _write(path: Path, lines: Iterable[bytes]) -> None:
    with open_output(path) as stream:
        stream.writelines(lines)
