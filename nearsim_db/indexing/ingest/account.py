"""The account of an ingest: what becomes of each record, which records are rejected, and what to warn of."""

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
    """Counts the records of an ingest; several threads may use it.

    With `strict`, InputError is raised for the first reject, for a record that replaces a record of another file, and
    for a date that cannot be read.
    """

    def __init__(self, rejects: RejectWriter, *, strict: bool) -> None:
        self.summary: IngestSummary = IngestSummary()  # the counts that the ingest returns
        self.html_documents: int = 0  # written documents whose text is HTML
        self.has_source: bool = False  # whether a written document has a source
        self._rejects = rejects
        self._strict = strict
        self._counting = Lock()

    @contextmanager
    def adding_summary(self) -> Iterator[None]:
        """Attach the summary of what was written so far to an error about the input."""
        try:
            yield
        except (InputError, DuplicateError) as error:
            error.summary = self.summary
            raise

    def add_document(self, record: ReadDocument) -> None:
        """Count the properties of a document that was written or was found unchanged."""
        self.summary.replaced_characters += record.replaced
        self.summary.unreadable_dates += record.unreadable_date is not None
        self.has_source = self.has_source or bool((record.document.source or "").strip())
        self.html_documents += is_html(record.document.body or "")

    def add_outcomes(self, inserted: int = 0, updated: int = 0, unchanged: int = 0) -> None:
        """Count documents that were inserted, updated, or found unchanged."""
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
        """Raise InputError for a date that cannot be read, if the ingest is strict."""
        if self._strict and record.unreadable_date is not None:
            raise stopped(record, record.unreadable_date)

    def replace(self, record: ReadDocument, earlier: str) -> None:
        """Count a record that replaces a record of another file."""
        self.refuse_replacing(record, earlier)
        with self._counting:
            self.summary.replaced += 1

    def refuse_replacing(self, record: ReadDocument, earlier: str | None) -> None:
        """Raise InputError for a record that replaces a record of the file `earlier`, if the ingest is strict.

        `earlier` is None if the record does not replace any, and empty if the file's name is not known.
        """
        if self._strict and earlier is not None:
            replaced = f"that of {earlier}" if earlier else "that of another file"
            raise stopped(record, f"id {record.document.external_id!r} replaces {replaced}")

    def markup_warnings(self, live: Sequence[Generation]) -> list[str]:
        """Return warnings about HTML that was added to live indexes; a build gives these warnings itself."""
        written = self.summary.read - self.summary.rejected
        return [
            f"profile {generation.profile}: {warning}"
            for generation in live
            for warning in of_markup(from_mapping(generation.recipe), self.html_documents, written)
        ]
