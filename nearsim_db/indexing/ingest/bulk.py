"""Write records in batches, by external_id; if a collection has no index yet, sign the documents at the same time.

Three kinds of threads work in parallel. The calling thread reads records into batches. The threads of the pool encode
the texts of each batch, for every index that is built after this. One thread writes the documents of a batch and, when
they are committed, their signatures.

The build signs all other documents: documents of other writers, updated documents, and documents written by an earlier
run that was killed. If a document is changed or deleted after it was signed, the change is captured like any other, and
the document is indexed again after the build.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Generic, Self, TypeVar

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.ingest.account import IngestAccount
from nearsim_db.indexing.steps.sign import Encoding
from nearsim_db.readers import RejectWriter
from nearsim_db.records import CollectionId, Progress, ReadDocument, Reject
from nearsim_db.store.database import Database
from nearsim_db.store.documents import document_writes
from nearsim_db.store.documents.document_writes import AddedDocuments, LoadedDocuments, WrittenBatch
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import generation_states

_BATCH_DOCUMENTS = 2_000
_BATCH_CHARACTERS = 8_000_000
# The texts of waiting batches are encoded while the batch before them is written.
_MAX_BATCHES_WAITING = 2


@dataclass(frozen=True, slots=True)
class _IngestBatch:
    """Documents to write, while their texts are encoded."""

    documents: list[ReadDocument]
    files: list[int]  # for each document, the number of its file, counted from 0 in this call
    encodings: list[Encoding]  # one for each index that signs the documents


class BulkIngest(IngestAccount):
    """Writes the records that readers yield."""

    def __init__(
        self,
        database: Database,
        collection_id: CollectionId,
        rejects: RejectWriter,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(rejects, strict=strict)
        self._database = database
        self._collection_id = collection_id
        self._files: list[str] = []
        self._loaded = LoadedDocuments()

    def write(
        self,
        records: Iterable[ReadDocument | Reject],
        progress: Progress,
        contexts: Sequence[Context] = (),
    ) -> None:
        """Write all records, and sign the new documents for the indexes of `contexts`, which this process will build.

        Records that cannot be stored become rejects; with `strict` they raise InputError. If reading fails, for example
        because a file is damaged, the records read before are written before the error is raised.
        """
        with (
            self._database.engine.connect() as connection,
            BatchWriter[_IngestBatch](partial(self._write_batch, connection, contexts)) as writer,
        ):
            progress("read", 0, None)
            try:
                for batch in _batches(records, by_origin=self._strict):
                    documents = self._without_rejects(batch)
                    files = [self._file_of(document) for document in documents]
                    encodings = [
                        steps.begin_encoding(context, [record.document for record in documents])
                        for context in contexts
                    ]
                    writer.add(_IngestBatch(documents, files, encodings))
                    progress("read", self.summary.read, None)
            except Exception:  # any exception, because a caller's generator may yield the records
                writer.finish()
                raise

            written = self.summary.inserted + self.summary.updated + self.summary.unchanged
            progress("save", written, self.summary.read)
            writer.finish()

        for context in contexts:
            context.build.end_signing(self.summary.inserted)

    def _file_of(self, document: ReadDocument) -> int:
        if not self._files or self._files[-1] != _origin(document):
            self._files.append(_origin(document))
        return len(self._files) - 1

    def _without_rejects(self, batch: list[ReadDocument | Reject]) -> list[ReadDocument]:
        """Return the documents of a batch without rejects and repeated ids.

        The last of several records with the same id is kept. The earlier ones are rejected if they are in the same
        file, and count as replaced otherwise.
        """
        latest: dict[str, ReadDocument] = {}
        for record in batch:
            self.summary.read += 1
            if isinstance(record, Reject):
                self.reject(record)
                continue

            self.check_date(record)
            external_id = record.document.external_id
            earlier = latest.pop(external_id, None)
            if earlier is not None and earlier.line:
                self.reject(_superseded(external_id, earlier.file, earlier.line, record.line))
            elif earlier is not None:
                self.replace(record, earlier.file)
                self.add_outcomes(updated=1)  # as if the earlier record had been written and then updated
            latest[external_id] = record
        return list(latest.values())

    def _write_batch(self, connection: Connection, contexts: Sequence[Context], batch: _IngestBatch) -> None:
        if not batch.documents:
            return
        written = self._merge(connection, batch)
        self._count(batch.documents, written)
        connection.commit()

        # If documents of the batch existed before, the build signs the batch.
        if written.added is not None:
            for context, encoding in zip(contexts, batch.encodings, strict=True):
                self._sign(connection, context, batch.documents, written.added, encoding)

    def _merge(self, connection: Connection, batch: _IngestBatch) -> WrittenBatch:
        return document_writes.write_batch(
            connection,
            self._collection_id,
            batch.documents,
            self._loaded,
            files=batch.files,
            may_copy=self._database.may_index,
        )

    def _sign(
        self,
        connection: Connection,
        context: Context,
        documents: Sequence[ReadDocument],
        added: AddedDocuments,
        encoding: Encoding,
    ) -> None:
        """Sign new documents; if the build is past the stage sign, only keep their features for the build."""
        rows = steps.finish_encoding(context, added.doc_ids, added.revisions, encoding)
        if generation_states.lock_signing(connection, context.generation):
            context.tables(connection).signatures.write(rows, rows.doc_ids)
            context.build.sample_texts([record.document for record in documents])
            context.build.count_signed_early(len(documents))
        connection.commit()

    def _count(self, batch: Sequence[ReadDocument], written: WrittenBatch) -> None:
        by_id: dict[str, ReadDocument] = {}
        if written.superseded or written.replaced:
            by_id = {record.document.external_id: record for record in batch}
        for external_id, earlier, line in written.superseded:
            self.reject(_superseded(external_id, by_id[external_id].file, earlier, line))
        for external_id, file in written.replaced:
            self.replace(by_id[external_id], self._files[file])
        self.add_outcomes(written.inserted, written.updated, written.unchanged)
        for record in batch:
            self.add_document(record)


class DryRun(BulkIngest):
    """Counts what a bulk ingest would write."""

    def _merge(self, connection: Connection, batch: _IngestBatch) -> WrittenBatch:
        return document_writes.compare_batch(
            connection, self._collection_id, batch.documents, self._loaded, files=batch.files
        )


def _superseded(external_id: str, file: str, earlier: int, line: int) -> Reject:
    return Reject(file, earlier, f"duplicate id (also on line {line}); the last record is kept", external_id)


def _origin(record: ReadDocument | Reject) -> str:
    """Return the place in which ids must be unique.

    This is the file if it has many records, and "" for all files that consist of one record.
    """
    return record.file if record.line else ""


def _batches(
    records: Iterable[ReadDocument | Reject], *, by_origin: bool
) -> Iterator[list[ReadDocument | Reject]]:
    """Split records into batches of bounded number and size; if reading fails, yield the records read before.

    Records with the same id in a batch always have the same origin. With `by_origin` all records of a batch have the
    same origin, so an error in a file cannot leave out records of earlier files.
    """
    batch: list[ReadDocument | Reject] = []
    origins: dict[str, str] = {}
    size = 0
    try:
        for record in records:
            origin = _origin(record)
            external_id = "" if isinstance(record, Reject) else record.document.external_id
            is_full = len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_CHARACTERS
            before = _origin(batch[-1]) if batch and by_origin else origins.get(external_id, origin)
            if batch and (is_full or before != origin):
                yield batch
                batch, origins, size = [], {}, 0

            batch.append(record)
            if external_id:
                origins[external_id] = origin
            size += _characters(record)
    except Exception:  # not GeneratorExit, after which a generator may not yield
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _characters(record: ReadDocument | Reject) -> int:
    if isinstance(record, Reject):
        return 0
    return len(record.document.title or "") + len(record.document.body or "")


def measure(records: Iterable[ReadDocument | Reject]) -> tuple[Iterable[ReadDocument | Reject], int | None]:
    """Return the records, and the total length of their texts in characters, or None if they exceed one batch.

    The returned records are a list if one batch has room for all of them.
    """
    remaining, first_records, size = iter(records), list[ReadDocument | Reject](), 0
    try:
        for record in remaining:
            first_records.append(record)
            size += _characters(record)
            if len(first_records) > _BATCH_DOCUMENTS or size >= _BATCH_CHARACTERS:
                return chain(first_records, remaining), None
    except Exception as error:
        # A caller's generator may raise any exception. It is raised again when the records are read.
        return chain(first_records, _raising(error)), size
    return first_records, size


def _raising(error: Exception) -> Iterator[ReadDocument | Reject]:
    yield from ()
    raise error


Batch = TypeVar("Batch")


class BatchWriter(Generic[Batch]):
    """Writes batches in another thread, in their order, one at a time; a few batches may wait in memory.

    Use it in a `with` block. If writing a batch fails, no later batch is written, and `add` or `finish` raises the
    error.
    """

    def __init__(self, write: Callable[[Batch], None]) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nearsim-write")
        self._pending: deque[Future[None]] = deque()
        self._has_failed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown()

    def add(self, batch: Batch) -> None:
        """Queue a batch to be written; wait while too many batches are in memory."""
        while len(self._pending) > _MAX_BATCHES_WAITING:
            self._pending.popleft().result()
        self._pending.append(self._thread.submit(self._write_next, batch))

    def finish(self) -> None:
        """Wait until everything that was added is written."""
        while self._pending:
            self._pending.popleft().result()

    def _write_next(self, batch: Batch) -> None:
        if self._has_failed:
            return
        try:
            self._write(batch)
        except BaseException:
            self._has_failed = True
            raise
