"""Early signing: sign new documents from memory while the next ones are read.

A document is signed once it is committed, in every first generation whose build has not gone past its stage sign. The
build signs what is missing then: documents of other writers, updated ones, those written before a kill. What was
changed or deleted since it was signed is captured like any write, and indexed again after the build. The features are
spooled for the verification of the build, which then reads no text of these documents.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import FeatureSpool
from nearsim_db.store import generations, partitions, signatures
from nearsim_db.store.documents import StoredDocument
from nearsim_db.store.driver import Connection, Engine

_BATCHES_WAITING = 2


class EarlySigning:
    """Signs documents in a thread of its own, in generations that this process may build. Use it in a `with` block.

    The caller holds the build lock of their collection. After the block all that was added is signed; errors of signing
    are raised by `add` and at the end of the block.
    """

    def __init__(self, engine: Engine, contexts: Sequence[Context], *, was_empty: bool = False) -> None:
        self._engine = engine
        self._was_empty = was_empty
        self._contexts = list(contexts)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nearsim-sign")
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        for context in self._contexts:
            with self._engine.begin() as connection:
                partitions.create(connection, context.leaves, temporary=context.generation.temporary)
            context.spool = FeatureSpool.create(context.encoder)
        return self

    def finish(self, inserted: int) -> None:
        """Wait until all that was added is signed; `inserted` documents were written in the block.

        If the collection was empty and all of them are signed, the build need not look for others: what other sessions
        wrote meanwhile was captured.
        """
        while self._pending:
            self._pending.popleft().result()
        for context in self._contexts:
            context.is_signed = self._was_empty and context.signed_early == inserted

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
        for context in self._contexts:
            if context.spool is not None:
                context.spool.finish()
        while self._pending and error is None:
            self._pending.popleft().result()

    @property
    def contexts(self) -> Sequence[Context]:
        """The contexts of the generations, with the features that were cached."""
        return self._contexts

    @property
    def needs_texts(self) -> bool:
        """Whether texts have to be stored: those of a temporary index need not while their features are spooled."""
        return not self._contexts or not all(one.replaces_texts for one in self._contexts)

    def add(self, batch: Sequence[StoredDocument], *, with_texts: bool) -> None:
        """Sign new, committed documents; waits until at most _BATCHES_WAITING batches are in memory."""
        if self._contexts:
            while len(self._pending) >= _BATCHES_WAITING:
                self._pending.popleft().result()
            self._pending.append(self._thread.submit(self._sign, batch, with_texts=with_texts))

    def _sign(self, batch: Sequence[StoredDocument], *, with_texts: bool) -> None:
        with self._engine.connect() as connection:
            for context in self._contexts:
                _sign_in(connection, context, batch, with_texts=with_texts)


def is_suitable(context: Context) -> bool:
    """Whether a generation's documents can be signed before its build: all of them, from their texts."""
    return (
        context.generation.stage == "sign"
        and context.retained_seconds is None
        and not context.encoder.takes_vectors
    )


def _sign_in(
    connection: Connection, context: Context, batch: Sequence[StoredDocument], *, with_texts: bool
) -> None:
    rows = steps.sign_documents(context, batch, must_spool=not with_texts)
    if not with_texts:
        context.heads.add(
            rows.digests, lambda row: context.encoder.text_of(batch[row].title, batch[row].body)
        )
    if generations.lock_signing(connection, context.generation):
        context.sample_texts(batch)
        signatures.write_signatures(connection, context.leaves, rows, rows.doc_ids)
        context.signed_early += len(batch)
    connection.commit()
