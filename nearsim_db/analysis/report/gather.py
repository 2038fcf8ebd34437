"""Reports on an index: read the contents of a report in one snapshot of the database.

The options limit the length of every list, so memory does not grow with the collection.
"""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import islice, takewhile
from pathlib import Path

from nearsim_db.analysis.report import comparisons
from nearsim_db.analysis.report.comparisons import ReportFigures
from nearsim_db.analysis.report.contents import (
    IndexContents,
    LargeBuckets,
    LikeBuckets,
    RejectReason,
    RejectSummary,
    Report,
    SetAside,
    Similarities,
    Step,
)
from nearsim_db.errors import NotFoundError
from nearsim_db.messages import suggested_command
from nearsim_db.readers.rejects import read_rejects
from nearsim_db.records import DEFAULT, Progress, silent
from nearsim_db.search import live_generation, statistics
from nearsim_db.search.answers import profile_of
from nearsim_db.search.passages import passages_if_contained
from nearsim_db.similarity.metrics import METRICS
from nearsim_db.similarity.profile import Profile, make_family
from nearsim_db.similarity.recipe import to_toml
from nearsim_db.store.access import collection_rows
from nearsim_db.store.access.collection_rows import Collection
from nearsim_db.store.clusters import reports
from nearsim_db.store.clusters.reports import Bucket
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.generations.tables import GenerationTables
from nearsim_db.store.work import backlog

