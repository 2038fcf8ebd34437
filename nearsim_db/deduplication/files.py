"""Remove near-duplicates from files: read, encode, link, verify, cluster, write; no database is used."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from nearsim_db.deduplication.clusters import Found, find
from nearsim_db.deduplication.comparison import Comparison, Labels
from nearsim_db.deduplication.folders import Shard, find_shards, find_stale, make_folder, write_shards
from nearsim_db.deduplication.output import (
    MAX_LISTED_COPIES,
    PairLines,
    cluster_lines,
    copy_unique,
    open_unique,
    output_encoding,
)
from nearsim_db.deduplication.reading import REPORT_EVERY, DedupeInput
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.errors import InputError, RecipeError, count_of
from nearsim_db.readers import RejectWriter, Source, open_vectors, refuse_overwriting_inputs
from nearsim_db.readers.folder import identity_of
from nearsim_db.readers.input_file import STANDARD_INPUT
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.output import open_output
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.writers.file_format import FileFormat, compression_of
from nearsim_db.readers.writers.opened import compressed
from nearsim_db.records import IngestSummary, Progress, silent
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.arrays import Ints
from nearsim_db.similarity.backend import plain_characters
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe import Recipe, field_across, without_review


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output files: the remaining documents, pairs, those to be reviewed, clusters, rejects, cuts; None: only counted.

    `format` is that of the remaining documents if the suffix of their file names none, by default that of the input.
    `sharded`: `unique` is a folder for a file of each input file, with its name and format.
    """

    unique: Path | None = None
    pairs: Path | None = None
    clusters: Path | None = None
    rejects: Path | None = None
    review: Path | None = None
    format: FileFormat | None = None
    sharded: bool = False
    cuts: Path | None = None

    def shards(self, source: Source, parts: Sequence[Input]) -> list[Shard]:
        """Return the files of the folder that is written to, which is made; none if it is a file."""
        if self.unique is None or not self.sharded:
            return []
        shards = find_shards(source, parts, self.unique, self.lists())
        make_folder(self.unique)
        return shards

    def lists(self) -> list[Path]:
        """Return the files beside the remaining documents."""
        paths = (self.pairs, self.clusters, self.rejects, self.review, self.cuts)
        return [path for path in paths if path is not None]

    def stale_warnings(self, shards: Sequence[Shard]) -> list[str]:
        """Warn of files of the folder that are not written anew."""
        if self.unique is None or not self.sharded:
            return []
        stale = find_stale(shards, self.unique, self.lists())
        if not stale:
            return []
        others = "" if len(stale) == 1 else f" and {count_of(len(stale) - 1, 'other file')}"
        return [
            f"{self.unique} has {stale[0]}{others} besides what is written now, as of an earlier run; a program that "
            "reads the whole folder reads them, too"
        ]

    def refuse_links_to(self, files: Sequence[Path]) -> None:
        """Raise InputError if the file of remaining documents is an input, but named by another link."""
        if self.unique is not None and not self.sharded:
            # Paths without `..`, whose links are not followed.
            names = {os.path.abspath(path) for path in files}  # noqa: PTH100
            if os.path.abspath(self.unique) not in names:  # noqa: PTH100
                refuse_overwriting_inputs([self.unique], files)

    def of_records(self, shards: Sequence[Shard]) -> list[Path | None]:
        """Return the files for the remaining documents."""
        return [one.path for one in shards] if self.sharded else [self.unique]


@dataclass(frozen=True, slots=True)
class AgainstSummary:
    """Counts of the other corpus, and how many records have a near-duplicate in it."""

    read: int
    rejected: int
    duplicates: int


@dataclass(frozen=True, slots=True)
class CutCounts:
    """The records of which something was cut, but not all; the passages and characters that were cut."""

    changed: int
    passages: int
    characters: int


@dataclass(frozen=True, slots=True)
class DedupeSummary:
    """Counts of the input: read = unique + duplicates + rejected.

    `duplicates` counts removed records; `pairs` those of documents that count, copies included; `review_pairs` those to
    be reviewed, if a file is written for them; there are no `clusters` against another corpus. `rejected` says how many
    records were rejected and why, None if none was. `cut` is what was cut, if passages are; `duplicates` are
    then the records of which nothing was left.
    """

    ingest: IngestSummary
    against: AgainstSummary
    unique: int
    duplicates: int
    pairs: int
    review_pairs: int
    clusters: int
    profile: Profile
    warnings: tuple[str, ...]
    rejected: str | None
    cut: CutCounts | None = None


