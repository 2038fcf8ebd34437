"""The slices of a build, which any number of threads and processes take: documents, heads, buckets to search for pairs.

What a slice stores depends on nothing but its range, so the result is the same for any number and order of takers.
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
from nearsim_db.store.signatures.bands import FullBuckets, Links
from nearsim_db.store.work.build_slices import Slice, SlicedStage

_CANDIDATES_PER_BATCH = 16_384
NOTHING_FOUND = dict.fromkeys(("linked", "candidates", "screened"), 0)  # the counts of pairs
_LINKS_AT_ONCE, _LINKS_PER_RUN = 250_000, 500_000  # in each thread; 16 MB, if each is the first of its pair


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
        # A purge deletes from a stopped build only between slices. This comes first because the slice may idle longer.
        take_transaction_lock(self._writing, Lock.STORE, self._context.generation.generation_id, shared=True)
        part = tables.slices.take(stage)
        if part is None:
            self._writing.rollback()
            return False
        self._context.found.clear()
        work = {"sign": self._sign, "bands": self.load_bands, "pairs": self.find_pairs}
        work[stage](part)
        self._reading.rollback()
        tables.slices.finish(stage, part, self._context.found.counts)
        build_plan.commit(self._writing, self._context.generation)
        self._context.found.clear()
        return True

    def _sign(self, part: Slice) -> None:
        context = self._context
        with closing(
            documents.stream_unsigned(
                self._reading,
                context.collection_id,
                context.leaves,
                (part.low, part.high),
                self._reading.rollback,
                vectors=context.encoder.takes_vectors,
                by_age=part.by_age,
            )
        ) as batches:
            for batch in batches:
                self.sign_documents(batch)
                self._check()

    def sign_documents(self, batch: Sequence[StoredDocument], *, keep_features: bool = False) -> None:
        """Sign documents that have no signature, with `keep_features` those that this process verifies next."""
        self._context.build.sample_texts(batch)
        rows = steps.sign_documents(self._context, batch, keep_features=keep_features)
        rows = steps.labelled(self._writing, self._context, rows)
        self._context.tables(self._writing).signatures.write(rows, rows.doc_ids)

    def load_bands(self, part: Slice) -> None:
        """Load the band rows of the heads of a slice."""
        build_bands.load_slice(self._reading, self._writing, self._context, part)

    def find_pairs(self, part: Slice, full: FullBuckets | None = None) -> None:
        """Verify the candidates whose first link is in the slice; other slices have the rest.

        `full` are the buckets over the limit, if they are not stored with slices.
        """
        context, stale = self._context, set[int]()
        context.found.counts.update(NOTHING_FOUND)
        tables = context.tables(self._writing)
        with closing(
            context.tables(self._reading).bands.stream_links(context.bucket_limit, (part.low, part.high))
        ) as links:
            for candidates in self._first_linked(links, full):
                verified = steps.verify_candidates(self._writing, context, candidates)
                tables.pairs.load(verified)
                stale |= context.found.stale
                context.found.stale.clear()
                self._check()
        # Documents whose text was being changed are searched once signed again. They are queued with the slice because
        # only this process knows of them.
        tables.work.add("search", sorted(stale))

    def _first_linked(self, links: Iterable[Links], full: FullBuckets | None) -> Iterator[Ints]:
        """Yield the pairs, (m, 2), of those links of a slice that are the first of theirs.

        They come in long runs sorted by the first document of their bucket: those of a family of copies together, so
        that its sketches and texts are read once for most of its pairs.
        """
        full = full or self._context.tables(self._writing).slices.read_full_buckets()
        run: list[Links] = []
        amount = 0
        for block in chain(_joined(links, _LINKS_AT_ONCE), [None]):
            if block is not None:
                run.append(self._band_keys().first_links(self._context, block, full))
                amount += len(block.buckets)
            if run and (block is None or amount >= _LINKS_PER_RUN):
                found, run, amount = _by_family(run), [], 0
                yield from (
                    found[at : at + _CANDIDATES_PER_BATCH]
                    for at in range(0, len(found), _CANDIDATES_PER_BATCH)
                )

    def _band_keys(self) -> BandKeys:
        if self._keys is None:
            self._keys = BandKeys.load(self._writing, self._context)
        return self._keys

    def _check(self) -> None:
        build_plan.check_not_stopped(self._writing, self._context.generation)
        self._report()


def _joined(blocks: Iterable[Links], least: int) -> Iterator[Links]:
    """Yield links in blocks of at least so many, the last of what is left."""
    run: list[Links] = []
    for block in blocks:
        run.append(block)
        if sum(len(one.buckets) for one in run) >= least:
            yield Links.joined(run)
            run = []
    if run:
        yield Links.joined(run)


def _by_family(run: Sequence[Links]) -> Ints:
    """Return the pairs of some links, sorted by the first document of their bucket."""
    links = Links.joined(run)
    order = np.lexsort((links.right, links.left, links.first))
    return np.stack((links.left[order], links.right[order]), axis=1)


_POLL_SECONDS = 0.05


def take_slices(
    engine: Engine,
    context: Context,
    stage: SlicedStage,
    report: Callable[[], None],
    keys: BandKeys | None = None,
) -> int:
    """Take slices of a stage in all threads until none is left; return how many were done.

    `keys` are the band keys, if they were read. `report` is called by the calling thread, after each of its batches and
    while it waits for the others; an error that it raises ends them, too. Raises BuildStoppedError if the build was
    paused or abandoned.
    """
    is_stopped = Event()

    def take(check: Callable[[], None]) -> int:
        taken = 0
        with engine.connect() as reading, engine.connect() as writing:
            # What a transaction counts and finds belongs to its thread.
            taker = Taker(reading, writing, replace(context, found=Findings()), check, keys)
            while taker.take(stage):
                taken += 1
        return taken

    def check_stopped() -> None:
        if is_stopped.is_set():
            raise _Stopped

    def report_and_check() -> None:
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


class _Stopped(Exception):
    """Another thread has failed or was interrupted."""
