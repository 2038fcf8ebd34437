"""The stage of a build that loads the band rows of all heads, in one transaction; on a Citus cluster in slices."""

from collections.abc import Generator, Iterator
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
from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.recipe_warnings import FeatureTotals
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.signatures.bands import BandRows, LoadedBuckets
from nearsim_db.store.work.build_slices import Slice

_SKETCHES_PER_BATCH = 20_000
_BAND_ROWS_PER_COPY = 2_000_000  # 32 MB sorted in memory, then loaded


def load(engine: Engine, context: Context, progress: Progress) -> BandKeys:
    """Load the band rows and index them; return the band keys. Nothing is kept of an interrupted attempt."""
    generation, done = context.generation, 0
    with engine.connect() as reading, engine.connect() as writing:
        figures = forecast(writing, context)
        generation_rows.add_figures(writing, generation, figures)
        build_plan.commit(writing, generation)

        tables = context.tables(writing)
        tables.bands.truncate()
        band_keys = BandKeys.load(reading, context)
        reading.rollback()

        buckets, total = _Buckets(context), len(band_keys)
        whole = band_keys.ascends_by_band
        for doc_ids, keys in band_keys.runs(_BAND_ROWS_PER_COPY):
            whole |= len(doc_ids) == total
            tables.bands.load(buckets.add(doc_ids, keys, whole=whole), freeze=True)
            done += len(flat(keys))
            loaded = min(total, done // max(1, context.encoder.profile.band_rows))
            build_plan.check_not_stopped(writing, generation)
            build_plan.record(engine, generation, loaded, total)
            progress("bands", loaded, total)

        progress("band_index", 0, total)
        tables.bands.index()
        if whole:
            build_plan.add_pair_slices(writing, context, total, buckets.loaded())
        generation_rows.set_stage(writing, generation, "pairs")
        build_plan.commit(writing, generation)
    return band_keys


def plan(connection: Connection, context: Context) -> None:
    """Empty the band table of a distributed generation, and divide its heads into slices, unless that is done."""
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
    """Load the band rows of the heads of a slice, without a commit."""
    with closing(_stream(reading, context, (part.low, part.high))) as sketches:
        for run in _band_keys(context, sketches):
            context.tables(writing).bands.write(*run)


def complete(connection: Connection, context: Context) -> None:
    """Do what follows the slices, once the rows of all are seen on their nodes."""
    if context.leaves.are_shared:
        placement.await_writers(connection)
    placement.use_connections(connection)
    tables = context.tables(connection)
    tables.bands.index()
    generation_rows.set_stage(connection, context.generation, "pairs")
    build_plan.commit(connection, context.generation)


class _Buckets:
    """Collects what the pairs stage has to know of the buckets, while their rows are loaded in ascending runs."""

    def __init__(self, context: Context) -> None:
        self._bucket_limit = context.bucket_limit
        self._parts: list[LoadedBuckets] = []

    def add(self, doc_ids: Ints, keys: Keys, *, whole: bool) -> BandRows:
        """Return the band rows of a run; `whole` if it has all rows of its buckets."""
        rows = BandRows.of(doc_ids, keys)
        if whole:
            self._parts.append(LoadedBuckets.of(rows, self._bucket_limit))
        return rows

    def loaded(self) -> LoadedBuckets | None:
        """Return what was collected, None without heads."""
        return LoadedBuckets.joined(self._parts) if self._parts else None


def _stream(
    connection: Connection, context: Context, *doc_ids: tuple[int, int]
) -> Generator[tuple[Ints, Sketches], None, None]:
    """Yield doc_ids and sketches of the heads, of a range if it is given, some at a time."""
    return context.tables(connection).signatures.stream_head_sketches(
        context.encoder.family, _SKETCHES_PER_BATCH, *doc_ids
    )


def forecast(connection: Connection, context: Context) -> dict[str, Any]:
    """Return the number of expected candidates as a figure; warn of it before the long stage."""
    tables = context.tables(connection)
    heads, totals = tables.signatures.count_features()
    sample = tables.signatures.sample_sketches(context.encoder.family, recipe_warnings.SAMPLE_SIZE)
    return _expected(connection, context, heads, totals, sample)


def _expected(
    connection: Connection, context: Context, heads: int, totals: FeatureTotals, sample: Signatures
) -> dict[str, Any]:
    encoder, profile = context.encoder, context.encoder.profile
    keys = encoder.band_keys(sample.sketches)
    expected = recipe_warnings.candidates_per_document(keys, profile.amplification, heads)
    warnings = recipe_warnings.of_features(profile, totals)
    warnings += recipe_warnings.of_sketches(profile, sample.sketches)
    # A build parses each page once; profile create and doctor check shingles of HTML.
    if not profile.recipe.normalise.html and k_rule.applies(profile):
        doc_ids = sample.doc_ids[: k_rule.SAMPLE_SIZE].tolist()
        short = profiles.warn_of_documents(
            connection, context.collection_id, doc_ids, profile, encoder.backend
        )
        warnings += [short] if short is not None else []
    advice = recipe_warnings.of_candidates(expected, profile.recipe)
    for one in [*warnings, *([advice] if advice else [])]:
        context.warn_of_profile(one)
    return {"expected_candidates_per_document": round(expected, 2)}


def _band_keys(context: Context, sketches: Iterator[tuple[Ints, Sketches]]) -> Iterator[tuple[Ints, Keys]]:
    """Yield the band keys of streamed sketches in runs large enough to be worth sorting."""
    run: list[tuple[Ints, Keys]] = []
    rows = 0
    for doc_ids, block in chain(sketches, [(None, None)]):
        if doc_ids is not None and block is not None:
            keys = context.encoder.band_keys(block)
            run.append((doc_ids, keys))
            rows += len(flat(keys))
        if run and (doc_ids is None or rows >= _BAND_ROWS_PER_COPY):
            yield np.concatenate([ids for ids, _ in run]), joined([keys for _, keys in run])
            run, rows = [], 0
