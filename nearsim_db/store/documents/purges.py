"""Removal of documents: purges, which cover every table that stores something about them, and retention."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from psycopg import sql

from nearsim_db.records import CollectionId, WorkStage
from nearsim_db.similarity.arrays import Ints, Keys, flat, lengths
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.codec import to_bigint
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.driver_errors import is_missing_table
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.driver.statements import PARENTS, SCHEMA, GenerationStatements, Leaves, run, statement

_PURGED_TABLES = (
    "document",
    "change",
    "work",
    "probe",
    "probe_match",
    "event",
    "verdict",
    "review",
    "survivor_pin",
)


@dataclass(frozen=True, slots=True)
class Traces:
    """Numbers of the rows that a generation has about certain documents."""

    signatures: int
    bands: int
    pairs: int
    cluster_rows: int


def delete_changes(connection: Connection, doc_ids: Ints) -> int:
    """Delete captured changes of documents; return the number of changes."""
    # The lock keeps out dispatchers, which take changes without locking their rows first.
    take_transaction_lock(connection, Lock.CHANGES, 0)
    return run(connection, "purge_changes", doc_ids=packed_ids(doc_ids)).count


def capture_deletes(connection: Connection, collection_id: CollectionId, doc_ids: Ints) -> None:
    """Capture the deletion of documents, to be dispatched to every generation."""
    run(connection, "capture_deletes", collection_id=collection_id, doc_ids=packed_ids(doc_ids))


def record_purge(connection: Connection, collection_id: CollectionId) -> datetime:
    """Record the time of a purge, and return it; it tells other processes to discard the features that they cache."""
    purged_at: datetime = run(connection, "record_purge", collection_id=collection_id).value()
    return purged_at


def vacuum(connection: Connection, generations: Sequence[Leaves]) -> None:
    """Free the space of deleted rows, and purge their values from planner statistics.

    The connection must be in autocommit mode. The server skips tables of other owners.
    """
    tables = [sql.Identifier(SCHEMA, name) for name in _PURGED_TABLES]
    # Each table is included once, although several generations may share it.
    tables += {
        leaves.name(parent): leaves.table(parent) for leaves in generations for parent in PARENTS
    }.values()
    for table in (*tables, sql.Identifier("pg_catalog", "pg_statistic")):
        try:
            autocommitting(connection).execute(statement("vacuum_leaf", leaf=table))
        except Exception as error:
            # A generation may be dropped concurrently.
            if not is_missing_table(error):
                raise


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """The range of dates of the documents that have expired since the previous sweep."""

    after: datetime | None  # the first date, included; None for no limit
    through: datetime  # the end of the range, not included


class PurgedRows(GenerationStatements):
    """Removes documents from a generation."""

    def delete_expired(self, collection_id: CollectionId, limit: int) -> int:
        """Delete up to `limit` documents that have expired in a generation; return the number of deleted documents.

        Deletes nothing if the generation is not live, or if the collection has an attached table.
        """
        parameters = {"collection_id": collection_id, "limit": limit}
        return self.run("delete_expired_documents", **parameters).count

    def delete_work(self, doc_ids: Ints, stages: Sequence[WorkStage]) -> int:
        """Delete work on documents, and return the number of documents.

        Errors that other documents share with these documents are redacted.
        """
        parameters = {"doc_ids": packed_ids(doc_ids), "stages": list(stages)}
        self.run("redact_errors", doc_ids=packed_ids(doc_ids))
        in_batches = int(self.run("purge_batches", **parameters).value())
        return in_batches + self.run("purge_work", **parameters).count

    def count_traces(self, doc_ids: Ints, owners: Ints, keys: Keys) -> Traces:
        """Count a generation's rows about documents; `owners` are the heads among them, `keys` their bucket hashes."""
        parameters = {
            "doc_ids": packed_ids(doc_ids),
            "owners": packed(np.repeat(owners, lengths(keys))),
            "bucket_hashes": packed(to_bigint(flat(keys))),
        }
        return self.run("count_traces", **parameters).one(Traces)

    def delete_document_rows(self, doc_ids: Ints) -> Traces:
        """Delete all rows about documents from a generation that is not maintained.

        The remaining twins of a deleted head get another head, and a cluster whose number was a deleted doc_id gets
        another number. A new head gets no band rows before the next build.
        """
        parameters = {"doc_ids": packed_ids(doc_ids)}
        deleted = self.run("delete_document_rows", **parameters).one(Traces)
        for name in ("reassign_heads", "reassign_clusters"):
            self.run(name, **parameters)
        return deleted

    def begin_retention(self) -> None:
        """Record the start of a build; sweeps will look for documents that expired after it."""
        self.run("begin_retention")

    def queue_expired(self, collection_id: CollectionId) -> int:
        """Queue the documents that expired since the last call, as if they had been deleted; return their number.

        The cutoff advances in the same transaction. Nothing is queued for a generation that is not maintained, or that
        keeps documents of any age.
        """
        cutoffs = self.run("read_retention").first(Cutoffs)
        if cutoffs is None:
            return 0

        parameters = {"collection_id": collection_id, "after": cutoffs.after, "through": cutoffs.through}
        expired = self.run("queue_expired", **parameters).count
        self.run("advance_retention", through=cutoffs.through)
        return expired


def purge_verdicts(connection: Connection, doc_ids: Ints) -> tuple[int, bool]:
    """Delete verdicts and reviews about documents; return the number of verdicts, and whether any was a veto."""
    are_vetoes = run(connection, "purge_verdicts", doc_ids=packed_ids(doc_ids)).values()
    return len(are_vetoes), any(are_vetoes)