def dedupe(
    source: Source,
    recipe: Recipe,
    outputs: Outputs,
    progress: Progress = silent,
    vectors: Path | None = None,
    *,
    against: Sequence[Source] = (),
    only_against: bool = False,
    across: str | None = None,
    earlier_later: bool = False,
    exact: bool = False,
    strict: bool = False,
    most_rejected: int | None = None,
    threads: int | None = None,
) -> DedupeSummary:
    """Write the survivors of `source` and its documents in no cluster, in input order.

    With `exact` documents are duplicates whose texts are equal after normalisation. With `against` those that have no
    near-duplicate there, nor a better one among themselves by the keep policy.
    They are written as `copy_unique` does. A record is identified by its place: ids may recur. `vectors` is a file for
    `open_vectors`. The input is read twice and never held in memory; output files are complete or absent. Raises
    InputError if a file cannot be read, or changes between the readings, or if no record is usable; with `strict` for
    the first record that is rejected or whose date cannot be read; and before an input is replaced by an output that
    lacks more than `most_rejected` of its records.
    """
    recipe = _with_review(recipe, wanted=outputs.review is not None)
    across = across or field_across(recipe)
    check_readable_twice(source.paths)
    source.refuse_repeated()
    # The remaining documents may replace the files that they were read from, and no others.
    kept = [*(path for corpus in against for path in corpus.files), *([] if vectors is None else [vectors])]
    _refuse_same_corpus(source.files, [path for corpus in against for path in corpus.files])
    refuse_overwriting_inputs(outputs.lists(), (*source.files, *kept))
    parts = [Input(source, path) for path in source.paths]
    shards = outputs.shards(source, parts)
    written = outputs.of_records(shards)
    refuse_overwriting_inputs(written, kept)
    outputs.refuse_links_to(source.files)
    few = plain_characters(source.content_bytes)
    with (
        EncodedRecords.under(recipe, threads, exact=exact, plain_characters=few) as records,
        open_vectors(vectors) as beside,
        RecordPlaces() if outputs.pairs or outputs.clusters or outputs.review else nullcontext() as places,
    ):
        beside.check(source)
        by_line = [(one.path, one.is_by_line) for one in parts]
        given = DedupeInput(source, by_line, beside, against, Comparison(across, bool(against), only_against))
        with RejectWriter(outputs.rejects) as rejects:
            given.read(records, places, rejects, progress, strict=strict)
        given.refuse_unusable()
        given.refuse_replacing(written, source.files, most_rejected)
        found = find(records, given.labels, progress)
        if places is not None:
            ordered = records.ranks.earlier_first if earlier_later else found.ordered
            _write_lists(outputs, found, PairLines(found.twins, records, places, given.labels, ordered))
        unique = copy_records(parts, outputs, shards, given.kept(found.match >= 0), progress)
        of_recipe = () if exact else recipe_warnings.of_profile(records.encoder.profile)
        warnings = (
            *given.warnings(),
            *_against_warnings(given, against, found),
            *of_recipe,
            *_warnings(records, found),
            *_duplicate_warnings(records, given.labels, found),
            *_listing_warnings(outputs, given.labels, found),
            *outputs.stale_warnings(shards),
        )
        return _summary(given, found, unique, records.encoder.profile, warnings)


def _summary(
    given: DedupeInput, found: Found, unique: int, profile: Profile, warnings: tuple[str, ...]
) -> DedupeSummary:
    return DedupeSummary(
        given.summary,
        AgainstSummary(given.against_read, given.against_rejected, found.matched),
        unique,
        given.summary.read - given.summary.rejected - unique,
        found.pair_count,
        found.nodes.count(found.in_review.edges()),
        int(found.clusters.survives.sum()),
        profile,
        warnings,
        given.reasons.rejected(),
    )


def _with_review(recipe: Recipe, *, wanted: bool) -> Recipe:
    """Return the recipe, without pairs to be reviewed unless they are wanted. Raises RecipeError if it has none."""
    if wanted and recipe.match.review == 0:
        raise RecipeError(
            "match.review is 0, so there are no pairs to be reviewed; --set match.review=0.5, or another value"
        )
    return recipe if wanted else without_review(recipe)


def _write_lists(outputs: Outputs, found: Found, lines: PairLines) -> None:
    """Write the pairs, those to be reviewed, and the clusters."""
    write_lines(outputs.pairs, chain(lines.of_heads(found.pairs), lines.of_twins(found.pairs)))
    write_lines(outputs.review, lines.of_heads(found.in_review))
    write_lines(outputs.clusters, cluster_lines(found.clusters, lines.places))


def copy_records(
    parts: Sequence[Input],
    outputs: Outputs,
    shards: Sequence[Shard],
    origins: Mapping[int, Ints],
    progress: Progress,
) -> int:
    """Write the records at some origins; return how many there are."""
    if outputs.unique is None:
        return sum(len(positions) for positions in origins.values())
    unique = reported = 0
    for unique in (
        write_shards(shards, outputs.unique, origins)
        if outputs.sharded
        else _copy_to_one(parts, outputs.unique, outputs.format, origins)
    ):
        if unique >= reported + REPORT_EVERY:
            progress("write", reported := unique, None)
    progress("write", unique, unique)
    return unique


