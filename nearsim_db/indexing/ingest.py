"""Ingest: write records to a collection in batches, by external_id, and count what became of each.

A batch is written while the next one is read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import Lock
from typing import Generic, Self, TypeVar

from nearsim_db.errors import DuplicateError, InputError
from nearsim_db.indexing.signing import NewDocuments
from nearsim_db.readers import RejectWriter
from nearsim_db.readers.rejects import stopped
from nearsim_db.records import CollectionId, IngestSummary, Progress, ReadDocument, Reject
from nearsim_db.similarity.recipe import from_mapping
from nearsim_db.similarity.recipe_warnings import is_html, of_markup
from nearsim_db.store.database import Database
from nearsim_db.store.documents import document_writes
from nearsim_db.store.documents.document_writes import Added, LoadedDocuments, Written
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation

_BATCH_DOCUMENTS = 2_000
_BATCH_CHARACTERS = 8_000_000
_REJECTS_SHOWN = 5

# Called in the thread that writes documents, with a batch that is committed.
OnAdded = Callable[[NewDocuments], None]


@dataclass(frozen=True, slots=True)
class _Batch:
    documents: list[ReadDocument]
    files: list[int]  # the number of each one's file among those of the call


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
        self._files: list[str] = []
        self._loaded = LoadedDocuments()
        self._counting = Lock()  # both the reading and the writing thread count records
        self.summary: IngestSummary = IngestSummary()
        self.html_documents: int = 0
        self.has_source: bool = False  # any document

    def write(
        self, records: Iterable[ReadDocument | Reject], progress: Progress, added: OnAdded | None = None
    ) -> None:
        """Write all records; those that cannot be stored become rejects. With `strict` the first one raises InputError,
        and so does one that replaces a record of another file or whose date cannot be read.

        An error of the reader, such as a damaged file, is raised after the records before it were written.
        `added` is called with the batches of new documents.
        """
        with (
            self._database.engine.connect() as connection,
            BatchWriter[_Batch](partial(self._write_batch, connection, added)) as writer,
        ):
            try:
                for batch in _batches(records, by_origin=self._strict):
                    documents = self._without_rejects(batch)
                    writer.add(_Batch(documents, [self._file_of(one) for one in documents]))
                    progress("read", self.summary.read, None)
            except Exception:  # of whatever yields the records, which may be a caller's generator
                writer.finish()
                raise
            written = self.summary.inserted + self.summary.updated + self.summary.unchanged
            progress("save", written, self.summary.read)
            writer.finish()

    @contextmanager
    def adding_summary(self) -> Iterator[None]:
        """Give an error of the input the summary of what was written before it."""
        try:
            yield
        except (InputError, DuplicateError) as error:
            error.summary = self.summary
            raise

    def _file_of(self, document: ReadDocument) -> int:
        if not self._files or self._files[-1] != _origin(document):
            self._files.append(_origin(document))
        return len(self._files) - 1

    def _without_rejects(self, batch: list[ReadDocument | Reject]) -> list[ReadDocument]:
        """Return the documents of a batch, of equal ids the last; earlier ones of the same file become rejects."""
        latest: dict[str, ReadDocument] = {}
        for record in batch:
            self.summary.read += 1
            if isinstance(record, Reject):
                self._reject(record)
                continue
            self._check_date(record)
            external_id = record.document.external_id
            earlier = latest.pop(external_id, None)
            if earlier is not None and earlier.line:
                self._reject(_superseded(external_id, earlier.file, earlier.line, record.line))
            elif earlier is not None:
                self._replace(record, earlier.file)
                with self._counting:
                    self.summary.updated += 1  # as if the earlier one had been written
            latest[external_id] = record
        return list(latest.values())

    def _write_batch(self, connection: Connection, added: OnAdded | None, given: "_Batch") -> None:
        batch = given.documents
        if not batch:
            return
        written = document_writes.write_batch(
            connection,
            self._collection_id,
            batch,
            self._loaded,
            files=given.files,
            dry_run=self._dry_run,
            may_copy=self._database.may_index,
        )
        self._count(batch, written)
        connection.commit()
        if written.added is not None and added is not None:
            added(_to_sign(batch, written.added))

    def _count(self, batch: Sequence[ReadDocument], written: Written) -> None:
        by_id = (
            {one.document.external_id: one for one in batch} if written.superseded or written.replaced else {}
        )
        for external_id, earlier, line in written.superseded:
            self._reject(_superseded(external_id, by_id[external_id].file, earlier, line))
        for external_id, file in written.replaced:
            self._replace(by_id[external_id], self._files[file])
        with self._counting:
            self.summary.inserted += written.inserted
            self.summary.updated += written.updated
            self.summary.unchanged += written.unchanged
        self.summary.replaced_characters += sum(record.replaced for record in batch)
        self.summary.unreadable_dates += sum(record.unreadable_date is not None for record in batch)
        sources = (record.document.source for record in batch)
        self.has_source = self.has_source or any(source and source.strip() for source in sources)
        self.html_documents += sum(is_html(record.document.body or "") for record in batch)

    def markup_warnings(self, live: Sequence[Generation]) -> list[str]:
        """Warn of HTML that was added to these indexes; an index built after it was read warns of it by itself."""
        written = self.summary.read - self.summary.rejected
        return [
            f"profile {one.profile}: {warning}"
            for one in live
            for warning in of_markup(from_mapping(one.recipe), self.html_documents, written)
        ]

    def _reject(self, reject: Reject) -> None:
        with self._counting:
            self.summary.rejected += 1
            self._rejects.write(reject)
            if len(self.summary.first_rejects) < _REJECTS_SHOWN and not self._strict:
                self.summary.first_rejects.append(reject)
        if self._strict:
            raise stopped(reject, reject.reason)

    def _check_date(self, record: ReadDocument) -> None:
        """Raise InputError under `strict` for a date that cannot be read."""
        if self._strict and record.unreadable_date is not None:
            raise stopped(record, record.unreadable_date)

    def _replace(self, record: ReadDocument, earlier: str) -> None:
        """Count a record that replaces one of another file."""
        if self._strict:
            self._refuse_replacing(record, earlier)
        with self._counting:
            self.summary.replaced += 1

    def _refuse_replacing(self, record: ReadDocument, earlier: str | None) -> None:
        if earlier is not None:
            replaced = f"that of {earlier}" if earlier else "that of another file"
            raise stopped(record, f"id {record.document.external_id!r} replaces {replaced}")


def _to_sign(batch: Sequence[ReadDocument], added: Added) -> NewDocuments:
    titles = [one.document.title for one in batch]
    bodies = [one.document.body for one in batch]
    return NewDocuments(added.doc_ids, added.revisions, titles, bodies)


def _superseded(external_id: str, file: str, earlier: int, line: int) -> Reject:
    return Reject(file, earlier, f"duplicate id (also on line {line}); the last record is kept", external_id)


def _origin(record: ReadDocument | Reject) -> str:
    """Where ids must be unique: in a file of many records, or in all one-record files of a folder."""
    return record.file if record.line else ""


def _batches(
    records: Iterable[ReadDocument | Reject], *, by_origin: bool
) -> Iterator[list[ReadDocument | Reject]]:
    """Split records into batches, bounded in number and size; yield those before an error too.

    Records of one id in a batch have one origin. With `by_origin` all records have, so that an error in a file leaves
    out no earlier file.
    """
    batch: list[ReadDocument | Reject] = []
    origins: dict[str, str] = {}
    size = 0
    try:
        for record in records:
            origin, external_id = _origin(record), _id_of(record)
            full = len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_CHARACTERS
            before = _origin(batch[-1]) if batch and by_origin else origins.get(external_id, origin)
            if batch and (full or before != origin):
                yield batch
                batch, origins, size = [], {}, 0
            batch.append(record)
            if external_id:
                origins[external_id] = origin
            size += _characters(record)
    except Exception:  # but not GeneratorExit, after which nothing may be yielded
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _id_of(record: ReadDocument | Reject) -> str:
    return "" if isinstance(record, Reject) else record.document.external_id


def _characters(record: ReadDocument | Reject) -> int:
    if isinstance(record, Reject):
        return 0
    return len(record.document.title or "") + len(record.document.body or "")


def measure(records: Iterable[ReadDocument | Reject]) -> tuple[Iterable[ReadDocument | Reject], int | None]:
    """Return the records, and the characters of their texts; None if there are more records than one batch has."""
    remaining, first, size = iter(records), list[ReadDocument | Reject](), 0
    try:
        for record in remaining:
            first.append(record)
            size += _characters(record)
            if len(first) > _BATCH_DOCUMENTS or size >= _BATCH_CHARACTERS:
                return chain(first, remaining), None
    except Exception as error:  # of whatever yields the records; it is raised where they are read
        return chain(first, _raising(error)), size
    return first, size


def _raising(error: Exception) -> Iterator[ReadDocument | Reject]:
    yield from ()
    raise error


Batch = TypeVar("Batch")


class BatchWriter(Generic[Batch]):
    """Writes batches in another thread, in their order, one at a time.

    At most two batches are in memory. Use it in a `with` block; errors of writing are raised by `add` and `finish`, and
    no later batch is written.
    """

    def __init__(self, write: Callable[[Batch], None]) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nearsim-write")
        self._running: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown()

    def add(self, batch: Batch) -> None:
        """Begin to write a batch, once the one before it is written."""
        self.finish()
        self._running = self._thread.submit(self._write, batch)

    def finish(self) -> None:
        """Wait until everything that was added is written."""
        running, self._running = self._running, None
        if running is not None:
            running.result()
