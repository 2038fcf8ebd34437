"""Look each document up before adding it, even when near-copies are added at the same time.

Locks are always taken in this order: first the stripes of a document's band keys, ascending; then its row in
`document`, of which a transaction locks only one; then the locks of `store_signatures`. A transaction that has locked a
row of `document`, or has a lock of `store_signatures`, never waits for a stripe. So stripes cannot cause a deadlock.

Two documents that are candidates share a bucket and therefore a stripe. So the second document is looked up only after
the band rows of the first are committed. If the writer of the first may not write band rows, it records the document in
`checked_insertion` instead.
"""

from collections.abc import Callable, Iterable

from nearsim_db.errors import DuplicateError
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.ingest.account import IngestAccount
from nearsim_db.readers import RejectWriter
from nearsim_db.records import (
    CollectionId,
    Document,
    Duplicate,
    Match,
    OnDuplicate,
    Progress,
    ReadDocument,
    Reject,
)
from nearsim_db.store.database import Database
from nearsim_db.store.documents import document_writes, documents
from nearsim_db.store.documents.document_writes import Outcome
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import retry_conflicts
from nearsim_db.store.signatures import insertions

# Returns the live generation and the near-duplicates of a document, and locks its stripes until the commit.
FindLocked = Callable[[Connection, Document], tuple[Context, list[Match]]]


class CheckedIngest(IngestAccount):
    """Writes records, each in its own transaction, and treats near-duplicates as `on_duplicate` says.

    "flag" adds them. "skip" leaves them out. "raise" raises DuplicateError, and keeps the records written before. With
    "skip" and "raise", a document that is stored with exactly these contents counts as unchanged, whatever
    near-duplicates it has. With None, no document is looked up or signed; this is for an application's transaction.
    """

    def __init__(
        self,
        database: Database,
        collection_id: CollectionId,
        rejects: RejectWriter,
        find_locked: FindLocked,
        on_duplicate: OnDuplicate | None,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(rejects, strict=strict)
        self._database = database
        self._collection_id = collection_id
        self._find_locked = find_locked
        self._on_duplicate = on_duplicate
        self._file_by_id: dict[str, str] = {}  # the file of each written document, by external_id

    def write(self, records: Iterable[ReadDocument | Reject], progress: Progress) -> None:
        """Look up and write all records, one after the other; records that cannot be stored become rejects.

        Raises DuplicateError with `on_duplicate` "raise", and InputError with `strict`.
        """
        with self._database.engine.connect() as connection:
            for record in records:
                self.summary.read += 1
                if isinstance(record, Reject):
                    self.reject(record)
                else:
                    self.check_date(record)
                    self._write_document(connection, record)
                progress("read", self.summary.read, None)
            if not connection.is_borrowed and self._database.may_index:
                insertions.drop_settled(connection, self._collection_id)
                connection.commit()

    def _write_document(self, connection: Connection, record: ReadDocument) -> None:
        external_id = record.document.external_id
        matches, outcome = retry_conflicts(connection, self._add, connection, record)
        if matches:
            self.summary.duplicates.append(Duplicate(external_id, tuple(matches)))
        if outcome is None:
            self.summary.skipped += 1
            if self._on_duplicate == "raise":
                raise DuplicateError(external_id, matches)
            return

        self.add_outcomes(**{outcome: 1})
        self.add_document(record)
        self.summary.replaced += outcome == "updated" and external_id in self._file_by_id
        self._file_by_id[external_id] = record.file

    def _add(self, connection: Connection, record: ReadDocument) -> tuple[list[Match], Outcome | None]:
        """Look a document up and add it in one transaction.

        Returns its matches and the outcome, which is None if the document was left out because of its matches.
        """
        document = record.document
        if self._on_duplicate is None:
            _, outcome = document_writes.upsert_document(connection, self._collection_id, document)
            return [], outcome

        context, matches = self._find_locked(connection, document)
        if matches and self._on_duplicate != "flag":
            is_stored = document_writes.is_stored(connection, self._collection_id, document)
            connection.rollback()
            return ([], "unchanged") if is_stored else (matches, None)

        doc_id, outcome = document_writes.upsert_document(connection, self._collection_id, document)
        if outcome == "updated":
            self.refuse_replacing(record, self._file_by_id.get(document.external_id))
        if not self._database.may_index:
            connection.commit()
            return matches, outcome

        # Sign the document before the locks of its stripes are released, unless it is past the retention age.
        retained = context.tables(connection).signatures.find_retained(self._collection_id, [doc_id])
        batches = documents.stream_documents(
            connection, self._collection_id, list(retained), vectors=context.encoder.takes_vectors
        )
        stored = [document for batch in batches for document in batch]
        steps.store_signatures(connection, context, [doc_id], steps.sign_documents(context, stored))
        connection.commit()
        return matches, outcome