def _copy_to_one(
    parts: Sequence[Input], path: Path, format: FileFormat | None, origins: Mapping[int, Ints]
) -> Iterator[int]:
    encoding = output_encoding(parts, path, format)
    with open_unique(parts, path, encoding) as writer:
        yield from copy_unique(parts, origins, writer, encoding.delimiter)


def write_lines(path: Path | None, lines: Iterable[bytes]) -> None:
    if path is not None:
        with open_output(path) as stream, compressed(stream, compression_of(path)) as target:
            for line in lines:
                target.write(line)


def _duplicate_warnings(records: EncodedRecords, labels: Labels, found: Found) -> list[str]:
    """Return a warning if most records are removed, or one cluster has many of them."""
    if not records.encoder.has_sketches:
        return []  # whole texts were compared, which no setting changes
    sizes = np.unique(found.clusters.cluster_ids, return_counts=True)[1]
    return recipe_warnings.of_duplicates(
        records.encoder.profile.recipe,
        labels.count - labels.against,
        int((found.match >= 0).sum()),
        int(sizes.max(initial=0)),
        noun="record",
    )


def _listing_warnings(outputs: Outputs, labels: Labels, found: Found) -> list[str]:
    """Return a warning about copies that are not all listed with each other."""
    sizes = found.twins.sizes()
    copies = int(sizes[sizes > MAX_LISTED_COPIES].sum())
    if outputs.pairs is None or not copies:
        return []
    instead = "" if labels.comparison.against else "; --clusters lists them all"
    return [
        f"{outputs.pairs} lists each of {copies:,} records with the first of its copies only, as their texts have more "
        f"than {MAX_LISTED_COPIES} copies, too many for all pairs{instead}"
    ]


def _warnings(records: EncodedRecords, found: Found) -> Iterator[str]:
    """Yield warnings about the texts, features and sketches, and about links that were left out."""
    encoder = records.encoder
    if not encoder.has_sketches:
        return
    heads, profile = found.twins.heads, encoder.profile
    sketches, counts = records.read_sketches(found.twins.sample), records.counts
    totals = recipe_warnings.FeatureTotals(
        int((counts > 0).sum()), int((counts == 1).sum()), int((counts == 0).sum()), int(counts[heads].sum())
    )
    yield from recipe_warnings.of_texts(profile, records.texts)
    yield from recipe_warnings.of_features(profile, totals)
    if records.common is not None:
        yield from recipe_warnings.of_common(profile.recipe.match.ignore_common or 0.0, records.common)
    yield from recipe_warnings.of_sketches(profile, sketches)
    short = None if profile.recipe.normalise.html else records.heads.warning(profile, encoder.backend)
    expected = recipe_warnings.candidates_per_document(
        encoder.band_keys(sketches), profile.amplification, len(heads)
    )
    yield from filter(None, (short, recipe_warnings.of_candidates(expected, profile.recipe)))
    differ = ties = 0
    for edges, _ in found.pairs.ties():
        left, right = records.numbers[edges].T
        differ, ties = differ + int((left != right).sum()), ties + len(edges)
    yield from recipe_warnings.of_numbers(profile.recipe, differ, ties)
    full, limit = found.full, profile.recipe.match.bucket_limit
    yield from recipe_warnings.of_limit(limit, full.links_left_out, len(full.rows.keys))


def _against_warnings(given: DedupeInput, against: Sequence[Source], found: Found) -> Iterator[str]:
    """Warn of another corpus without records, and of one that has every record."""
    for number in given.empty_others:
        name = against[number].file(against[number].paths[0]).name
        yield f"--against {name} has no records: nothing was compared with it"
    if found.matched and found.matched == given.summary.read - given.summary.rejected:
        yield "every record has a near-duplicate in --against, so that none is left; is it a copy of the input?"


def _refuse_same_corpus(paths: Sequence[Path], against: Sequence[Path]) -> None:
    """Raise InputError if a file is compared with itself, as all of its records would be removed."""
    names = {identity_of(path): path for path in paths}
    names.pop(None, None)
    for path in against:
        if (given := names.get(identity_of(path))) is not None:
            raise InputError(
                f"{given} is also in --against ({path}), so that every record would have a duplicate; to remove "
                "duplicates within a file, leave --against out"
            )


def check_readable_twice(paths: Sequence[Path]) -> None:
    """Raise InputError for standard input and pipes."""
    for path in paths:
        if path == STANDARD_INPUT or path.is_fifo():
            raise InputError(f"{path} cannot be read twice; save the input to a file first")