_NAMED_MEMBERS = 3
_BUCKETS_PER_ROW = 16
_MAX_HISTOGRAM_STEPS = 40
_HISTOGRAM_STEP = 0.01
_CURVE_POINTS = 100
# The S-curve begins this far below the histogram.
_CURVE_MARGIN = 0.3
_PROGRESS_STEPS = 5


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a report."""

    top: int = 25  # maximum number of rows of each table
    diffs: int = 12  # number of pairs to show side by side
    title: str | None = None  # None for a title with the name of the collection or files
    rejects: tuple[Path, ...] = ()  # reject files to summarise


def gather(
    database: Database, collection: str, profile: str | None, options: Options, progress: Progress = silent
) -> Report:
    """Read the report on a profile of a collection.

    Raises NotFoundError if the collection or the profile does not exist, InputError for an invalid reject file.
    """
    reject_summary = summarise_rejects(options.rejects, options.top) if options.rejects else None
    with reports.snapshot(database.engine) as connection:
        collection_row = collection_rows.get_collection(connection, collection)
        generations = generation_rows.list_generations(connection, collection_row.collection_id)
        generation = (
            live_generation.choose_newest(connection, collection, generations, profile)
            if generations or profile not in (None, DEFAULT)
            else None
        )
        resolved = None if generation is None else profile_of(generation)

        missing = None
        try:
            if generation is None:
                raise NotFoundError(
                    "the collection has no profile yet; ingest documents, or run: "
                    f"{suggested_command('build', collection)}"
                )
            live_generation.find_live(connection, collection, profile)
        except NotFoundError as error:
            missing = str(error)

        stats = index = None
        if generation is not None and resolved is not None:
            stats = statistics.stats(connection, generation, resolved, recount=missing is None)
            if missing is None:
                index = _read_index(
                    connection, collection_row, generation, resolved, int(stats["twins"]), options, progress
                )
        corpus = reports.count_corpus(connection, collection_row.collection_id)

    return Report(
        title=options.title or f"Near-duplicates in {collection}",
        collection=collection,
        profile=None if generation is None else generation.profile,
        made_at=datetime.now(UTC).isoformat(sep=" ", timespec="minutes"),
        version=version("nearsim-db"),
        top=options.top,
        corpus=corpus,
        stats=stats,
        recipe=None if resolved is None else to_toml(resolved.recipe),
        index=index,
        missing=missing,
        rejects=reject_summary,
    )


def _read_index(
    connection: Connection,
    collection: Collection,
    generation: Generation,
    profile: Profile,
    twins: int,
    options: Options,
    progress: Progress,
) -> IndexContents:
    tables, top = generation.tables(connection), options.top
    limit = profile.recipe.match.bucket_limit

    progress("report", 0, _PROGRESS_STEPS)
    similarities = read_similarities(tables.report, profile, twins)

    progress("report", 1, _PROGRESS_STEPS)
    clusters = comparisons.read_clusters(tables.report, similarities.least, top)

    progress("report", 2, _PROGRESS_STEPS)
    chosen = comparisons.choose(tables.report, similarities.least, options.diffs)
    doc_ids = sorted({doc_id for _, pair in chosen for doc_id in (pair.left_id, pair.right_id)})
    texts = tables.report.read_texts(collection.collection_id, doc_ids, comparisons.MAX_READ_CHARACTERS)
    compared = comparisons.compare_all(
        chosen, texts, profile.recipe, partial(passages_if_contained, connection, generation)
    )

    progress("report", 3, _PROGRESS_STEPS)
    sources, all_sources = tables.report.count_sources(collection.collection_id, top)
    copies, all_copies = tables.report.count_copies(top)
    over_time = tables.report.count_over_time(collection.collection_id, comparisons.TIMELINE_STEPS, top)

    progress("report", 4, _PROGRESS_STEPS)
    buckets = _read_buckets(tables, limit, top)
    featureless = tables.report.read_featureless(top)
    set_aside = _read_set_aside(connection, generation, top)
    progress("report", _PROGRESS_STEPS, _PROGRESS_STEPS)
    return IndexContents(
        similarities,
        clusters,
        compared,
        tuple(sources),
        all_sources,
        tuple(copies),
        all_copies,
        over_time,
        buckets,
        tuple(featureless),
        set_aside,
    )


def read_similarities(report: ReportFigures, profile: Profile, twins: int) -> Similarities:
    """Read the histogram of similarities in at most 40 steps, whose width is about 0.01 or a multiple of 0.01."""
    family, match = make_family(profile.recipe, "numpy"), profile.recipe.match
    threshold = METRICS[family.metric].similarity_at_threshold(match.threshold)

    # With these settings, pairs below the threshold are stored too if they share enough bands.
    lowest_stored = threshold
    if match.verify == "bands" or match.certain_shared_bands:
        lowest = report.read_lowest_pairs(1)
        lowest_stored = min([threshold, *(pair.similarity for pair in lowest)])

    begin = min(lowest_stored, 1 - 10 * _HISTOGRAM_STEP)
    hundredths = -(-round((1 - begin) / _HISTOGRAM_STEP) // _MAX_HISTOGRAM_STEPS)
    step_count = max(1, round((1 - begin) / (hundredths * _HISTOGRAM_STEP)))
    width = (1 - begin) / step_count
    counts = report.count_similarities(begin, step_count).tolist()
    steps = tuple(Step(round(begin + number * width, 6), *pair) for number, pair in enumerate(counts))

    curve_begin = max(begin - _CURVE_MARGIN, -1.0 if family.metric == "cosine" else 0.0)
    points = (curve_begin + (1 - curve_begin) * number / _CURVE_POINTS for number in range(_CURVE_POINTS + 1))
    curve = tuple((round(point, 6), profile.match_probability(point)) for point in points)
    is_exact = match.verify == "exact"
    return Similarities(family.metric, threshold, width, steps, curve, twins, lowest_stored, is_exact)


def _read_buckets(tables: GenerationTables, bucket_limit: int, top: int) -> LargeBuckets:
    """Read the largest buckets; buckets with the same size and the same first members are grouped."""
    max_buckets = top * _BUCKETS_PER_ROW
    largest, totals = tables.report.read_large_buckets(bucket_limit, max_buckets, _NAMED_MEMBERS)
    groups: dict[tuple[int, tuple[str, ...]], list[Bucket]] = {}
    for bucket in largest:
        groups.setdefault((bucket.members, bucket.names), []).append(bucket)
    rows = tuple(LikeBuckets(group[0], len(group)) for group in islice(groups.values(), top))
    listed = sum(row.buckets for row in rows)
    return LargeBuckets(rows, listed, *totals)


def _read_set_aside(connection: Connection, generation: Generation, top: int) -> tuple[SetAside, ...]:
    stream = backlog.stream_work(connection, generation.collection_id, None, failed=True)
    with closing(stream) as items:  # type: ignore[type-var]
        failed = takewhile(lambda item: item.state == "set aside", items)
        of_generation = (item for item in failed if item.generation == generation.generation_id)
        return tuple(
            SetAside(item.id, item.stage, item.attempts, item.error) for item in islice(of_generation, top)
        )


# Parts of a message that differ between records although they are rejected for the same reason.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d[\d,.]*")


def summarise_rejects(paths: Sequence[Path], top: int) -> RejectSummary:
    """Count the records of reject files by reason. Raises InputError for an unreadable or invalid file."""
    counts: Counter[str] = Counter()
    first: dict[str, tuple[str, int, str]] = {}
    for path in paths:
        for _, row in read_rejects(path):
            reason = str(row["reason"])
            kind = _PARTICULAR.sub("…", reason)
            counts[kind] += 1
            first.setdefault(kind, (str(row["file"]), row["line"], reason))

    reasons = tuple(RejectReason(kind, records, *first[kind]) for kind, records in counts.most_common(top))
    return RejectSummary(tuple(map(str, paths)), counts.total(), reasons, len(counts) - len(reasons))
