"""The bulk build of a generation, in stages. A build that was killed continues at its stage when it is run again.

- sign: sign the documents that have no signature.
- bands: compute the band keys of all heads, and load and index their band rows.
- pairs: find the links between heads that share buckets, and verify candidates by their features.
- clusters: form clusters from the pairs. From then on the index answers queries.

A small build goes through all stages in one transaction. Otherwise one process leads the build. The stages sign and
pairs, and bands on a Citus cluster, are divided into slices, which all threads of this process and any other processes
take (`slice_taker.py`). Pausing or abandoning the generation stops all of them, because each of their transactions
checks the generation's state before it commits.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any

from nearsim_db.indexing import build_bands, build_plan, steps
from nearsim_db.indexing.band_keys import BandKeys
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.queue.dispatch import discard_indexed
from nearsim_db.indexing.slice_taker import ZERO_COUNTS, Taker, take_slices
from nearsim_db.records import Progress
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import attachments
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.generations import generation_rows, generation_states, partitions
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.work import build_slices, queue
from nearsim_db.store.work.build_slices import SlicedStage

# Up to this number of documents, slices and their progress would cost more than the build itself.
MAX_SMALL_BUILD_DOCUMENTS = 8
# The lengths of attached texts are known before they are read, so a small build may have as many as fit in memory. An
# attached table may have thousands of collections, each of which is worth building in one transaction.
MAX_SMALL_BUILD_ATTACHED_DOCUMENTS = 4_000
_MAX_SMALL_BUILD_ATTACHED_CHARACTERS = 4_000_000
_POLL_SECONDS = 0.05
_PROGRESS_STEPS: dict[SlicedStage, str] = {"sign": "sign", "bands": "bands", "pairs": "candidates"}


def build(engine: Engine, context: Context, progress: Progress) -> None:
    """Build a generation from all documents of its collection; other processes may take slices of the build.

    Afterwards the first generation of a profile is live, and any other generation catches up. Raises BuildStoppedError
    if the generation was paused or abandoned.
    """
    try:
        with engine.connect() as connection:
            is_small = fits_one_transaction(connection, context)
            documents_built = _build_at_once(connection, context) if is_small else 0
        if not is_small:
            _build_by_stages(engine, context, progress)
        elif documents_built > MAX_SMALL_BUILD_DOCUMENTS:
            with engine.connect(autocommit=True) as connection:
                context.tables(connection).vacuum_grown(context.leaves.shared)
                partitions.analyze_if_stale(connection)
    finally:
        context.build.close_spool()

    # Writing the documents captured them as changes, and the build has indexed them since.
    discard_indexed(engine, context.generation)


def _build_by_stages(engine: Engine, context: Context, progress: Progress) -> None:
    """Build a generation from the stage at which it stopped, with a transaction for each slice."""
    with engine.connect() as connection:
        generation = generation_rows.reread(connection, context.generation)
    context.adopt(generation)

    leader = _Leader(engine, context, progress)
    stages: dict[str, Callable[[], None]] = {
        "sign": leader.sign,
        "bands": leader.load_bands,
        "pairs": leader.find_pairs,
        "clusters": leader.cluster,
    }
    with engine.connect(autocommit=True) as connection:
        partitions.analyze_refilled(connection)

    names = [*stages, "done"]
    for name in names[names.index(generation.stage) : -1]:
        with _timed(engine, context, name):
            stages[name]()
            _vacuum(engine, context, name)


def join(engine: Engine, context: Context, between: Callable[[], None]) -> int:
    """Take slices of a build that another process leads, until none is left in its stage; return how many were done.

    `between` is called after each batch. Raises BuildStoppedError if the build was paused or abandoned.
    """
    with engine.connect() as connection:
        stage = generation_rows.reread(connection, context.generation).stage
        if stage not in _PROGRESS_STEPS or not context.tables(connection).slices.read_progress(stage).slices:
            return 0
        # The shingles to leave out were stored with the slices.
        context.adopt(generation_rows.reread(connection, context.generation))

    return take_slices(engine, context, stage, between)


class _Leader:
    """Leads a build in this process: plans each stage, takes slices until all are done, and completes the stage."""

    def __init__(self, engine: Engine, context: Context, progress: Progress) -> None:
        self._engine = engine
        self._context = context
        self._progress = progress
        self._keys: BandKeys | None = None

    def sign(self) -> None:
        """Sign all documents that have no signature."""
        self._context.build.open_spool(self._context.encoder)
        with self._engine.connect() as connection:
            build_plan.plan_signing(connection, self._context)
            self._complete("sign", connection)
            self._context.build.finish_spool()
            self._report_whole("signatures")
            build_plan.complete_signing(connection, self._context)

    def load_bands(self) -> None:
        """Load and index the band rows of all heads."""
        if not self._context.leaves.distributed:
            self._keys = build_bands.load(self._engine, self._context, self._progress)
            return
        with self._engine.connect() as connection:
            build_bands.plan(connection, self._context)
            self._complete("bands", connection)
            self._report_whole("band_index")
            build_bands.complete(connection, self._context)

    def find_pairs(self) -> None:
        """Verify the candidates of all buckets."""
        with self._engine.connect() as connection:
            build_plan.plan_pairs(connection, self._context)
            if self._keys is None:
                self._keys = BandKeys.load(connection, self._context)
            self._complete("pairs", connection)

            self._report_whole("pairs")
            figures = self._context.tables(connection).slices.sum_counts("pairs")
            generation_rows.add_figures(connection, self._context.generation, figures)
            generation_rows.set_stage(connection, self._context.generation, "clusters")
            build_plan.commit(connection, self._context.generation)

    def cluster(self) -> None:
        """Form clusters from the pairs; from then on the generation is live, or catches up."""
        generation = self._context.generation
        # Free the memory and the disk space of keys and features, which are not needed any more.
        self._keys = None
        self._context.build.close_spool()

        self._report_whole("clusters")
        with self._engine.connect() as connection:
            steps.rebuild_clusters(connection, self._context)
            tables = generation.tables(connection)
            tables.attach()
            tables.slices.delete()
            _finish(connection, generation, {})

    def _report_whole(self, step: str) -> None:
        """Report that a step begins which handles all documents at once."""
        self._progress(step, 0, self._documents)

    @cached_property
    def _documents(self) -> int:
        with self._engine.connect() as connection:
            return collection_rows.count_documents(connection, self._context.generation.collection_id)

    def _complete(self, stage: SlicedStage, connection: Connection) -> None:
        """Take slices until this and other processes have done all of them."""
        while self._count_unfinished(stage):
            if not take_slices(self._engine, self._context, stage, lambda: self._report(stage), self._keys):
                # Other processes are still working on the last slices.
                build_plan.check_not_stopped(connection, self._context.generation)
                connection.rollback()
                time.sleep(_POLL_SECONDS)

    def _report(self, stage: SlicedStage) -> None:
        self._count_unfinished(stage)

    def _count_unfinished(self, stage: SlicedStage) -> int:
        """Report the progress of all processes; return how many slices are not done."""
        with self._engine.connect() as connection:
            slices = self._context.tables(connection).slices.read_progress(stage)
        self._progress(_PROGRESS_STEPS[stage], slices.done, slices.documents)
        return slices.unfinished


def fits_one_transaction(connection: Connection, context: Context) -> bool:
    """Whether a build has not begun yet, and is small enough for one transaction.

    Takes the lock that keeps a purge out of the generation during such a build.
    """
    collection_id, generation_id = context.collection_id, context.generation.generation_id
    take_transaction_lock(connection, Lock.STORE, generation_id, shared=True, idle_minutes=5)

    generation = generation_rows.reread(connection, context.generation)
    if not generation.is_first_build or generation.stage != "sign" or "began" in generation.figures:
        return False
    if generation.leaves.distributed or not generation.leaves.are_shared:
        return False

    # A retention age and frozen weights require a count over the whole collection before documents are signed.
    if context.retained_seconds is not None or context.encoder.freezes:
        return False
    if attachments.find_attachment(connection, collection_id) is not None:
        size = attachments.measure_texts(connection, collection_id, MAX_SMALL_BUILD_ATTACHED_DOCUMENTS + 1)
        return (
            size.documents <= MAX_SMALL_BUILD_ATTACHED_DOCUMENTS
            and size.characters <= _MAX_SMALL_BUILD_ATTACHED_CHARACTERS
        )

    count = collection_rows.count_documents(connection, collection_id, MAX_SMALL_BUILD_DOCUMENTS + 1)
    return count <= MAX_SMALL_BUILD_DOCUMENTS


def _build_at_once(connection: Connection, context: Context) -> int:
    """Build a small index in one transaction, in which each stage is one slice; return the number of documents.

    An interrupted build leaves nothing behind.
    """
    tables, taker = context.tables(connection), Taker(connection, connection, context, lambda: None)
    context.findings.clear()

    # Sign.
    whole = (0, build_slices.WHOLE_RANGE.high)
    unsigned = documents.stream_unsigned(
        connection, context.collection_id, context.leaves, whole, vectors=context.encoder.takes_vectors
    )
    # The same session reads and writes, so it has to read all documents before it writes a signature.
    batches = list(unsigned)
    for batch in batches:
        taker.sign_documents(batch, keep_features=True)
    build_plan.warn_of_texts(context)
    tables.signatures.index()

    # Load the bands.
    figures = build_bands.forecast(connection, context, list(chain.from_iterable(batches)))
    taker.load_bands(build_slices.WHOLE_RANGE)
    full, buckets = tables.bands.find_full_buckets(context.bucket_limit)

    count = collection_rows.count_documents(connection, context.collection_id)
    is_attached = attachments.find_attachment(connection, context.collection_id) is not None
    if is_attached and sum(map(len, batches)) < count:
        # Texts that differ from their recorded revision were left out; a worker compares them again.
        tables.work.add("compare", [queue.WHOLE_GENERATION])

    # Find the pairs, and form clusters.
    if count > 1:
        taker.find_pairs(build_slices.WHOLE_RANGE, full)
        steps.rebuild_clusters(connection, context)
    context.findings.counts.update(ZERO_COUNTS)

    figures |= build_plan.dated(connection, context, buckets)
    _finish(connection, context.generation, {**figures, **context.findings.counts, "documents": count})
    context.findings.clear()
    return count


def _finish(connection: Connection, generation: Generation, figures: dict[str, Any]) -> None:
    """End a build, add figures to its generation, and commit."""
    # `finish_build` does nothing if the build is paused. The build may be resumed before the check, so try again then.
    while not generation_states.finish_build(connection, generation, figures):
        build_plan.check_not_stopped(connection, generation)
    connection.commit()


@contextmanager
def _timed(engine: Engine, context: Context, stage: str) -> Iterator[None]:
    """Record when a stage began and how long it took."""
    with engine.connect() as connection:
        began = time.monotonic()
        build_plan.begin(connection, context.generation, stage)
        yield
        build_plan.add_seconds(connection, context.generation, stage, time.monotonic() - began)


def _vacuum(engine: Engine, context: Context, stage: str) -> None:
    """Vacuum and analyze the table that a stage has loaded, for the planner and for index-only scans."""
    loaded = {"sign": "signature", "pairs": "similar_pair", "clusters": "cluster_member"}
    # If the generation has its own band table, its rows were loaded frozen, and the table was analyzed.
    if context.leaves.are_shared:
        loaded["bands"] = "band"
    with engine.connect(autocommit=True) as connection:
        if stage in loaded:
            context.tables(connection).vacuum(loaded[stage])
        if stage == "clusters":
            partitions.analyze_if_stale(connection)
