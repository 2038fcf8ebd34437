"""Signing of documents that were just written, in threads, while the next ones are read and written.

A document is signed once it is committed, in every first generation whose build has not gone past its stage sign. The
build signs what is missing then: documents of other writers, updated ones, those written before a kill. What was
changed or deleted since it was signed is captured like any write, and indexed again after the build. The features are
spooled for the verification of the build, which then reads no text of these documents.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import FeatureSpool
from nearsim_db.records import DocId
from nearsim_db.similarity.arrays import Ints
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Engine
from nearsim_db.store.generations import generation_states, partitions

_SIGNING_THREADS = 2  # one encodes, in the threads of the context, while the other writes
_BATCHES_WAITING = 4


@dataclass(frozen=True, slots=True)
class NewDocuments:
    """A batch of new, committed documents.

    doc_ids and revisions are int64 of n, ascending, titles and bodies n texts.
    """

    doc_ids: Ints
    revisions: Ints
    titles: Sequence[str | None]
    bodies: Sequence[str | None]

    def stored(self) -> list[StoredDocument]:
        """Return the documents as the index would read them back."""
        doc_ids = map(DocId, self.doc_ids.tolist())
        return list(map(StoredDocument, doc_ids, self.revisions.tolist(), self.titles, self.bodies))


class EarlySigning:
    """Signs documents beside the thread that adds them, in generations that this process may build.

    The caller holds the build lock of their collection. Use it in a `with` block, after which all that was added is
    signed; errors of signing are raised by `add` and at the end of the block.
    """

    def __init__(self, engine: Engine, contexts: Sequence[Context], *, was_empty: bool = False) -> None:
        self._engine = engine
        self._was_empty = was_empty
        self._contexts = list(contexts)
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        for context in self._contexts:
            with self._engine.begin() as connection:
                partitions.create(connection, context.leaves)
            context.build.spool = FeatureSpool.create(context.encoder)
        self._threads = ThreadPoolExecutor(_SIGNING_THREADS, thread_name_prefix="nearsim-sign")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown()
        try:
            self._complete()
        except BaseException as failure:
            # What was spooled is incomplete: the build signs these documents again.
            for context in self._contexts:
                context.build.close_spool()
            # An error of the block is the one to be raised.
            if error is None or not isinstance(failure, Exception):
                raise

    @property
    def contexts(self) -> Sequence[Context]:
        """The contexts of the generations, with the features that were kept."""
        return self._contexts

    def add(self, batch: NewDocuments) -> None:
        """Sign new documents; waits while too many are in memory."""
        if self._contexts:
            while len(self._pending) >= _BATCHES_WAITING:
                self._pending.popleft().result()
            self._pending.append(self._threads.submit(self._sign, batch))

    def finish(self, inserted: int) -> None:
        """Wait until all that was added is signed; `inserted` documents were written in the block.

        If the collection was empty and all of them are signed, the build need not look for others: what other sessions
        wrote meanwhile was captured.
        """
        self._complete()
        for context in self._contexts:
            context.build.is_signed = self._was_empty and context.build.signed_early == inserted

    def _complete(self) -> None:
        """Wait until all is signed, and complete the spools. May be called again."""
        while self._pending:
            self._pending.popleft().result()
        for context in self._contexts:
            context.build.finish_spool()

    def _sign(self, batch: NewDocuments) -> None:
        """Sign a batch; if the build has gone past the stage sign, only spool the features."""
        documents = batch.stored()
        for context in self._contexts:
            rows = steps.sign_documents(context, documents)
            with self._engine.connect() as connection:
                if generation_states.lock_signing(connection, context.generation):
                    context.build.sample_texts(documents)
                    context.tables(connection).signatures.write(rows, rows.doc_ids)
                    context.build.count_signed_early(len(documents))
                connection.commit()


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
