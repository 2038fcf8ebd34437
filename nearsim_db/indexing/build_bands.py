"""The stage "bands" of a build: load the band rows of all heads in one transaction, or in slices on a Citus cluster."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

import numpy as np

from nearsim_db.indexing import build_plan, profiles
from nearsim_db.indexing.band_keys import BandKeys
from nearsim_db.indexing.context import Context
from nearsim_db.records import Progress
from nearsim_db.similarity import k_rule, recipe_warnings
from nearsim_db.similarity.arrays import Ints, Keys, Sketches, flat, joined
from nearsim_db.store.citus import placement
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.signatures.bands import BandRows, LoadedBuckets
from nearsim_db.store.work.build_slices import Slice

_SKETCHES_PER_BATCH = 20_000
# These take 32 MB, and are sorted in memory before they are loaded.
_BAND_ROWS_PER_COPY = 2_000_000


def load(engine: Engine, context: Context, progress: Progress) -> BandKeys:
    """Load the band rows and index them in one transaction; return the band keys."""
    generation, rows_loaded = context.generation, 0
    with engine.connect() as reading, engine.connect() as writing:
        figures = forecast(writing, context)
        generation_rows.add_figures(writing, generation, figures)
        build_plan.commit(writing, generation)

        tables = context.tables(writing)
        tables.bands.truncate()
        band_keys = BandKeys.load(reading, context)
        reading.rollback()

        buckets, total = _Buckets(context), len(band_keys)
        # A run has all rows of its buckets if it consists of whole bands, or if it is the only run.
        has_whole_buckets = band_keys.ascends_by_band
        for doc_ids, keys in band_keys.runs(_BAND_ROWS_PER_COPY):
            has_whole_buckets |= len(doc_ids) == total
            tables.bands.load(buckets.add(doc_ids, keys, whole=has_whole_buckets), freeze=True)

            rows_loaded += len(flat(keys))
            heads_loaded = min(total, rows_loaded // max(1, context.encoder.profile.band_rows))
            build_plan.check_not_stopped(writing, generation)
            build_plan.record(engine, generation, heads_loaded, total)
            progress("bands", heads_loaded, total)

        progress("band_index", 0, total)
        tables.bands.index()
        if has_whole_buckets:
            build_plan.add_pair_slices(writing, context, total, buckets.loaded())
        generation_rows.set_stage(writing, generation, "pairs")
        build_plan.commit(writing, generation)
    return band_keys


def plan(connection: Connection, context: Context) -> None:
    """Empty the band table of a distributed generation, and plan slices of its heads, unless this was done before."""
    tables = context.tables(connection)
    if tables.slices.read_progress("bands").slices:
        connection.rollback()
        return

    generation_rows.add_figures(connection, context.generation, forecast(connection, context))
    tables.bands.truncate()
    heads = _BAND_ROWS_PER_COPY // context.encoder.profile.band_rows
    tables.slices.plan_bands(max(1, heads))
    build_plan.commit(connection, context.generation)


def load_slice(reading: Connection, writing: Connection, context: Context, part: Slice) -> None:
    """Load the band rows of the heads of a slice; does not commit."""
    heads = context.tables(reading).signatures
    with closing(
        heads.stream_head_sketches(context.encoder.family, _SKETCHES_PER_BATCH, (part.low, part.high))
    ) as sketches:
        for doc_ids, keys in _band_keys(context, sketches):
            context.tables(writing).bands.write(doc_ids, keys)


def complete(connection: Connection, context: Context) -> None:
    """Index the band rows of a distributed generation once all slices are done, and begin the next stage."""
    # Wait for writers, because rows that another session committed may not be visible on their nodes yet.
    if context.leaves.are_shared:
        placement.await_writers(connection)
    placement.use_connections(connection)
    tables = context.tables(connection)
    tables.bands.index()
    generation_rows.set_stage(connection, context.generation, "pairs")
    build_plan.commit(connection, context.generation)


class _Buckets:
    """Collects what the stage pairs needs to know about the buckets, while band rows are loaded in ascending runs."""

    def __init__(self, context: Context) -> None:
        self._bucket_limit = context.bucket_limit
        self._parts: list[LoadedBuckets] = []

    def add(self, doc_ids: Ints, keys: Keys, *, whole: bool) -> BandRows:
        """Return the band rows of a run; `whole` says that the run has all rows of its buckets."""
        rows = BandRows.of(doc_ids, keys)
        if whole:
            self._parts.append(LoadedBuckets.of(rows, self._bucket_limit))
        return rows

    def loaded(self) -> LoadedBuckets | None:
        """Return a description of the buckets, or None if no run was whole."""
        return LoadedBuckets.joined(self._parts) if self._parts else None


def forecast(
    connection: Connection, context: Context, signed: Sequence[StoredDocument] | None = None
) -> dict[str, Any]:
    """Return the expected number of candidates as a figure, and warn of an unsuitable recipe before the long stages.

    `signed` contains all documents of the generation, if they are in memory.
    """
    encoder, profile = context.encoder, context.encoder.profile
    signatures = context.tables(connection).signatures
    heads, totals = signatures.count_features()
    sample = signatures.sample_sketches(encoder.family, recipe_warnings.SAMPLE_SIZE)
    warnings = recipe_warnings.of_features(profile, totals)
    warnings += recipe_warnings.of_sketches(profile, sample.sketches)

    # Parsing HTML pages again would slow down the build. For such recipes profile create and doctor check the shingles.
    if not profile.recipe.normalise.html and k_rule.applies(profile):
        doc_ids = sample.doc_ids[: k_rule.SAMPLE_SIZE].tolist()
        if signed is None:
            warning = profiles.warn_of_documents(
                connection, context.collection_id, doc_ids, profile, encoder.backend
            )
        else:
            sampled = set(doc_ids)
            texts = [
                encoder.text_of(document.title, document.body)
                for document in signed
                if document.doc_id in sampled
            ]
            warning = k_rule.warning(profile, texts, encoder.backend)
        warnings += [warning] if warning is not None else []

    keys = encoder.band_keys(sample.sketches)
    expected = recipe_warnings.candidates_per_document(keys, profile.amplification, heads)
    advice = recipe_warnings.of_candidates(expected, profile.recipe)
    for message in [*warnings, *([advice] if advice else [])]:
        context.warn_of_profile(message)
    return {"expected_candidates_per_document": round(expected, 2)}


def _band_keys(context: Context, sketches: Iterator[tuple[Ints, Sketches]]) -> Iterator[tuple[Ints, Keys]]:
    """Yield the band keys of streamed sketches in runs that are large enough to be worth sorting."""
    run: list[tuple[Ints, Keys]] = []
    rows = 0
    # The appended item only ends the last run.
    for doc_ids, block in chain(sketches, [(None, None)]):
        if doc_ids is not None and block is not None:
            keys = context.encoder.band_keys(block)
            run.append((doc_ids, keys))
            rows += len(flat(keys))
        if run and (doc_ids is None or rows >= _BAND_ROWS_PER_COPY):
            yield np.concatenate([ids for ids, _ in run]), joined([keys for _, keys in run])
            run, rows = [], 0
