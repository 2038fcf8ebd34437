"""Count what becomes of each record of an ingest, write its rejects, and find what to warn of."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from nearsim_db.errors import DuplicateError, InputError
from nearsim_db.readers import RejectWriter
from nearsim_db.readers.rejects import stopped
from nearsim_db.records import IngestSummary, ReadDocument, Reject
from nearsim_db.similarity.recipe import from_mapping
from nearsim_db.similarity.recipe_warnings import is_html, of_markup
from nearsim_db.store.generations.generation_rows import Generation

_REJECTS_SHOWN = 5


class IngestAccount:
    """Counts the records of an ingest, from several threads.

    summary: the counts that the ingest returns. html_documents: documents written whose text is HTML. has_source: a
    document written has a source.

    With `strict` the first reject raises InputError, and so does a record that replaces one of another file, or whose
    date cannot be read.
    """

    def __init__(self, rejects: RejectWriter, *, strict: bool) -> None:
        self.summary: IngestSummary = IngestSummary()
        self.html_documents: int = 0
        self.has_source: bool = False
        self._rejects = rejects
        self._strict = strict
        self._counting = Lock()

    @contextmanager
    def adding_summary(self) -> Iterator[None]:
        """Give an error of the input the summary of what was written before it."""
        try:
            yield
        except (InputError, DuplicateError) as error:
            error.summary = self.summary
            raise

    def add_document(self, record: ReadDocument) -> None:
        """Count the properties of a document that was written, or was unchanged."""
        self.summary.replaced_characters += record.replaced
        self.summary.unreadable_dates += record.unreadable_date is not None
        self.has_source = self.has_source or bool((record.document.source or "").strip())
        self.html_documents += is_html(record.document.body or "")

    def add_outcomes(self, inserted: int = 0, updated: int = 0, unchanged: int = 0) -> None:
        """Count documents by what became of them."""
        with self._counting:
            self.summary.inserted += inserted
            self.summary.updated += updated
            self.summary.unchanged += unchanged

    def reject(self, reject: Reject) -> None:
        """Count a record that cannot be stored, and write it to the file of rejects."""
        with self._counting:
            self.summary.rejected += 1
            self._rejects.write(reject)
            if len(self.summary.first_rejects) < _REJECTS_SHOWN and not self._strict:
                self.summary.first_rejects.append(reject)
        if self._strict:
            raise stopped(reject, reject.reason)

    def check_date(self, record: ReadDocument) -> None:
        """Raise InputError under `strict` for a date that cannot be read."""
        if self._strict and record.unreadable_date is not None:
            raise stopped(record, record.unreadable_date)

    def replace(self, record: ReadDocument, earlier: str) -> None:
        """Count a record that replaces one of another file."""
        self.refuse_replacing(record, earlier)
        with self._counting:
            self.summary.replaced += 1

    def refuse_replacing(self, record: ReadDocument, earlier: str | None) -> None:
        """Raise InputError under `strict` for a record that replaces one of the file `earlier`.

        `earlier` is None if the record replaces none, empty if the file is not known.
        """
        if self._strict and earlier is not None:
            replaced = f"that of {earlier}" if earlier else "that of another file"
            raise stopped(record, f"id {record.document.external_id!r} replaces {replaced}")

    def markup_warnings(self, live: Sequence[Generation]) -> list[str]:
        """Return warnings of HTML that was added to live indexes. A build warns of HTML by itself."""
        written = self.summary.read - self.summary.rejected
        return [
            f"profile {generation.profile}: {warning}"
            for generation in live
            for warning in of_markup(from_mapping(generation.recipe), self.html_documents, written)
        ]
