"""Slices of a build: how any number of threads and processes take ranges of documents, heads or buckets.

What a slice stores depends only on its range, so the result is the same for any number and order of takers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from itertools import chain
from threading import Event

import numpy as np

from nearsim_db.indexing import build_bands, build_plan, steps
from nearsim_db.indexing.band_keys import BandKeys
from nearsim_db.indexing.context import Context, Findings
from nearsim_db.similarity.arrays import Ints
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.signatures.bands import LastAnchors, Links
from nearsim_db.store.work.build_slices import Slice, SlicedStage

_CANDIDATES_PER_BATCH = 16_384
# A generation's figures contain all counts of the stage pairs, even if they are zero.
ZERO_COUNTS = dict.fromkeys(("linked", "candidates", "screened"), 0)
# For each thread. A run takes 16 MB if each link is the first of its pair.
_MIN_LINKS_PER_BLOCK = 250_000
_MIN_LINKS_PER_RUN = 500_000
_POLL_SECONDS = 0.05


class Taker:
    """Takes slices of a build, one at a time. `report` is called after each batch."""

    def __init__(
        self,
        reading: Connection,
        writing: Connection,
        context: Context,
        report: Callable[[], None],
        keys: BandKeys | None = None,
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._context = context
        self._report = report
        self._keys = keys

    def take(self, stage: SlicedStage) -> bool:
        """Do a slice that no other process works on; return False if there is none.

        Raises BuildStoppedError if the build was paused or abandoned.
        """
        tables = self._context.tables(self._writing)
        # This lock lets a purge delete from a stopped build only between slices. Take it before the slice, whose
        # transaction may be idle for a longer time.
        take_transaction_lock(self._writing, Lock.STORE, self._context.generation.generation_id, shared=True)
        part = tables.slices.take(stage)
        if part is None:
            self._writing.rollback()
            return False

        self._context.findings.clear()
        work = {"sign": self._sign, "bands": self.load_bands, "pairs": self.find_pairs}
        work[stage](part)
        self._reading.rollback()

        tables.slices.finish(stage, part, self._context.findings.counts)
        build_plan.commit(self._writing, self._context.generation)
        self._context.findings.clear()
        return True

    def _sign(self, part: Slice) -> None:
        context = self._context
        unsigned = documents.stream_unsigned(
            self._reading,
            context.collection_id,
            context.leaves,
            (part.low, part.high),
            self._reading.rollback,
            vectors=context.encoder.takes_vectors,
            by_age=part.by_age,
        )
        with closing(unsigned) as batches:
            for batch in batches:
                self.sign_documents(batch)
                self._check()

    def sign_documents(self, batch: Sequence[StoredDocument], *, keep_features: bool = False) -> None:
        """Sign documents that have no signature; `keep_features` if this process verifies their candidates next."""
        self._context.build.sample_texts(batch)
        rows = steps.sign_documents(self._context, batch, keep_features=keep_features)
        rows = steps.labelled(self._writing, self._context, rows)
        self._context.tables(self._writing).signatures.write(rows, rows.doc_ids)

    def load_bands(self, part: Slice) -> None:
        """Load the band rows of the heads of a slice."""
        build_bands.load_slice(self._reading, self._writing, self._context, part)

    def find_pairs(self, part: Slice, full: LastAnchors | None = None) -> None:
        """Verify the candidates whose first link is in the slice.

        `full` has the buckets over the limit; None if they are stored with the slices.
        """
        context, stale = self._context, set[int]()
        context.findings.counts.update(ZERO_COUNTS)
        tables, bands = context.tables(self._writing), context.tables(self._reading).bands
        with closing(bands.stream_links(context.bucket_limit, (part.low, part.high))) as links:
            for candidates in self._first_linked(links, full):
                verified = steps.verify_candidates(self._writing, context, candidates)
                tables.pairs.load(verified)
                stale |= context.findings.stale
                context.findings.stale.clear()
                self._check()

        # Documents whose text has changed are searched once they are signed again. Queue them in this transaction,
        # because only this process knows which they are.
        tables.work.add("search", sorted(stale))

    def _first_linked(self, links: Iterable[Links], full: LastAnchors | None) -> Iterator[Ints]:
        """Yield the pairs, (m, 2), whose first link is among the links of a slice.

        Pairs come in long runs, sorted by the first document of their bucket. So the pairs of a family of near-copies
        come together, and the sketches and texts of the family are read once for most of its pairs.
        """
        full = full or self._context.tables(self._writing).slices.read_full_buckets()
        run: list[Links] = []
        links_in_run = 0
        # The appended item only ends the last run.
        for block in chain(_joined(links, _MIN_LINKS_PER_BLOCK), [None]):
            if block is not None:
                if self._keys is None:
                    self._keys = BandKeys.load(self._writing, self._context)
                run.append(self._keys.first_links(self._context, block, full))
                links_in_run += len(block.buckets)
            if run and (block is None or links_in_run >= _MIN_LINKS_PER_RUN):
                pairs, run, links_in_run = _by_family(run), [], 0
                for at in range(0, len(pairs), _CANDIDATES_PER_BATCH):
                    yield pairs[at : at + _CANDIDATES_PER_BATCH]

    def _check(self) -> None:
        build_plan.check_not_stopped(self._writing, self._context.generation)
        self._report()


def _joined(blocks: Iterable[Links], min_links: int) -> Iterator[Links]:
    """Yield links in blocks of at least `min_links`; the last one may be smaller."""
    waiting: list[Links] = []
    for block in blocks:
        waiting.append(block)
        if sum(len(links.buckets) for links in waiting) >= min_links:
            yield Links.joined(waiting)
            waiting = []
    if waiting:
        yield Links.joined(waiting)


def _by_family(run: Sequence[Links]) -> Ints:
    """Return the pairs of some links, sorted by the first document of their bucket."""
    links = Links.joined(run)
    order = np.lexsort((links.right, links.left, links.first))
    return np.stack((links.left[order], links.right[order]), axis=1)


def take_slices(
    engine: Engine,
    context: Context,
    stage: SlicedStage,
    report: Callable[[], None],
    keys: BandKeys | None = None,
) -> int:
    """Take slices of a stage in all threads until none is left; return how many were done.

    `keys` are the band keys, if they have been read. The calling thread calls `report` after each of its batches and
    while it waits for the other threads; an error that `report` raises ends the other threads too. Raises
    BuildStoppedError if the build was paused or abandoned.
    """
    is_stopped = Event()

    def take(check: Callable[[], None]) -> int:
        taken = 0
        with engine.connect() as reading, engine.connect() as writing:
            # Each thread has its own transactions and therefore its own findings.
            taker = Taker(reading, writing, replace(context, findings=Findings()), check, keys)
            while taker.take(stage):
                taken += 1
        return taken

    def check_stopped() -> None:
        if is_stopped.is_set():
            raise _SliceInterrupted

    def report_and_check() -> None:
        # An error in another thread ends this thread too.
        for thread in threads:
            if thread.done():
                thread.result()
        report()

    with ThreadPoolExecutor(max(1, context.threads - 1), thread_name_prefix="nearsim-slices") as pool:
        threads = [pool.submit(take, check_stopped) for _ in range(context.threads - 1)]
        try:
            taken = take(report_and_check)
            while wait(threads, _POLL_SECONDS).not_done:
                report_and_check()
            return taken + sum(thread.result() for thread in threads)
        except BaseException:
            is_stopped.set()
            raise


class _SliceInterrupted(Exception):
    """Ends a thread because another one has failed or was interrupted."""
