"""Remove near-duplicates from files, without a database: read, encode, link, verify, cluster and write."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from nearsim_db.deduplication.clusters import Duplicates, find_duplicates
from nearsim_db.deduplication.comparison import Comparison
from nearsim_db.deduplication.lists import PairLines, cluster_lines, write_lines
from nearsim_db.deduplication.marks import Marks, refuse_unmarkable
from nearsim_db.deduplication.output import Outputs, copy_records
from nearsim_db.deduplication.reading import RecordReader
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.deduplication.warnings import of_outcome
from nearsim_db.errors import InputError, RecipeError
from nearsim_db.readers import RejectWriter, Source, open_vectors, refuse_overwriting_inputs
from nearsim_db.readers.folder import identity_of
from nearsim_db.readers.input_file import STANDARD_INPUT
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.records import IngestSummary, Progress, mark_names, silent
from nearsim_db.similarity.backend import plain_characters
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe import Recipe, without_review


@dataclass(frozen=True, slots=True)
class AgainstSummary:
    """Counts of the records that the input is compared with (--against)."""

    read: int  # records there
    rejected: int  # records there
    duplicates: int  # records of the input that have a near-duplicate there


@dataclass(frozen=True, slots=True)
class CutCounts:
    """Counts of what was cut."""

    changed: int  # records that lost a part of their text; records without any remaining text are not counted
    passages: int
    characters: int


@dataclass(frozen=True, slots=True)
class DedupeSummary:
    """What `dedupe` or `cut_passages` did. For the input, read = unique + duplicates + rejected."""

    ingest: IngestSummary  # counts of the records that were read and rejected
    against: AgainstSummary
    unique: int  # records that remain
    duplicates: int  # removed records; for `cut_passages`, the records without any remaining text
    pairs: int  # all pairs of records that count, pairs of equal texts included
    review_pairs: int  # pairs to be reviewed; 0 unless a file is written for them
    clusters: int  # 0 with --against
    profile: Profile
    warnings: tuple[str, ...]
    rejected: str | None  # how many records were rejected, and why; None if no record was
    cut: CutCounts | None = None  # None for `dedupe`
    marked: int | None = None  # records written with marks; None if only the remaining records were written
    untouched_clusters: int | None = (
        None  # clusters from which no record was removed; None without `only_from`
    )


@dataclass(frozen=True, slots=True)
class FoundDuplicates:
    """The records of files and their duplicates, with their sketches and places; valid while `dedupe` runs."""

    records: EncodedRecords
    reader: RecordReader
    duplicates: Duplicates
    places: RecordPlaces


def dedupe(
    source: Source,
    recipe: Recipe,
    outputs: Outputs,
    progress: Progress = silent,
    vectors: Path | None = None,
    *,
    against: Sequence[Source] = (),
    only_against: bool = False,
    only_from: str | None = None,
    across: str | None = None,
    earlier_later: bool = False,
    exact: bool = False,
    min_words: int = 0,
    strict: bool = False,
    max_rejected: int | None = None,
    threads: int | None = None,
    mark_prefix: str | None = None,
    inspect: Callable[[FoundDuplicates], None] | None = None,
) -> DedupeSummary:
    """Write the records of `source` without its near-duplicates, in input order.

    The survivor of each cluster and the records in no cluster remain. With `against`, a record remains if it has no
    near-duplicate there, and none in the input that the keep policy prefers. Records are written by `copy_unique`.

    vectors: a file for `open_vectors`.
    only_against: compare records with `against` only, not with each other.
    only_from: a file or source; only records from there are removed.
    across: a field whose values must differ in a pair.
    earlier_later: in the list of pairs, put the record with the earlier date on the left.
    exact: only texts that are equal after normalisation are duplicates.
    min_words: records with fewer words are never duplicates.
    mark_prefix: write all records, and add marks whose names begin with this prefix, which may be empty.
    inspect: is called with the duplicates before anything is written.

    A record is identified by its place, so several records may have the same id. The input is read twice, and never
    kept in memory as a whole; output files are complete or absent. Raises InputError if a file cannot be read or
    changes between the readings, if no record is usable, or, with `strict`, for the first record that is rejected or
    has an unreadable date. If more than `max_rejected` records are rejected, also raises it before an output replaces
    an input.
    """
    recipe = _with_review(recipe, wanted=outputs.review is not None)
    check_readable_twice(source.paths)
    source.refuse_repeated()

    # The remaining documents may replace the files that they were read from, but no other file.
    other_files = [path for corpus in against for path in corpus.files]
    kept = other_files if vectors is None else [*other_files, vectors]
    _refuse_same_corpus(source.files, other_files)
    refuse_overwriting_inputs(outputs.lists(), (*source.files, *kept))
    parts = [Input(source, path) for path in source.paths]
    shards = outputs.shards(source, parts)
    written = outputs.of_records(shards)
    refuse_overwriting_inputs(written, kept)
    outputs.refuse_links_to(source.files)
    names = () if mark_prefix is None or outputs.unique is None else mark_names(mark_prefix)
    if names:
        refuse_unmarkable(parts, outputs, shards, names)

    first_plain = plain_characters(source.content_bytes)
    with (
        EncodedRecords.under(
            recipe, threads, exact=exact, plain_characters=first_plain, min_words=min_words
        ) as records,
        open_vectors(vectors) as beside,
        RecordPlaces()
        if names or inspect or outputs.pairs or outputs.clusters or outputs.review
        else nullcontext() as places,
    ):
        # Read and encode.
        beside.check(source)
        by_line = [(part.path, part.is_by_line) for part in parts]
        comparison = Comparison.of(
            recipe, across, against=bool(against), only_against=only_against, only_from=only_from
        )
        reader = RecordReader(source, by_line, beside, against, comparison)
        with RejectWriter(outputs.rejects) as rejects:
            reader.read(records, places, rejects, progress, strict=strict)
        reader.refuse_unusable()
        reader.refuse_replacing(written, source.files, max_rejected)

        # Link, verify and cluster.
        duplicates = find_duplicates(records, reader.labels, progress)

        # Inspect before anything is written, because the output may replace the input.
        if inspect is not None and places is not None:
            inspect(FoundDuplicates(records, reader, duplicates, places))

        # Write.
        if places is not None:
            ordered = records.ranks.earlier_first if earlier_later else duplicates.ordered
            lines = PairLines(duplicates.twins, records, places, reader.labels, ordered)
            pairs = chain(lines.of_heads(duplicates.pairs), lines.of_twins(duplicates.pairs))
            write_lines(outputs.pairs, pairs)
            write_lines(outputs.review, lines.of_heads(duplicates.in_review))
            write_lines(outputs.clusters, cluster_lines(duplicates.clusters, places))
        is_removed, marked = duplicates.is_removed, None
        unique = len(records) - reader.labels.against - int(is_removed.sum())
        if names and places is not None:
            marks = Marks.of(duplicates, places, names, has_clusters=not against)
            marked = copy_records(
                marks.inputs(source, parts, reader),
                outputs,
                marks.shards(source, shards, reader),
                reader.kept(np.zeros_like(is_removed)),
                progress,
            )
        else:
            copy_records(parts, outputs, shards, reader.kept(is_removed), progress)
        warnings = of_outcome(records, reader, duplicates, outputs, shards, against)
        return _summary(reader, duplicates, unique, marked, records.encoder.profile, warnings)


def _summary(
    reader: RecordReader,
    duplicates: Duplicates,
    unique: int,
    marked: int | None,
    profile: Profile,
    warnings: tuple[str, ...],
) -> DedupeSummary:
    return DedupeSummary(
        ingest=reader.summary,
        against=AgainstSummary(reader.against_read, reader.against_rejected, duplicates.matched),
        unique=unique,
        duplicates=reader.summary.read - reader.summary.rejected - unique,
        pairs=duplicates.pair_count,
        review_pairs=duplicates.nodes.count(duplicates.in_review.edges()),
        clusters=len(duplicates.clusters),
        profile=profile,
        warnings=warnings,
        rejected=reader.reasons.rejected(),
        marked=marked,
        untouched_clusters=None if reader.labels.removable is None else duplicates.untouched_clusters,
    )


def _with_review(recipe: Recipe, *, wanted: bool) -> Recipe:
    """Return the recipe, with pairs to be reviewed only if they are wanted. Raises RecipeError if it excludes them."""
    if wanted and recipe.match.review == 0:
        raise RecipeError(
            "match.review is 0, so there are no pairs to be reviewed; --set match.review=0.5, or another value"
        )
    return recipe if wanted else without_review(recipe)


def _refuse_same_corpus(paths: Sequence[Path], against: Sequence[Path]) -> None:
    """Raise InputError if a file is compared with itself, because all of its records would be removed."""
    names = {identity_of(path): path for path in paths}
    names.pop(None, None)
    for path in against:
        if (same := names.get(identity_of(path))) is not None:
            raise InputError(
                f"{same} is also in --against ({path}), so that every record would have a duplicate; to remove "
                "duplicates within a file, leave --against out"
            )


def check_readable_twice(paths: Sequence[Path]) -> None:
    """Raise InputError if a path is standard input or a pipe, which can be read once only."""
    for path in paths:
        if path == STANDARD_INPUT or path.is_fifo():
            raise InputError(f"{path} cannot be read twice; save the input to a file first")
