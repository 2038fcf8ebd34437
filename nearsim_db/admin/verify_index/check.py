"""One check of a generation: its tables, then all documents or a sample, with bands, pairs and clusters."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nearsim_db.admin.verify_index.documents import check_clusters, check_documents, check_pairs
from nearsim_db.admin.verify_index.findings import Findings, IndexCheck
from nearsim_db.admin.verify_index.tables import check_all_bands, check_catalog, check_content, check_shapes
from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.records import Progress
from nearsim_db.store import collection_rows, generation_rows, index_checks
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import corruption_message, translate_errors
from nearsim_db.store.generation_rows import Generation

_DOCUMENTS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class IndexChecker:
    """Checks generations: `sample` documents drawn by `seed`, or everything if it is None."""

    database: Database
    contexts: ContextFactory
    progress: Progress
    sample: int | None
    seed: int

    def check(self, generation: Generation) -> tuple[IndexCheck, Findings]:
        """Check a generation once, in read-only snapshots that block no writer."""
        findings = Findings(generation)
        with translate_errors(), self.database.engine.snapshot() as connection:
            try:
                self._check(connection, findings)
            except Exception as error:
                connection.rollback()
                generation_rows.reread(connection, generation)
                connection.rollback()
                findings = self._find_damage(connection, generation, error)
            connection.rollback()
            return findings.summary(connection), findings

    def _check(self, connection: Connection, findings: Findings) -> None:
        check_catalog(connection, findings)
        try:
            context = self.contexts.make(findings.generation)
        except (FingerprintError, RecipeError) as error:
            findings.add_table("other_scheme", None, str(error))
            return
        if findings.is_damaged:
            return
        connection.rollback()
        if self.sample is None:
            self._check_all(connection, context, findings)
        else:
            self._check_sample(connection, context, findings, self.sample)

    def _check_all(self, connection: Connection, context: Context, findings: Findings) -> None:
        check_content(connection, findings, self.progress)
        if findings.is_damaged or check_shapes(connection, context, findings):
            return
        total = collection_rows.count_documents(connection, context.collection_id)
        for doc_ids in _batches(connection, context):
            check_documents(connection, context, findings, doc_ids)
            check_pairs(connection, context, findings, doc_ids, either_end=False)
            self.progress("check", findings.checked["documents"], total)
        check_all_bands(connection, context, findings, self.progress)
        connection.rollback()
        self.progress("check_clusters", 0, None)
        check_clusters(connection, context, findings)

    def _check_sample(
        self, connection: Connection, context: Context, findings: Findings, amount: int
    ) -> None:
        sampled = index_checks.sample_ids(
            connection, context.leaves, context.collection_id, amount, self.seed
        )
        checked = set(sampled)
        for at in range(0, len(sampled), _DOCUMENTS_AT_ONCE):
            connection.rollback()
            doc_ids = sampled[at : at + _DOCUMENTS_AT_ONCE]
            check_documents(connection, context, findings, doc_ids)
            stale = check_pairs(connection, context, findings, doc_ids, either_end=True)
            # The other ends of their pairs may have faults of their own.
            check_documents(connection, context, findings, [one for one in stale if one not in checked])
            checked.update(stale)
            self.progress("check", at + len(doc_ids), len(sampled))
        connection.rollback()
        self.progress("check_clusters", 0, None)
        check_clusters(connection, context, findings, np.array(sampled, np.int64))

    def _find_damage(self, connection: Connection, generation: Generation, error: Exception) -> Findings:
        """Find the cause of an error: unreadable tables, or sketches of the wrong size. Raises any other error."""
        findings = Findings(generation)
        if isinstance(error, ValueError):
            check_shapes(connection, self.contexts.make(generation), findings)
        elif corruption_message(error) is not None:
            check_content(connection, findings, self.progress)
        if not findings.is_damaged and not findings.documents:
            raise error
        return findings


def _batches(connection: Connection, context: Context) -> Iterator[list[int]]:
    """Yield the doc_ids of all documents and signatures in order, each batch in a snapshot of its own."""
    after = 0
    connection.rollback()
    while doc_ids := index_checks.ids_after(
        connection, context.leaves, context.collection_id, after, _DOCUMENTS_AT_ONCE
    ):
        yield doc_ids
        after = doc_ids[-1]
        connection.rollback()
    connection.rollback()
