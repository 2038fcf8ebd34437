"""Check a generation: first its tables and their indexes, then a sample or all of the documents with all their rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nearsim_db.admin.verify_index.documents import check_clusters, check_documents, check_pairs
from nearsim_db.admin.verify_index.findings import FoundFaults, IndexCheck
from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.records import Progress
from nearsim_db.similarity.arrays import Ints, checksums, lengths
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import attachments
from nearsim_db.store.citus import placement
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import corruption_message, translate_errors
from nearsim_db.store.driver.statements import PARENTS
from nearsim_db.store.generations import generation_rows, index_checks
from nearsim_db.store.generations.generation_rows import Generation

# The columns of the indexes of each table; in a shared table generation_id precedes them.
_INDEXES = {
    "signature": ("doc_id", "feature_digest, doc_id", "head_id, doc_id"),
    "band": ("bucket_hash, doc_id",),
    "similar_pair": ("left_id, right_id", "right_id", "similarity"),
    "cluster_member": ("doc_id", "cluster_id, is_survivor, doc_id"),
    index_checks.COPIES: ("generation_id, doc_id", "generation_id, head_id, doc_id"),
}
# The number of enabled triggers of each table.
_TRIGGERS = {"signature": 7, "similar_pair": 4, "cluster_member": 3}


def check_catalog(connection: Connection, findings: FoundFaults) -> None:
    """Check that every table exists, is attached and logged, and has its indexes and triggers."""
    leaves = findings.generation.leaves
    for parent in PARENTS:
        name = leaves.name(parent)
        state = index_checks.read_table_state(connection, name, parent)
        findings.checked["tables"] += 1
        if state is None:
            findings.add_table("missing_table", name, "it does not exist")
            continue

        if not state.is_attached:
            findings.add_table("detached_table", name, f"it is not a partition of nearsim.{parent}")
        _check_storage(findings, parent, name, state)
        if state.triggers < _TRIGGERS.get(parent, 0):
            findings.add_table("missing_constraint", name, "a trigger does not exist, or is disabled")
        if parent == "band" and leaves.distributed:
            _check_shards(connection, findings)

    if (copies := index_checks.read_table_state(connection, index_checks.COPIES)) is not None:
        _check_storage(findings, index_checks.COPIES, index_checks.COPIES, copies)


def _check_shards(connection: Connection, findings: FoundFaults) -> None:
    """Check that every shard of the band table exists, is logged, and has its indexes."""
    for shard in placement.read_shards(connection, findings.generation.leaves.qualified("band")):
        findings.checked["shards"] += 1
        if shard.is_there:
            _check_storage(findings, "band", shard.name, shard, f" on {shard.node}")
        else:
            findings.add_table("missing_table", shard.name, f"it does not exist on {shard.node}")


def _check_storage(
    findings: FoundFaults,
    parent: str,
    name: str,
    state: index_checks.TableState | placement.ShardState,
    where: str = "",
) -> None:
    """Check that a table or a shard is logged and has its indexes."""
    if not state.is_logged:
        findings.add_table("unlogged_table", name, f"it is unlogged{where}: a server crash would empty it")
    for columns in state.unusable:
        findings.add_table("unusable_index", name, f"the index on ({columns}) is not valid{where}")
    key = "generation_id, " if parent in PARENTS and findings.generation.leaves.is_shared(parent) else ""
    for columns in (key + names for names in _INDEXES[parent]):
        if columns not in (*state.indexes, *state.unusable):
            findings.add_table("missing_index", name, f"the index on ({columns}) does not exist{where}")


def check_content(connection: Connection, findings: FoundFaults, progress: Progress) -> None:
    """Read each table completely, once by its index and once without, and compare the results."""
    leaves = findings.generation.leaves
    tables = findings.generation.tables(connection)
    for number, parent in enumerate(PARENTS):
        progress("tables", number, len(PARENTS))
        counts_and_sums = []
        for by_index in (False, True):
            with _finding_unreadable(connection, findings, leaves.name(parent)):
                tables.checks.set_scan_method(by_index=by_index)
                counts_and_sums.append(tables.checks.checksum_leaf(parent))
        if len(set(counts_and_sums)) > 1:
            (rows, _), (entries, _) = counts_and_sums
            description = f"its index has {entries:,} entries that differ from its {rows:,} rows"
            findings.add_table("wrong_index", leaves.name(parent), description)

    # Views read a copy of the signatures of large generations.
    if not leaves.are_shared and not findings.is_damaged:
        with _finding_unreadable(connection, findings, index_checks.COPIES):
            if differing := tables.checks.count_differing_copies():
                description = f"{differing:,} of its rows differ from {leaves.name('signature')}"
                findings.add_table("wrong_index", index_checks.COPIES, description)
    # End the transaction, which also resets the method of scanning.
    connection.rollback()


@contextmanager
def _finding_unreadable(connection: Connection, findings: FoundFaults, table: str) -> Iterator[None]:
    """Record the table as unreadable if the server cannot read it in the block."""
    try:
        yield
    except Exception as error:
        damage = corruption_message(error)
        if damage is None:
            raise
        connection.rollback()
        if table not in findings.damaged_tables:
            findings.add_table("unreadable_table", table, damage)


def check_shapes(connection: Connection, context: Context, findings: FoundFaults) -> bool:
    """Check that all sketches have the right size; return whether any has not, so that nothing can be compared."""
    malformed = context.tables(connection).checks.find_malformed_sketches(context.encoder.family)
    for doc_id in malformed:
        findings.add("wrong_sketch", [doc_id])
    return bool(malformed)


_HEADS_AT_ONCE = 20_000


def check_all_bands(
    connection: Connection, context: Context, findings: FoundFaults, progress: Progress
) -> None:
    """Compare band rows with sketches; both are read in the order of doc_ids, in one snapshot."""
    tables = context.tables(connection)
    tables.checks.set_scan_method(by_index=False)
    done = 0
    for stored in tables.checks.stream_bands(context.encoder.family, _HEADS_AT_ONCE):
        # Only heads should have band rows.
        keys = context.encoder.band_keys(stored.sketches)
        expected_rows = np.where(stored.are_heads, lengths(keys), 0)
        expected_sums = np.where(stored.are_heads, checksums(keys), 0)
        are_missing = stored.rows < expected_rows
        differ = are_missing | (stored.rows > expected_rows) | (stored.sums != expected_sums)

        findings.checked["all_band_rows"] += int(stored.rows.sum())
        wrong = zip(stored.doc_ids[differ].tolist(), are_missing[differ].tolist(), strict=True)
        findings.add_unless_pending(
            connection,
            [
                ("missing_bands" if is_missing else "stray_bands", [doc_id], [doc_id])
                for doc_id, is_missing in wrong
                if doc_id not in findings.documents
            ],
        )

        done += int(stored.are_heads.sum())
        progress("check_bands", done, None)


_DOCUMENTS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class IndexChecker:
    """Checks generations."""

    database: Database
    contexts: ContextFactory
    progress: Progress
    sample: int | None  # number of documents to check, None to check everything
    seed: int  # seed of the sample

    def check(self, generation: Generation) -> tuple[IndexCheck, FoundFaults]:
        """Check a generation once, in read-only snapshots that do not block writers."""
        findings = FoundFaults(generation)
        with translate_errors(), self.database.engine.snapshot() as connection:
            try:
                self._check(connection, findings)
            except Exception as error:
                # If the generation was dropped in the meantime, it is not damaged: this raises NotFoundError.
                connection.rollback()
                generation_rows.reread(connection, generation)
                connection.rollback()
                findings = self._find_damage(connection, generation, error)
            connection.rollback()
            return findings.summary(connection), findings

    def _check(self, connection: Connection, findings: FoundFaults) -> None:
        # If the texts are lost, there is nothing to compare the index with.
        for lost in attachments.count_lost_texts(connection, findings.generation.collection_id):
            findings.add_table("lost_texts", "document", f"{lost}; {lost.remedy}")
            return

        check_catalog(connection, findings)
        try:
            context = self.contexts.make(findings.generation)
        except (FingerprintError, RecipeError) as error:
            findings.add_table("other_scheme", None, str(error))
            return
        if findings.is_damaged:
            return

        # Continue in a newer snapshot.
        connection.rollback()
        sampled = None
        if self.sample is not None:
            sampled = self._check_sample(connection, context, findings, self.sample)
        elif not self._check_all(connection, context, findings):
            return
        connection.rollback()
        self.progress("check_clusters", 0, None)
        check_clusters(connection, context, findings, sampled)

    def _check_all(self, connection: Connection, context: Context, findings: FoundFaults) -> bool:
        """Check everything except clusters; return False if tables are damaged, so that nothing can be compared."""
        check_content(connection, findings, self.progress)
        if findings.is_damaged or check_shapes(connection, context, findings):
            return False

        total = collection_rows.count_documents(connection, context.collection_id)
        for doc_ids in _batches(connection, context):
            check_documents(connection, context, findings, doc_ids)
            check_pairs(connection, context, findings, doc_ids, either_end=False)
            self.progress("check", findings.checked["documents"], total)
        check_all_bands(connection, context, findings, self.progress)
        return True

    def _check_sample(
        self, connection: Connection, context: Context, findings: FoundFaults, count: int
    ) -> Ints:
        """Check a sample of documents, and changed documents that may be pairs with them; return the sample."""
        sampled = context.tables(connection).checks.sample_ids(context.collection_id, count, self.seed)
        checked = set(sampled)
        for at in range(0, len(sampled), _DOCUMENTS_AT_ONCE):
            # Read each batch in a new snapshot.
            connection.rollback()
            doc_ids = sampled[at : at + _DOCUMENTS_AT_ONCE]
            check_documents(connection, context, findings, doc_ids)
            stale = check_pairs(connection, context, findings, doc_ids, either_end=True)
            # Changed documents outside the sample may have faults of their own.
            unchecked = [doc_id for doc_id in stale if doc_id not in checked]
            check_documents(connection, context, findings, unchecked)
            checked.update(stale)
            self.progress("check", at + len(doc_ids), len(sampled))
        return np.array(sampled, np.int64)

    def _find_damage(self, connection: Connection, generation: Generation, error: Exception) -> FoundFaults:
        """Find the cause of an error: unreadable tables, or sketches of the wrong size. Raises the error if neither."""
        findings = FoundFaults(generation)
        if isinstance(error, ValueError):
            check_shapes(connection, self.contexts.make(generation), findings)
        elif corruption_message(error) is not None:
            check_content(connection, findings, self.progress)
        if not findings.is_damaged and not findings.documents:
            raise error
        return findings


def _batches(connection: Connection, context: Context) -> Iterator[list[int]]:
    """Yield the doc_ids of all documents and signatures in order, each batch read in a new snapshot."""
    after = 0
    connection.rollback()
    while doc_ids := context.tables(connection).checks.ids_after(
        context.collection_id, after, _DOCUMENTS_AT_ONCE
    ):
        yield doc_ids
        after = doc_ids[-1]
        connection.rollback()
    connection.rollback()
