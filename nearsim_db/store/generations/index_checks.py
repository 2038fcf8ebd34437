"""Statements of verify-index, which read an index and its documents, and delete and rebuild what it repairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from psycopg import sql

from nearsim_db.records import CollectionId, Evidence, WorkStage
from nearsim_db.similarity.arrays import Hashes, Ints, Mask, Sketches
from nearsim_db.similarity.sketch.family import Family
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.codec import empty_sketch, from_bigint, sketches_from
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.statements import (
    INDEX_SCHEMA,
    SCHEMA,
    GenerationStatements,
    Leaves,
    run,
    statement,
)
from nearsim_db.store.generations.tables import GenerationTables
from nearsim_db.store.work.queue import WHOLE_GENERATION

# For each table, the two bigint columns by which its rows, and the entries of its index, are counted and hashed.
_KEYS = {
    "signature": ("doc_id", "doc_id"),
    "band": ("bucket_hash", "doc_id"),
    "similar_pair": ("left_id", "right_id"),
    "cluster_member": ("doc_id", "doc_id"),
}


@dataclass(frozen=True, slots=True)
class SignedDocument:
    """A document and its signature. If either is missing, its fields are None."""

    doc_id: int
    is_there: bool  # whether the document exists
    is_inside: bool  # whether it exists and is younger than the retention age
    revision: int | None
    is_signed: bool
    signed_revision: int | None
    feature_count: int | None
    digest: UUID | None
    sketch: bytes | None
    numbers: int | None  # digest of the numbers in the text
    head_id: int | None
    first: int | None  # first signed document with the same digest of features


@dataclass(frozen=True, slots=True)
class StoredBands:
    """Documents that are heads or have band rows. All arrays have the same length."""

    doc_ids: Ints
    are_heads: Mask
    sketches: Sketches  # a sketch of zeros, or an empty one, if the document is no head
    rows: Ints  # numbers of band rows
    sums: Hashes  # for each document, XOR of the hashes of its band rows


@dataclass(frozen=True, slots=True)
class TableState:
    """What the catalog of PostgreSQL says about a table."""

    is_logged: bool
    is_attached: bool
    indexes: Sequence[str]  # the columns of each usable index
    unusable: Sequence[str]  # the columns of each unusable index
    triggers: int  # number of the triggers that are enabled


# The evidence of a pair, and then: whether it waits for review, whether only a passage makes it a pair, and the number
# of words of its longest passage.
StoredEvidence = tuple[Evidence, tuple[bool, bool, int | None]]


class IndexChecks(GenerationStatements):
    """What verify-index reads from the tables of a generation, and what its repair deletes there."""

    def ids_after(self, collection_id: CollectionId, after: int, amount: int) -> list[int]:
        """Return the next doc_ids of documents and of signatures; a signature may outlive its document."""
        parameters = {"collection_id": collection_id, "after": after, "amount": amount}
        return self.run("list_ids_after", "binary", **parameters).values()

    def sample_ids(self, collection_id: CollectionId, amount: int, seed: int) -> list[int]:
        """Return a random sample of the doc_ids of documents and signatures, in ascending order."""
        parameters = {"collection_id": collection_id, "amount": amount, "seed": seed}
        return sorted(self.run("sample_ids", "binary", **parameters).values())

    def read_signed_documents(
        self, collection_id: CollectionId, doc_ids: Sequence[int]
    ) -> list[SignedDocument]:
        """Return the given documents and their signatures, in the order of doc_id."""
        parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
        return self.run("read_signed_documents", "binary", **parameters).all(SignedDocument)

    def find_pending_documents(
        self, collection_id: CollectionId, doc_ids: Sequence[int] | Ints, stages: Sequence[WorkStage]
    ) -> set[int]:
        """Return those documents that have queued work of the given stages, or captured changes.

        A 0 among them means that all documents may have changed.
        """
        parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids), "stages": list(stages)}
        return set(self.run("find_pending_documents", "binary", **parameters).values())

    def stream_bands(self, family: Family, batch: int) -> Iterator[StoredBands]:
        """Yield all documents that are heads or have band rows, in the order of doc_id."""
        with self.connection.backend.cursor(name="nearsim_bands", binary=True) as cursor:
            cursor.execute(statement("read_bands_of_all", self.leaves), {"empty": empty_sketch(family)})
            while rows := cursor.fetchmany(batch):
                doc_ids, are_heads, sketches, row_counts, sums = zip(*rows, strict=True)
                yield StoredBands(
                    np.array(doc_ids, np.int64),
                    np.array(are_heads, np.bool_),
                    sketches_from(list(sketches), family),
                    np.array(row_counts, np.int64),
                    from_bigint(np.array(sums, np.int64)),
                )

    def read_pairs_at(self, doc_ids: Sequence[int], *, both: bool) -> dict[tuple[int, int], StoredEvidence]:
        """Return the pairs whose right document is one of the given ones; with `both`, either of the two may be.

        The keys are the doc_ids of the two documents.
        """
        parameters = {"doc_ids": packed_ids(doc_ids), "both": both}
        rows = self.run("read_pairs_at", "binary", **parameters).all(_pair)
        return dict(rows)

    def set_scan_method(self, *, by_index: bool) -> None:
        """Until the transaction ends, read tables and shards only through their indexes, or only without them."""
        if self.leaves.distributed:
            self.run("propagate_settings")
        with_index, without_index = sql.Literal(by_index), sql.Literal(not by_index)
        self.run(statement("set_scan_method", by_index=with_index, without_index=without_index))

    def checksum_leaf(self, parent: str) -> tuple[int, int]:
        """Return the number of rows of a table, and the XOR of the hashes of their keys."""
        first, second = map(sql.Identifier, _KEYS[parent])
        command = statement("checksum_leaf", first=first, second=second, leaf=self.leaves.rows(parent))
        row_count, checksum = self.run(command).row()
        return row_count, checksum

    def count_differing_copies(self) -> int:
        """Return the number of differences between the signatures and their copies for the views.

        A difference is a signature whose copy has other values or is missing, or a copy without a signature.
        """
        return int(self.run("count_differing_copies").value())

    def find_malformed_sketches(self, family: Family) -> list[int]:
        """Return the documents whose sketch has the wrong size."""
        size = len(empty_sketch(family))
        return self.run("find_malformed_sketches", "binary", bytes=size).values()

    def read_families(self, doc_ids: Sequence[int]) -> list[int]:
        """Return those of the documents that are signed, and all documents that share a head or a digest with them."""
        return self.run("read_families", "binary", doc_ids=packed_ids(doc_ids)).values()

    def delete_all_bands(self, doc_ids: Sequence[int]) -> Hashes:
        """Delete all band rows of the documents, whose keys the caller does not know; return their buckets."""
        buckets = self.run("delete_all_bands", "binary", doc_ids=packed_ids(doc_ids)).values()
        return from_bigint(np.array(buckets, np.int64))

    def delete_pairs(self, pairs: Ints) -> None:
        """Delete pairs, which are the rows of an int64 array of shape (m, 2)."""
        self.run("delete_pairs", left_ids=packed_ids(pairs[:, 0]), right_ids=packed_ids(pairs[:, 1]))


def _pair(left: int, right: int, *columns: Any) -> tuple[tuple[int, int], StoredEvidence]:
    *evidence, in_review, by_passage, longest_passage = columns
    return (left, right), (Evidence(*evidence), (in_review, by_passage, longest_passage))


# The views read the signatures of large generations from the copies in this table, not from the generations' own
# tables.
COPIES = "signed_document"


def restore_copies(connection: Connection) -> None:
    """Copy the signatures of all large generations to the table COPIES again."""
    run(connection, "restore_copies")


def restore_shared(connection: Connection, parent: str) -> bool:
    """Build the table of all pairs, or of all cluster members, again from those of its rows that can still be read.

    Queues work that computes lost rows again. Returns whether any generation may have lost rows.
    """
    damaged_ids = run(connection, "restore_shared", parent=parent).value()
    distributed = placement.is_distributed(connection)
    for generation_id in damaged_ids:
        tables = GenerationTables(connection, Leaves(generation_id, distributed))
        if parent == "cluster_member":
            tables.work.add("link", [WHOLE_GENERATION])
        else:
            tables.run("queue_heads")
    return bool(damaged_ids)


def read_table_state(connection: Connection, table: str, parent: str = COPIES) -> TableState | None:
    """Return what the catalog says about a table of the schema nearsim_index, or None if the table is missing."""
    parameters = {"leaf": f"{INDEX_SCHEMA}.{table}", "parent": f"{SCHEMA}.{parent}"}
    return run(connection, "read_table_state", **parameters).first(TableState)


def rebuild_indexes(connection: Connection, table: str) -> None:
    """Build the indexes of a table of the schema nearsim_index again, while other sessions read and write it.

    The connection must be in autocommit mode. If not all rows can be read, this raises the error of the server, and the
    index that could not be built stays as it is.
    """
    existing = _list_indexes(connection, table)
    try:
        for name in existing:
            _change_index(connection, "rebuild_index", name)
    except psycopg.Error:
        # A failed REINDEX CONCURRENTLY leaves an invalid index behind.
        for name in _list_indexes(connection, table):
            if name not in existing:
                _change_index(connection, "drop_index", name)
        raise


def _list_indexes(connection: Connection, table: str) -> list[str]:
    return run(connection, "list_indexes", table=f"{INDEX_SCHEMA}.{table}").values()


def _change_index(connection: Connection, command: str, name: str) -> None:
    autocommitting(connection).execute(statement(command, index=sql.Identifier(INDEX_SCHEMA, name)))


def read_external_ids(connection: Connection, doc_ids: Sequence[int]) -> dict[int, str]:
    """Return the external ids of those of the documents that exist, by doc_id."""
    return dict(run(connection, "read_external_ids", doc_ids=packed_ids(doc_ids)).rows())
