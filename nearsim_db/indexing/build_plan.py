"""Plan the slices of a build's stage before they are taken, and complete the stage afterwards.

Progress is recorded for estimates of the remaining time. Each commit checks that the build was not paused or abandoned.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from nearsim_db.errors import BuildStoppedError
from nearsim_db.indexing.context import Context
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.arrays import Hashes, Ints, flat
from nearsim_db.similarity.common_shingles import SAMPLE_SEED, SAMPLE_SIZE, CommonShingles
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import attachments
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.codec import to_bigint
from nearsim_db.store.generations import generation_rows, generation_states, partitions
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.signatures.bands import LoadedBuckets
from nearsim_db.store.work import queue

_DOCUMENTS_PER_SLICE = 4_000
# Most pairs have links in almost every slice, so a larger number of slices would cost more.
_MAX_PAIR_SLICES = 8
_MIN_BAND_ROWS_PER_SLICE = 250_000
_MAX_BAND_ROWS_PER_SLICE = 2_500_000


def place(connection: Connection, generation: Generation, *, is_large: bool = False) -> Generation:
    """Return the generation, moved to tables of its own if its first build begins and its collection is large.

    `is_large` says that the caller is about to write many documents. The caller has taken the build lock.
    """
    may_move = generation.is_first_build and generation.leaves.are_shared and generation.stage == "sign"
    if may_move and (is_large or partitions.choose_tables(connection, generation.collection_id) == "own"):
        return generation_rows.give_own_tables(connection, generation)
    return generation


def begin(connection: Connection, generation: Generation, stage: str) -> None:
    """Record when a stage began or resumed, and commit."""
    began = {"stage": stage, "at": queue.server_time(connection).timestamp(), "done": 0}
    generation_rows.add_figures(connection, generation, {"began": began, "done": 0, "total": None})
    commit(connection, generation)


def commit(connection: Connection, generation: Generation) -> None:
    """Commit. Raises BuildStoppedError instead if the build was stopped in the meantime."""
    check_not_stopped(connection, generation)
    connection.commit()


def record(engine: Engine, generation: Generation, done: int, total: int) -> None:
    """Record the progress of a stage that commits only at its end, in a separate transaction."""
    with engine.begin() as connection:
        generation_rows.add_figures(connection, generation, {"done": done, "total": total})


def add_seconds(connection: Connection, generation: Generation, stage: str, seconds: float) -> None:
    """Add seconds to the recorded duration of a stage, and commit."""
    seconds_by_stage = generation_rows.reread(connection, generation).figures.get("seconds", {})
    seconds_by_stage[stage] = round(seconds_by_stage.get(stage, 0.0) + seconds, 3)
    generation_rows.add_figures(connection, generation, {"seconds": seconds_by_stage})
    connection.commit()


def check_not_stopped(connection: Connection, generation: Generation) -> None:
    """Raise BuildStoppedError if the generation was paused or abandoned."""
    state = generation_states.read_state(connection, generation)
    if state != "building":
        raise BuildStoppedError(generation.generation_id, state, generation.advice("reindex resume"))


def plan_signing(connection: Connection, context: Context) -> None:
    """Divide the documents to sign into slices, unless this was done before."""
    generation, tables = context.generation, context.tables(connection)
    tables.create()
    connection.commit()
    tables.removals.begin_retention()
    connection.commit()

    if not tables.slices.read_progress("sign").slices:
        total = collection_rows.count_documents(connection, generation.collection_id)
        total -= tables.shown.count_past_retention(generation.collection_id)
        generation_rows.add_figures(connection, generation, {"documents": total})
        _count_features(connection, context)
        tables.slices.plan_signing(
            generation.collection_id,
            _DOCUMENTS_PER_SLICE,
            by_age=context.retained_seconds is not None,
            all_signed=context.build.is_signed and total == context.build.signed_early,
        )
    commit(connection, generation)


def _count_features(connection: Connection, context: Context) -> None:
    """Count the features of a sample of the documents, if the recipe requires it; does not commit."""
    encoder, ignores = context.encoder, context.encoder.profile.recipe.match.ignore_common
    if not ignores and not encoder.freezes:
        return

    doc_ids = documents.sample_documents(connection, context.collection_id, SAMPLE_SIZE, SAMPLE_SEED)

    def read() -> Iterator[list[Hashes]]:
        with closing(documents.stream_documents(connection, context.collection_id, doc_ids)) as batches:
            for batch in batches:
                texts = [encoder.text_of(document.title, document.body) for document in batch]
                features = encoder.features(texts)
                yield [features.ids_of(row) for row in range(len(batch))]

    common = encoder.count_features(read)
    if common is not None:
        _record_common(connection, context, common)
    else:
        generation_rows.set_frequencies(connection, context.generation, encoder.frequencies.to_bytes())
        figures = {"frequencies_counted_in": encoder.frequencies.documents}
        generation_rows.add_figures(connection, context.generation, figures)


def _record_common(connection: Connection, context: Context, common: CommonShingles) -> None:
    """Record the shingles that too many documents have, and that are left out from now on; does not commit."""
    if not len(common.ids):
        return

    figures = {"common_shingles": len(common.ids), "common_shingles_counted_in": common.documents}
    generation_rows.set_common_shingles(connection, context.generation, common.ids)
    generation_rows.add_figures(connection, context.generation, figures)

    percent = context.encoder.profile.recipe.match.ignore_common or 0.0
    for message in recipe_warnings.of_common(percent, common):
        context.warn_of_profile(message)


def warn_of_texts(context: Context) -> None:
    """Warn if the recipe does not suit the texts that were signed."""
    for message in recipe_warnings.of_texts(context.encoder.profile, context.build.texts):
        context.warn_of_profile(message)


def complete_signing(connection: Connection, context: Context) -> None:
    """Index the signatures once all slices of the stage sign are done, and begin the next stage."""
    generation = context.generation
    warn_of_texts(context)
    tables = context.tables(connection)
    tables.signatures.index()
    if attachments.find_attachment(connection, generation.collection_id) is not None:
        # Texts that differ from their recorded revision were left out; a worker compares them again.
        tables.work.add("compare", [queue.WHOLE_GENERATION])
    generation_rows.set_stage(connection, generation, "bands")
    commit(connection, generation)


def plan_pairs(connection: Connection, context: Context) -> None:
    """Divide the buckets into slices, unless this was done before."""
    tables = context.tables(connection)
    if tables.slices.read_progress("pairs").slices:
        connection.rollback()
        return
    add_pair_slices(connection, context, tables.signatures.count_heads())
    commit(connection, context.generation)


def add_pair_slices(
    connection: Connection, context: Context, heads: int, buckets: LoadedBuckets | None = None
) -> None:
    """Divide the buckets into slices with about the same number of band rows each.

    `buckets` describes the band rows if this transaction has loaded them; otherwise the table is read.
    """
    tables, limit = context.tables(connection), context.bucket_limit
    if buckets is None:
        full, figures = tables.bands.find_full_buckets(limit)
        keys = _sample_keys(connection, context)
    else:
        full, figures, keys = buckets.full, buckets.figures, buckets.sample

    bounds = _quantiles(keys, heads * context.encoder.profile.band_rows)
    tables.slices.plan_pairs(bounds, heads, full)
    generation_rows.add_figures(connection, context.generation, dated(connection, context, figures))


def dated(connection: Connection, context: Context, figures: dict[str, int]) -> dict[str, Any]:
    """Return the figures of buckets with the time of the count, and warn if the bucket limit left out many links."""
    left_out, over_limit = figures["links_left_out"], figures["buckets_over_limit"]
    for message in recipe_warnings.of_limit(context.bucket_limit, left_out, over_limit):
        context.warn_of_profile(message)
    counted_at = queue.server_time(connection).isoformat(timespec="seconds")
    return {**figures, "buckets_counted_at": counted_at}


def _sample_keys(connection: Connection, context: Context) -> Ints:
    """Return the bucket hashes of a sample of heads, sorted."""
    sample = context.tables(connection).signatures.sample_sketches(
        context.encoder.family, recipe_warnings.SAMPLE_SIZE
    )
    return np.sort(to_bigint(flat(context.encoder.band_keys(sample.sketches))))


def _quantiles(keys: Ints, rows: int) -> list[int]:
    """Return the bucket hashes that divide `rows` band rows into slices of about the same size.

    `keys` are the bucket hashes of a sample, sorted.
    """
    per_slice = min(max(rows // _MAX_PAIR_SLICES, _MIN_BAND_ROWS_PER_SLICE), _MAX_BAND_ROWS_PER_SLICE)
    places = np.arange(per_slice, rows, per_slice) * len(keys) // max(rows, 1)
    return [int(bound) for bound in np.unique(keys[places]) if bound > -(2**63)]
