"""Documents added one by one, each after it was looked up, so that of near-copies added at once one is the first.

Locks, always in this order: the stripes of a document's band keys, ascending; its row of `document`, one only; then
what `steps.store` takes. Who holds a row of `document` or one of store's locks never waits for a stripe, so there is no
cycle through them. Two documents that are candidates share a bucket, hence a stripe: the second looks up after the
first's band rows are committed.
"""

from collections.abc import Iterable
from functools import partial

from sqlalchemy import Connection

from nearsim_db import steps
from nearsim_db.database import Database
from nearsim_db.errors import DuplicateError
from nearsim_db.ingest import Ingest
from nearsim_db.lookup import Lookups, Serving, encode, look_up, others
from nearsim_db.progress import Progress
from nearsim_db.readers import RejectWriter
from nearsim_db.records import CollectionId, Document, Duplicate, Match, OnDuplicate, ReadDocument, Reject
from nearsim_db.store import documents, lookups
from nearsim_db.store.documents import Outcome
from nearsim_db.store.engine import again_after_conflicts, is_missing_table


class Guard(Ingest):
    """Writes what readers yield, a transaction for each document, and decides on those that have near-duplicates.

    "flag" adds them all the same, "skip" leaves them out, "raise" ends with DuplicateError; what came before stays. To
    the last two, what is stored already exactly as it is given is unchanged, whatever else is like it.
    """

    def __init__(
        self,
        database: Database,
        collection_id: CollectionId,
        rejects: RejectWriter,
        lookups: Lookups,
        on_duplicate: OnDuplicate,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(database, collection_id, rejects, strict=strict)
        self._lookups = lookups
        self._on_duplicate = on_duplicate

    def write(self, records: Iterable[ReadDocument | Reject], progress: Progress) -> None:
        """Look up and write all records, one after the other; those that cannot be are rejects.

        Raises DuplicateError, and InputError as an ingest does.
        """
        with self._database.engine.connect() as connection:
            for record in records:
                self.summary.read += 1
                if isinstance(record, Reject):
                    self._reject(record)
                else:
                    self._take_in(connection, record)
                progress("read", self.summary.read, None)

    def _take_in(self, connection: Connection, record: ReadDocument) -> None:
        matches, outcome = again_after_conflicts(connection, partial(self._add, connection, record.document))
        if matches:
            self.summary.duplicates.append(Duplicate(record.document.external_id, tuple(matches)))
        if outcome is None:
            self.summary.skipped += 1
            if self._on_duplicate == "raise":
                raise DuplicateError(record.document.external_id, matches)
            return
        self.summary.inserted += outcome == "inserted"
        self.summary.updated += outcome == "updated"
        self.summary.unchanged += outcome == "unchanged"
        self.summary.replaced_characters += record.replaced

    def _add(self, connection: Connection, document: Document) -> tuple[list[Match], Outcome | None]:
        """One transaction: the document's duplicates, and what became of it, None if it was left out."""
        serving, matches = self._find(connection, document)
        if matches and self._on_duplicate != "flag":
            is_stored = documents.is_stored(connection, self._collection_id, document)
            connection.rollback()
            return ([], "unchanged") if is_stored else (matches, None)
        doc_id, outcome = documents.upsert_document(connection, self._collection_id, document)
        context = serving.context
        age = context.encoder.profile.recipe.retain.seconds
        stored = [
            one
            for batch in documents.stream_documents(
                connection, self._collection_id, [doc_id], age, vectors=context.encoder.takes_vectors
            )
            for one in batch
        ]
        steps.store(connection, context, [doc_id], steps.sign(context, stored))
        connection.commit()
        return matches, outcome

    def _find(self, connection: Connection, document: Document) -> tuple[Serving, list[Match]]:
        """The document's duplicates; nobody else adds any before this transaction ends."""
        while True:
            serving = self._lookups.serving()
            question = encode(serving.context.encoder, document)
            if question is None:
                return serving, []
            try:
                lookups.hold_stripes(connection, serving.context.leaves, question.keys)
                found = look_up(connection, serving, question)
            except Exception as error:
                if not is_missing_table(error):
                    raise
                found = None
            if found is not None:
                return serving, others(document, found)
            connection.rollback()
            self._lookups.forget()
