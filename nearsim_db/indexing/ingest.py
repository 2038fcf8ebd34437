"""Ingest: write records to a collection in batches, by external_id, and count what became of each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Protocol

from nearsim_db.errors import InputError
from nearsim_db.indexing.batch_writer import BatchWriter
from nearsim_db.indexing.helper_requests import SignDocuments
from nearsim_db.readers import RejectWriter
from nearsim_db.records import CollectionId, IngestSummary, Progress, ReadDocument, Reject
from nearsim_db.similarity.recipe_warnings import is_html
from nearsim_db.store import document_writes
from nearsim_db.store.database import Database
from nearsim_db.store.document_writes import Added, LoadedDocuments, Written
from nearsim_db.store.driver import Connection

_BATCH_DOCUMENTS = 2_000
_BATCH_CHARACTERS = 8_000_000
_REJECTS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Batch:
    origin: str  # where ids are unique
    documents: list[ReadDocument]


class NewDocuments(Protocol):
    """Handles batches of new documents in the thread that writes them."""

    @property
    def needs_texts(self) -> bool:
        """Whether their texts have to be stored."""

    def add(self, batch: SignDocuments) -> None:
        """Handle a batch that is committed."""


class Ingest:
    """Writes the records that readers yield. `html_documents` counts those written whose text is HTML."""

    def __init__(
        self,
        database: Database,
        collection_id: CollectionId,
        rejects: RejectWriter,
        *,
        strict: bool = False,
        dry_run: bool = False,
    ) -> None:
        self._database = database
        self._collection_id = collection_id
        self._rejects = rejects
        self._strict = strict
        self._dry_run = dry_run
        self._origin: str | None = None
        self._loaded = LoadedDocuments()
        self._rejecting = Lock()  # both the reading and the writing thread reject records
        self.summary = IngestSummary()
        self.html_documents = 0

    def write(
        self,
        records: Iterable[ReadDocument | Reject],
        progress: Progress,
        added: NewDocuments | None = None,
    ) -> None:
        """Write all records; those that cannot be stored become rejects. With `strict` the first one raises InputError.

        An error of the reader, such as a damaged file, is raised after the records before it were written.
        `added` is given the batches of new documents.
        """
        with (
            self._database.engine.connect() as connection,
            BatchWriter[_Batch](partial(self._write_batch, connection, added)) as writer,
        ):
            try:
                for batch in _batches(records):
                    writer.add(_Batch(_origin(batch[0]), self._without_rejects(batch)))
                    progress("read", self.summary.read, None)
            except Exception:
                writer.finish()
                raise
            written = self.summary.inserted + self.summary.updated + self.summary.unchanged
            progress("save", written, self.summary.read)
            writer.finish()

    def _without_rejects(self, batch: list[ReadDocument | Reject]) -> list[ReadDocument]:
        """Return the documents of a batch, of equal ids the last; the earlier ones become rejects."""
        latest: dict[str, ReadDocument] = {}
        for record in batch:
            self.summary.read += 1
            if isinstance(record, Reject):
                self._reject(record)
                continue
            external_id = record.document.external_id
            earlier = latest.pop(external_id, None)
            if earlier is not None:
                self._reject(_superseded(external_id, earlier.file, earlier.line, record.line))
            latest[external_id] = record
        return list(latest.values())

    def _write_batch(self, connection: Connection, added: NewDocuments | None, given: "_Batch") -> None:
        if given.origin != self._origin:
            self._loaded = document_writes.begin_file(connection)
            self._origin = given.origin
        batch = given.documents
        if not batch:
            return
        with_texts = added is None or added.needs_texts
        written = document_writes.write_batch(
            connection,
            self._collection_id,
            batch,
            self._loaded,
            dry_run=self._dry_run,
            may_copy=self._database.may_index,
            with_texts=with_texts,
        )
        self._count(batch, written)
        connection.commit()
        if written.added is not None and added is not None:
            added.add(_to_sign(batch, written.added, with_texts=with_texts))

    def _count(self, batch: Sequence[ReadDocument], written: Written) -> None:
        for external_id, earlier, line in written.superseded:
            self._reject(_superseded(external_id, batch[0].file, earlier, line))
        self.summary.inserted += written.inserted
        self.summary.updated += written.updated
        self.summary.unchanged += written.unchanged
        self.summary.replaced_characters += sum(record.replaced for record in batch)
        self.html_documents += sum(is_html(record.document.body or "") for record in batch)

    def _reject(self, reject: Reject) -> None:
        with self._rejecting:
            self.summary.rejected += 1
            self._rejects.write(reject)
            if len(self.summary.first_rejects) < _REJECTS_SHOWN and not self._strict:
                self.summary.first_rejects.append(reject)
        if self._strict:
            where = f"{reject.file}, line {reject.line}" if reject.line else reject.file
            named = "" if reject.external_id is None else f"document {reject.external_id!r}; "
            raise InputError(f"{where}: {reject.reason} ({named}stopped because of --strict)")


def _to_sign(batch: Sequence[ReadDocument], added: Added, *, with_texts: bool) -> SignDocuments:
    titles = [one.document.title for one in batch]
    bodies = [one.document.body for one in batch]
    return SignDocuments(added.doc_ids, added.revisions, titles, bodies, with_texts)


def _superseded(external_id: str, file: str, earlier: int, line: int) -> Reject:
    later = f"on line {line}" if line else "in another file"
    return Reject(file, earlier, f"duplicate id (also {later}); the last record is kept", external_id)


def _origin(record: ReadDocument | Reject) -> str:
    """Where ids must be unique: in a file of many records, or in all one-record files of a folder."""
    return record.file if record.line else ""


def _batches(records: Iterable[ReadDocument | Reject]) -> Iterator[list[ReadDocument | Reject]]:
    """Split records into batches of one origin, bounded in number and size; yield those before an error too."""
    batch: list[ReadDocument | Reject] = []
    size = 0
    try:
        for record in records:
            full = len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_CHARACTERS
            if batch and (full or _origin(record) != _origin(batch[0])):
                yield batch
                batch, size = [], 0
            batch.append(record)
            if isinstance(record, ReadDocument):
                size += len(record.document.title or "") + len(record.document.body or "")
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
