"""The bulk build of a whole generation, in stages; killed anywhere and run again, it goes on at the stage it was at.

Whoever pauses or abandons the generation stops it: each of its transactions looks at the state before it commits.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import closing
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import BuildStoppedError
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.records import Progress
from nearsim_db.similarity import candidate_forecast, recipe_warnings
from nearsim_db.similarity.batches import VerifiedPairs
from nearsim_db.store import bands, catalog, documents, generations, pairs, partitions, retention, signatures
from nearsim_db.store.attached import attachments
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.work import queue

_SKETCHES_AT_ONCE = 20_000
_BAND_ROWS_AT_ONCE = 4_000_000  # 64 MB sorted in memory, then loaded
_CANDIDATES_AT_ONCE = 16_384
_LOOKED_AT = 100  # texts of a batch, for pitfalls


def build(engine: Engine, context: Context, progress: Progress) -> None:
    """Build a generation from all documents of its collection. The first of a profile goes live, another catches up.

    Raises BuildStoppedError where somebody paused or abandoned it.
    """
    with engine.connect() as reading, engine.connect() as writing:
        generation = catalog.reread(writing, context.generation)
        writing.rollback()
        stages: dict[str, Callable[[], None]] = {
            "sign": lambda: _sign_all(reading, writing, context, progress),
            "bands": lambda: _load_bands(engine, reading, writing, context, progress),
            "pairs": lambda: _find_pairs(engine, context, generation, progress),
            "clusters": lambda: _link_and_serve(writing, context, progress),
        }
        names = list(stages)
        for name in names[names.index(generation.stage) :]:
            began = time.monotonic()
            _note_begin(writing, context, name)
            stages[name]()
            reading.rollback()
            _refresh(engine, context, name)
            _note_seconds(writing, context, name, time.monotonic() - began)


def _sign_all(reading: Connection, writing: Connection, context: Context, progress: Progress) -> None:
    generation = context.generation
    partitions.create(writing, context.leaves)
    writing.commit()
    age = context.encoder.profile.recipe.retain.seconds
    retention.begin(writing, context.leaves, age)
    writing.commit()
    total = catalog.count_documents(writing, generation.collection_id)
    total -= documents.count_outside(writing, generation.collection_id, age)
    signed = signatures.last_signed(writing, context.leaves)
    done = signatures.count_signed(writing, context.leaves)
    catalog.add_figures(writing, generation, {"documents": total})
    _note_begin(writing, context, "sign", done)
    texts = recipe_warnings.TextSample()
    with closing(
        documents.stream_after(
            reading,
            generation.collection_id,
            signed,
            age,
            reading.rollback,
            vectors=context.encoder.takes_vectors,
        )
    ) as batches:
        for batch in batches:
            texts.add(one.body or one.title or "" for one in batch[:: max(1, len(batch) // _LOOKED_AT)])
            rows = steps.sign_documents(context, batch)
            signatures.write_signatures(writing, context.leaves, rows, rows.doc_ids)
            done += len(batch)
            _commit(writing, context, done, total)
            progress("sign", done, total)
    _warn(context, recipe_warnings.of_texts(context.encoder.profile, texts))
    signatures.index_signatures(writing, context.leaves)
    if attachments.find_attachment(writing, generation.collection_id) is not None:
        # Texts that were another than was known have been left out; they are looked at again.
        queue.queue_work(writing, context.leaves, "compare", [queue.WHOLE])
    catalog.set_stage(writing, generation, "bands")
    _commit(writing, context)


def _load_bands(
    engine: Engine, reading: Connection, writing: Connection, context: Context, progress: Progress
) -> None:
    family = context.encoder.family
    _forecast(writing, context)
    _commit(writing, context)
    bands.empty_bands(writing, context.leaves)
    heads, total = 0, signatures.count_heads(writing, context.leaves)
    sketches = signatures.stream_head_sketches(
        reading, context.leaves, family.dtype, family.k, _SKETCHES_AT_ONCE
    )
    for doc_ids, keys in _joined(context, sketches):
        bands.write_bands(writing, context.leaves, doc_ids, keys)
        heads += len(doc_ids)
        _refuse_stopped(writing, context)
        _note_done(engine, context, heads, total)
        progress("bands", heads, total)
    reading.rollback()
    bands.index_bands(writing, context.leaves)
    catalog.set_stage(writing, context.generation, "pairs")
    _commit(writing, context)


def _forecast(connection: Connection, context: Context) -> None:
    """Say before the long part how many candidates there will be."""
    family = context.encoder.family
    sample = signatures.sample_sketches(
        connection, context.leaves, family.dtype, family.k, candidate_forecast.SAMPLE_SIZE
    )
    expected = candidate_forecast.candidates_per_document(
        context.encoder.band_keys(sample),
        context.encoder.profile.amplification,
        signatures.count_signed(connection, context.leaves),
    )
    catalog.add_figures(
        connection, context.generation, {"expected_candidates_per_document": round(expected, 2)}
    )
    profile = context.encoder.profile
    sizes = recipe_warnings.FeatureTotals(*signatures.count_features(connection, context.leaves))
    _warn(context, recipe_warnings.of_features(profile, sizes) + recipe_warnings.of_sketches(profile, sample))
    _warn(context, [advice] if (advice := candidate_forecast.warning(expected)) else [])


def _warn(context: Context, warnings: list[str]) -> None:
    for one in warnings:
        context.warn(f"profile {context.generation.profile}: {one}")


def _joined(
    context: Context, sketches: Iterator[tuple[NDArray[np.int64], NDArray[np.generic]]]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
    """Band keys of streamed sketches, in runs large enough to be worth sorting."""
    run: list[tuple[NDArray[np.int64], NDArray[np.uint64]]] = []
    rows = 0
    for doc_ids, block in chain(sketches, [(None, None)]):
        if doc_ids is not None and block is not None:
            keys = context.encoder.band_keys(block)
            run.append((doc_ids, keys))
            rows += keys.size
        if run and (doc_ids is None or rows >= _BAND_ROWS_AT_ONCE):
            yield np.concatenate([ids for ids, _ in run]), np.concatenate([keys for _, keys in run])
            run, rows = [], 0


def _find_pairs(engine: Engine, context: Context, generation: Generation, progress: Progress) -> None:
    """Stream candidates, verify a block while the one before is stored, and count buckets beside it all."""
    limit, after = context.bucket_limit, generation.verified_through
    context.figures.update({name: generation.figures.get(name, 0) for name in ("linked", "screened")})
    with engine.connect() as streaming, engine.connect() as reading, engine.connect() as writing:
        heads = signatures.read_head_ids(reading, context.leaves)
        reading.rollback()
        _note_begin(writing, context, "pairs", int(np.searchsorted(heads, after, "right")))
        counting = context.pool.submit(_count_buckets, engine, context)
        storing = context.pool.submit(writing.rollback)
        try:
            for block in bands.stream_candidates(
                streaming, context.leaves, limit, after, _CANDIDATES_AT_ONCE
            ):
                verified = steps.verify_candidates(reading, context, block)
                stale = sorted(context.stale)
                context.stale.clear()
                reading.rollback()
                storing.result()
                # The last document's candidates may go on in the next block, so it counts as verified only after that.
                through = int(block[-1, 0]) - 1
                storing = context.pool.submit(
                    _store_block, writing, context, verified, stale, through, dict(context.figures)
                )
                progress("candidates", int(np.searchsorted(heads, block[-1, 0])), len(heads))
        finally:
            # Whatever ends the loop, nobody uses a connection any more when it goes back to the pool.
            wait([storing])
        storing.result()
        pairs.finish_pairs(writing, context.leaves)
        catalog.add_figures(writing, context.generation, counting.result() | context.figures)
        context.figures.clear()
        catalog.set_stage(writing, context.generation, "clusters")
        _commit(writing, context)


def _count_buckets(engine: Engine, context: Context) -> dict[str, int]:
    with engine.connect() as connection:
        return bands.count_buckets(connection, context.leaves, context.bucket_limit)


def _store_block(
    writing: Connection,
    context: Context,
    verified: VerifiedPairs,
    stale: list[int],
    through: int,
    figures: dict[str, int],
) -> None:
    pairs.store_pairs(writing, context.leaves, verified)
    # Their text was being changed; they are searched when they have been signed again. Queued with the block: only this
    # process knows of them.
    queue.queue_work(writing, context.leaves, "search", stale)
    catalog.set_stage(writing, context.generation, "pairs", through)
    catalog.add_figures(writing, context.generation, figures)
    _commit(writing, context)


def _link_and_serve(writing: Connection, context: Context, progress: Progress) -> None:
    progress("clusters", 0, None)
    steps.rebuild_clusters(writing, context)
    partitions.attach(writing, context.leaves)
    # The row is locked from here on, so that nobody pauses the build between the look and the end.
    catalog.set_stage(writing, context.generation, "done")
    _refuse_stopped(writing, context)
    generations.finish_build(writing, context.generation)
    writing.commit()


def _refuse_stopped(writing: Connection, context: Context) -> None:
    state = generations.read_state(writing, context.generation)
    if state != "building":
        stopped = context.generation
        raise BuildStoppedError(stopped.generation_id, state, stopped.advice("reindex resume"))


def _commit(writing: Connection, context: Context, done: int | None = None, total: int | None = None) -> None:
    """Commit, unless somebody stopped the build meanwhile, and say how much of the stage is done."""
    _refuse_stopped(writing, context)
    if done is not None:
        catalog.add_figures(writing, context.generation, {"done": done, "total": total})
    writing.commit()


def _note_begin(writing: Connection, context: Context, stage: str, done: int = 0) -> None:
    """When a stage was begun or resumed, and with how much of it done, for estimates."""
    at = queue.server_time(writing).timestamp()
    began = {"stage": stage, "at": at, "done": done}
    catalog.add_figures(writing, context.generation, {"began": began, "done": done, "total": None})
    _commit(writing, context)


def _note_done(engine: Engine, context: Context, done: int, total: int) -> None:
    """How much of a stage is done that is committed at its end only."""
    with engine.begin() as connection:
        catalog.add_figures(connection, context.generation, {"done": done, "total": total})


def _note_seconds(writing: Connection, context: Context, stage: str, seconds: float) -> None:
    """What a stage took, for estimates; one that was interrupted adds up."""
    figures = catalog.reread(writing, context.generation).figures.get("seconds", {})
    spent = {**figures, stage: round(figures.get(stage, 0.0) + seconds, 3)}
    catalog.add_figures(writing, context.generation, {"seconds": spent})
    writing.commit()


def _refresh(engine: Engine, context: Context, stage: str) -> None:
    """Give the planner and index-only scans what a stage has loaded."""
    loaded = {
        "sign": ["signature"],
        "bands": ["band"],
        "pairs": ["similar_pair"],
        "clusters": ["cluster_member"],
    }
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for parent in loaded[stage]:
            partitions.vacuum(connection, context.leaves, parent)
        if stage == "clusters":
            partitions.analyze_parents(connection)
