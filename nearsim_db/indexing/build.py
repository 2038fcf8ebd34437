"""The bulk build of a generation, in stages. A build that was killed continues at its stage when run again.

Pausing or abandoning the generation stops the build: each of its transactions checks the state before it commits.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import closing
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing import build_progress, shingle_length, steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.dispatch import discard_indexed_changes
from nearsim_db.records import Progress
from nearsim_db.similarity import candidate_forecast, recipe_warnings
from nearsim_db.similarity.batches import VerifiedPairs
from nearsim_db.store import (
    bands,
    collection_rows,
    documents,
    generation_rows,
    generations,
    pairs,
    partitions,
    retention,
    signatures,
)
from nearsim_db.store.attached import attachments
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.work import queue

_SKETCHES_PER_BATCH = 20_000
_BAND_ROWS_PER_COPY = 4_000_000  # 64 MB sorted in memory, then loaded
_CANDIDATES_PER_BATCH = 16_384
_ALL_DOCUMENTS = (1, 2**63 - 1)
_PAIR_FIGURES = ("linked", "candidates", "screened")


def build(engine: Engine, context: Context, progress: Progress) -> None:
    """Build a generation from all documents of its collection.

    The first generation of a profile is live then, any other catches up. Raises BuildStoppedError if it was paused or
    abandoned.
    """
    with engine.connect() as reading, engine.connect() as writing:
        generation = generation_rows.reread(writing, context.generation)
        writing.rollback()
        stages: dict[str, Callable[[], None]] = {
            "sign": lambda: _sign_all(reading, writing, context, progress),
            "bands": lambda: _load_bands(engine, reading, writing, context, progress),
            "pairs": lambda: _find_pairs(engine, context, generation, progress),
            "clusters": lambda: _finish(writing, context, progress),
        }
        names = list(stages)
        for name in names[names.index(generation.stage) :]:
            began = time.monotonic()
            build_progress.begin(writing, context.generation, name)
            stages[name]()
            reading.rollback()
            _vacuum(engine, context, name)
            build_progress.add_seconds(writing, context.generation, name, time.monotonic() - began)
    discard_indexed_changes(engine, context.generation)


def _sign_all(reading: Connection, writing: Connection, context: Context, progress: Progress) -> None:
    generation = context.generation
    partitions.create(writing, context.leaves, temporary=generation.temporary)
    writing.commit()
    age = context.retained_seconds
    retention.begin(writing, context.leaves, age)
    writing.commit()
    total = collection_rows.count_documents(writing, generation.collection_id)
    total -= documents.count_past_retention(writing, generation.collection_id, age)
    done = signatures.count_signed(writing, context.leaves)
    generation_rows.add_figures(writing, generation, {"documents": total})
    build_progress.begin(writing, context.generation, "sign", done)
    with closing(
        documents.stream_unsigned(
            reading,
            generation.collection_id,
            context.leaves,
            _ALL_DOCUMENTS,
            age,
            reading.rollback,
            vectors=context.encoder.takes_vectors,
        )
    ) as batches:
        for batch in batches:
            context.sample_texts(batch)
            rows = steps.sign_documents(context, batch)
            signatures.write_signatures(writing, context.leaves, rows, rows.doc_ids)
            done += len(batch)
            build_progress.commit(writing, context.generation, done, total)
            progress("sign", done, total)
    _warn(context, recipe_warnings.of_texts(context.encoder.profile, context.texts))
    signatures.index_signatures(writing, context.leaves)
    if attachments.find_attachment(writing, generation.collection_id) is not None:
        # Texts that differ from the recorded revision were left out; compare them again.
        queue.queue_work(writing, context.leaves, "compare", [queue.WHOLE])
    generation_rows.set_stage(writing, generation, "bands")
    build_progress.commit(writing, context.generation)


def _load_bands(
    engine: Engine, reading: Connection, writing: Connection, context: Context, progress: Progress
) -> None:
    family = context.encoder.family
    _forecast(writing, context)
    build_progress.commit(writing, context.generation)
    bands.truncate_bands(writing, context.leaves)
    heads, total = 0, signatures.count_heads(writing, context.leaves)
    sketches = signatures.stream_head_sketches(
        reading, context.leaves, family.dtype, family.k, _SKETCHES_PER_BATCH
    )
    for doc_ids, keys in _band_keys(context, sketches):
        bands.write_bands(writing, context.leaves, doc_ids, keys)
        heads += len(doc_ids)
        build_progress.check_not_stopped(writing, context.generation)
        build_progress.record(engine, context.generation, heads, total)
        progress("bands", heads, total)
    reading.rollback()
    bands.index_bands(writing, context.leaves)
    generation_rows.set_stage(writing, context.generation, "pairs")
    build_progress.commit(writing, context.generation)


def _forecast(connection: Connection, context: Context) -> None:
    """Record and warn of the expected number of candidates before the long stage."""
    family = context.encoder.family
    sample = signatures.sample_sketches(
        connection, context.leaves, family.dtype, family.k, candidate_forecast.SAMPLE_SIZE
    )
    expected = candidate_forecast.candidates_per_document(
        context.encoder.band_keys(sample),
        context.encoder.profile.amplification,
        signatures.count_heads(connection, context.leaves),
    )
    generation_rows.add_figures(
        connection, context.generation, {"expected_candidates_per_document": round(expected, 2)}
    )
    profile = context.encoder.profile
    sizes = recipe_warnings.FeatureTotals(*signatures.count_features(connection, context.leaves))
    _warn(context, recipe_warnings.of_features(profile, sizes) + recipe_warnings.of_sketches(profile, sample))
    # A build parses each page once; profile create and doctor check shingles of HTML.
    if not profile.recipe.normalise.html:
        short = shingle_length.warn_of_index(connection, context.generation, profile)
        _warn(context, [short] if short is not None else [])
    _warn(context, [advice] if (advice := candidate_forecast.warning(expected)) else [])


def _warn(context: Context, warnings: list[str]) -> None:
    for one in warnings:
        context.warn(f"profile {context.generation.profile}: {one}")


def _band_keys(
    context: Context, sketches: Iterator[tuple[NDArray[np.int64], NDArray[np.generic]]]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
    """Yield the band keys of streamed sketches in runs large enough to be worth sorting."""
    run: list[tuple[NDArray[np.int64], NDArray[np.uint64]]] = []
    rows = 0
    for doc_ids, block in chain(sketches, [(None, None)]):
        if doc_ids is not None and block is not None:
            keys = context.encoder.band_keys(block)
            run.append((doc_ids, keys))
            rows += keys.size
        if run and (doc_ids is None or rows >= _BAND_ROWS_PER_COPY):
            yield np.concatenate([ids for ids, _ in run]), np.concatenate([keys for _, keys in run])
            run, rows = [], 0


def _find_pairs(engine: Engine, context: Context, generation: Generation, progress: Progress) -> None:
    """Stream candidates; verify a block while the previous one is stored and another thread counts buckets."""
    limit, after = context.bucket_limit, generation.verified_through
    context.step_counts.update({name: generation.figures.get(name, 0) for name in _PAIR_FIGURES})
    with engine.connect() as streaming, engine.connect() as reading, engine.connect() as writing:
        heads = signatures.read_head_ids(reading, context.leaves)
        reading.rollback()
        build_progress.begin(
            writing, context.generation, "pairs", int(np.searchsorted(heads, after, "right"))
        )
        counting = context.pool.submit(_count_buckets, engine, context)
        storing = context.pool.submit(writing.rollback)
        try:
            for block in bands.stream_candidates(
                streaming, context.leaves, limit, after, _CANDIDATES_PER_BATCH
            ):
                verified = steps.verify_candidates(reading, context, block)
                stale = sorted(context.stale)
                context.stale.clear()
                reading.rollback()
                storing.result()
                # The last document may have more candidates in the next block, so it is not verified yet.
                through = int(block[-1, 0]) - 1
                storing = context.pool.submit(
                    _store_block, writing, context, verified, stale, through, dict(context.step_counts)
                )
                progress("candidates", int(np.searchsorted(heads, block[-1, 0])), len(heads))
        finally:
            # However the loop ends, no thread may use a connection that returns to the pool.
            wait([storing])
        storing.result()
        pairs.finish_pairs(writing, context.leaves)
        generation_rows.add_figures(writing, context.generation, counting.result() | context.step_counts)
        context.step_counts.clear()
        generation_rows.set_stage(writing, context.generation, "clusters")
        build_progress.commit(writing, context.generation)


def _count_buckets(engine: Engine, context: Context) -> dict[str, int]:
    with engine.connect() as connection:
        return bands.count_buckets(connection, context.leaves, context.bucket_limit)


def _store_block(
    writing: Connection,
    context: Context,
    verified: VerifiedPairs,
    stale: list[int],
    through: int,
    step_counts: dict[str, int],
) -> None:
    pairs.store_pairs(writing, context.leaves, verified)
    # Documents whose text was being changed are searched once signed again. They are queued with the block because
    # only this process knows of them.
    queue.queue_work(writing, context.leaves, "search", stale)
    generation_rows.set_stage(writing, context.generation, "pairs", through)
    generation_rows.add_figures(writing, context.generation, step_counts)
    build_progress.commit(writing, context.generation)


def _finish(writing: Connection, context: Context, progress: Progress) -> None:
    progress("clusters", 0, None)
    steps.rebuild_clusters(writing, context)
    if not context.generation.temporary:
        partitions.attach(writing, context.leaves)
    # The row is locked from here on, so the build cannot be paused between this check and its end.
    generation_rows.set_stage(writing, context.generation, "done")
    build_progress.check_not_stopped(writing, context.generation)
    generations.finish_build(writing, context.generation)
    writing.commit()


def _vacuum(engine: Engine, context: Context, stage: str) -> None:
    """Vacuum and analyze what a stage has loaded, for the planner and index-only scans."""
    loaded = {
        "sign": ["signature"],
        "bands": ["band"],
        "pairs": ["similar_pair"],
        "clusters": ["cluster_member"],
    }
    with engine.connect(autocommit=True) as connection:
        for parent in loaded[stage]:
            partitions.vacuum(connection, context.leaves, parent)
        if stage == "clusters":
            partitions.analyze_if_stale(connection)
