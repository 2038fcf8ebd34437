"""Signing of documents that were just written: while the next ones are read, in this process or in a helper.

A document is signed once it is committed, in every first generation whose build has not gone past its stage sign. The
build signs what is missing then: documents of other writers, updated ones, those written before a kill. What was
changed or deleted since it was signed is captured like any write, and indexed again after the build. The features are
spooled for the verification of the build, which then reads no text of these documents.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import FeatureSpool
from nearsim_db.indexing.helper_process import (
    BeginSigning,
    Finished,
    FinishSigning,
    HelperKilledError,
    HelperProcess,
    SignDocuments,
    Signed,
)
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.generations import generation_states, partitions
from nearsim_db.store.signatures import signatures


class LocalSigner:
    """Signs in this process, for any number of generations; used by one thread at a time, and never ended."""

    is_ended = False

    def __init__(self, engine: Engine, contexts: Sequence[Context]) -> None:
        self._engine = engine
        self._contexts = contexts

    def sign(self, batch: SignDocuments) -> None:
        """Sign a batch and commit its signatures."""
        with self._engine.connect() as connection:
            for context in self._contexts:
                sign_new(connection, context, batch)


class HelperSigner:
    """Has a helper process sign, for one generation; `number` is the part of the spool that it writes.

    Used by one thread at a time. `is_ended`: it takes no further batches.
    """

    def __init__(self, helper: HelperProcess, context: Context, number: int) -> None:
        self._helper = helper
        self._context = context
        self._unanswered = 0
        self.is_ended: bool = False
        self._send(
            BeginSigning(None if context.build.spool is None else context.build.spool.place_for(number))
        )

    def wait(self) -> None:
        """Wait until the helper has started, and has signed all that it was given."""
        with self._surviving():
            self._await(0)

    def sign(self, batch: SignDocuments) -> None:
        """Send a batch, and wait for the one before it.

        If the helper was killed, the build signs what it had.
        """
        self._send(batch)
        with self._surviving():
            self._await(1)

    def finish(self) -> None:
        """Add what was signed to the context. May be called again."""
        with self._surviving():
            self._await(0)
            if not self.is_ended:
                self._helper.send(FinishSigning())
                self._add(self._helper.receive(Finished))

    def _send(self, request: BeginSigning | SignDocuments) -> None:
        self._helper.send(request)
        self._unanswered += 1

    def _await(self, most: int) -> None:
        while not self.is_ended and self._unanswered > most:
            answer = self._helper.receive(Signed)
            self._unanswered -= 1
            if self._context.build.spool is not None and not answer.is_spooling:
                self._context.build.spool.stop_features()

    def _add(self, finished: Finished) -> None:
        self.is_ended = True
        context = self._context
        context.build.signed_early += finished.signed
        context.build.texts.merge(finished.texts)

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Go on without the helper if it was killed."""
        try:
            yield
        except HelperKilledError as error:
            self.is_ended = True
            self._context.build.helpers.remove(self._helper)
            self._context.warn(f"a process that signed documents {error}; the build signs those that it had")


def sign_new(connection: Connection, context: Context, batch: SignDocuments) -> None:
    """Sign a batch for a generation and commit; if its build has gone past the stage sign, only spool the features."""
    documents = batch.documents()
    rows = steps.sign_documents(context, documents)
    if generation_states.lock_signing(connection, context.generation):
        context.build.sample_texts(documents)
        signatures.write_signatures(connection, context.leaves, rows, rows.doc_ids)
        context.build.signed_early += len(documents)
    connection.commit()


_BATCHES_WAITING = 2  # for each process

StartHelpers = Callable[[Context], Sequence[HelperProcess]]


class EarlySigning:
    """Signs documents beside the thread that adds them, in generations that this process may build.

    The caller holds the build lock of their collection. Use it in a `with` block, after which all that was added is
    signed; errors of signing are raised by `add` and at the end of the block. If there is one generation, the processes
    that `start_helpers` returns sign too.
    """

    def __init__(
        self,
        engine: Engine,
        contexts: Sequence[Context],
        *,
        was_empty: bool = False,
        start_helpers: StartHelpers = lambda context: (),
    ) -> None:
        self._engine = engine
        self._was_empty = was_empty
        self._contexts = list(contexts)
        self._start_helpers = start_helpers
        self._helpers: list[HelperSigner] = []
        self._free: SimpleQueue[LocalSigner | HelperSigner] = SimpleQueue()
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        for context in self._contexts:
            with self._engine.begin() as connection:
                partitions.create(connection, context.leaves)
            context.build.spool = FeatureSpool.create(context.encoder)
        if len(self._contexts) == 1:
            (context,) = self._contexts
            context.build.helpers = list(self._start_helpers(context))
            self._helpers = [
                HelperSigner(one, context, at) for at, one in enumerate(context.build.helpers, 1)
            ]
        self._free.put(LocalSigner(self._engine, self._contexts))
        self._threads = ThreadPoolExecutor(1 + len(self._helpers), thread_name_prefix="nearsim-sign")
        self._starting = [self._threads.submit(self._start, one) for one in self._helpers]
        return self

    def finish(self, inserted: int) -> None:
        """Wait until all that was added is signed; `inserted` documents were written in the block.

        If the collection was empty and all of them are signed, the build need not look for others: what other sessions
        wrote meanwhile was captured.
        """
        self._complete()
        for context in self._contexts:
            context.build.is_signed = self._was_empty and context.build.signed_early == inserted

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown()
        try:
            self._complete()
        except BaseException as failure:
            # What was spooled is incomplete: the build signs these documents again.
            for context in self._contexts:
                context.build.close()
            # An error of the block is the one to be raised.
            if error is None or not isinstance(failure, Exception):
                raise

    def _complete(self) -> None:
        """Wait until all is signed, and complete the contexts. May be called again."""
        for one in [*self._starting, *self._pending]:
            one.result()
        self._pending.clear()
        for helper in self._helpers:
            helper.finish()
        for context in self._contexts:
            context.build.finish_spool()

    @property
    def contexts(self) -> Sequence[Context]:
        """The contexts of the generations, with the features that were cached."""
        return self._contexts

    def add(self, batch: SignDocuments) -> None:
        """Sign new, committed documents; waits while too many are in memory."""
        if self._contexts:
            while len(self._pending) >= (1 + len(self._helpers)) * _BATCHES_WAITING:
                self._pending.popleft().result()
            self._pending.append(self._threads.submit(self._sign, batch))

    def _sign(self, batch: SignDocuments) -> None:
        """Have the first signer that is free sign a batch."""
        signer = self._free.get()
        try:
            signer.sign(batch)
        finally:
            if not signer.is_ended:
                self._free.put(signer)

    def _start(self, helper: HelperSigner) -> None:
        helper.wait()
        if not helper.is_ended:
            self._free.put(helper)


def is_suitable(context: Context) -> bool:
    """Whether a generation's documents can be signed before its build: all of them, from their texts alone."""
    return (
        not context.encoder.profile.recipe.match.ignore_common
        and not context.encoder.freezes
        and context.generation.stage == "sign"
        and context.retained_seconds is None
        and not context.encoder.takes_vectors
        and context.encoder.across is None
    )
