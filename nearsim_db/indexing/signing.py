"""Signing documents that were just written, in this process or in a helper."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.helper_process import (
    BeginSigning,
    Finished,
    FinishSigning,
    HelperKilledError,
    HelperProcess,
    SignDocuments,
    Signed,
)
from nearsim_db.store import generations, signatures
from nearsim_db.store.driver import Connection, Engine


class Signer(Protocol):
    """Signs batches of new documents; used by one thread at a time."""

    @property
    def is_ended(self) -> bool:
        """Whether it takes no further batches."""

    def sign(self, batch: SignDocuments) -> None:
        """Sign a batch, at once or soon."""


class LocalSigner:
    """Signs in this process, for any number of generations."""

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
    """Has a helper process sign, for one generation; `number` is the part of the spool that it writes."""

    def __init__(self, helper: HelperProcess, context: Context, number: int) -> None:
        self._helper = helper
        self._context = context
        self._unanswered = 0
        self.is_ended = False
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
                self._context.build.spool.stop()

    def _add(self, finished: Finished) -> None:
        self.is_ended = True
        context = self._context
        context.build.signed_early += finished.signed
        context.build.texts.merge(finished.texts)
        if context.build.spool is not None and finished.spool is not None:
            context.build.spool.merge(finished.spool)

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
    if generations.lock_signing(connection, context.generation):
        context.build.sample_texts(documents)
        signatures.write_signatures(connection, context.leaves, rows, rows.doc_ids)
        context.build.signed_early += len(documents)
    connection.commit()
