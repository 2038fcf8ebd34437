"""Reports on files: the contents of a report, from the near-duplicates that `dedupe` found in them."""

from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from nearsim_db.analysis.report import comparisons
from nearsim_db.analysis.report.contents import (
    IndexContents,
    InputCounts,
    LargeBuckets,
    Report,
)
from nearsim_db.analysis.report.file_figures import FileFigures
from nearsim_db.analysis.report.gather import Options, read_similarities, summarise_rejects
from nearsim_db.deduplication.files import FoundDuplicates
from nearsim_db.records import Document, Progress, silent
from nearsim_db.search.statistics import describe
from nearsim_db.similarity.recipe import to_toml
from nearsim_db.store.clusters.reports import Featureless, ReadText


def gather_files(result: FoundDuplicates, options: Options, progress: Progress = silent) -> Report:
    """Return the report on files and their near-duplicates.

    The files are read once more, for the texts to show. Raises InputError for an invalid reject file.
    """
    figures, profile = FileFigures(result), result.records.encoder.profile
    head_of = result.duplicates.twins.head_of
    twins = int(((head_of >= 0) & (head_of != np.arange(len(head_of)))).sum())

    similarities = read_similarities(figures, profile, twins)
    clusters = comparisons.read_clusters(figures, similarities.least, options.top)
    sources, all_sources = figures.count_sources(options.top)
    copies, all_copies = figures.count_copies(options.top)

    # The files are read only once for all texts: of the pairs to show, and of the documents without features.
    chosen = comparisons.choose(figures, similarities.least, options.diffs)
    shown = {number for _, pair in chosen for number in (pair.left_id, pair.right_id)}
    without_features = np.flatnonzero(result.records.counts == 0)
    listed = without_features[: options.top].tolist()
    progress("report", 0, None)
    documents = dict(result.reader.read_again({*shown, *listed}))
    texts = {number: _read_text(documents[number]) for number in shown}

    full = result.duplicates.full
    index = IndexContents(
        similarities,
        clusters,
        # Passages are compared only in an index, because only an index has the number of documents with a passage.
        comparisons.compare_all(chosen, texts, profile.recipe, lambda left, right: ()),
        tuple(sources),
        all_sources,
        tuple(copies),
        all_copies,
        figures.count_over_time(comparisons.TIMELINE_STEPS, options.top),
        LargeBuckets((), 0, None, len(full.rows.keys), full.links_left_out),
        tuple(_featureless(documents[number]) for number in listed),
        (),
    )

    summary = result.reader.summary
    stats: dict[str, Any] = {
        "records": summary.read,
        "rejected": summary.rejected,
        "removed": int(result.duplicates.is_removed.sum()),
        "pairs": result.duplicates.pair_count,
        "stored_pairs": len(result.duplicates.pairs),
        "clusters": clusters.clusters,
        "twins": twins,
        "no_features": len(without_features),
        **describe(profile),
    }
    inputs = _count_inputs(result)
    progress("report", 1, 1)
    return Report(
        title=options.title or f"Near-duplicates in {_names(inputs)}",
        collection=None,
        profile=None,
        made_at=datetime.now(UTC).isoformat(sep=" ", timespec="minutes"),
        version=version("nearsim-db"),
        top=options.top,
        corpus=figures.count_corpus(),
        stats=stats,
        recipe=to_toml(profile.recipe),
        index=index,
        missing=None,
        rejects=summarise_rejects(options.rejects, options.top) if options.rejects else None,
        inputs=inputs,
    )


def _names(inputs: tuple[InputCounts, ...]) -> str:
    return inputs[0].file if len(inputs) == 1 else f"{len(inputs)} files"


def _count_inputs(result: FoundDuplicates) -> tuple[InputCounts, ...]:
    """Count the records of each input file, in the order in which the files were read."""
    files, file_of = result.places.files, result.places.columns()["file"]
    match, is_removed = result.duplicates.match, result.duplicates.is_removed
    # A record that is removed with its whole cluster has no match, because no record of the cluster is kept.
    is_elsewhere = (match >= 0) & (file_of != file_of[match])

    counts: dict[str, Counter[str]] = {}
    # A file can occur more than once in `files`; a file whose records are all rejected does not occur there.
    for number, file in enumerate(files):
        of_file = file_of == number
        counts.setdefault(file, Counter()).update(
            kept=int((of_file & ~is_removed).sum()),
            removed=int((of_file & is_removed).sum()),
            removed_for_other_file=int((of_file & is_elsewhere).sum()),
        )
    for file, rejected in result.reader.rejected_by_file.items():
        counts.setdefault(file, Counter())["rejected"] = rejected
    return tuple(
        InputCounts(
            file, of_file["kept"], of_file["removed"], of_file["removed_for_other_file"], of_file["rejected"]
        )
        for file, of_file in counts.items()
    )


def _read_text(document: Document) -> ReadText:
    body, date = document.body, document.published_at
    return ReadText(
        document.external_id,
        document.title,
        None if body is None else body[: comparisons.MAX_READ_CHARACTERS],
        None if body is None else len(body),
        document.source,
        None if date is None else date.astimezone(UTC).strftime("%Y-%m-%d %H:%M"),
        document.url,
        stale=False,
    )


def _featureless(document: Document) -> Featureless:
    return Featureless(document.external_id, document.title, document.source, len(document.body or ""))
