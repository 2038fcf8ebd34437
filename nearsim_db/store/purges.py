"""Purging: every place that holds something of a document, by name, and how many rows were there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.codec import to_bigint
from nearsim_db.store.driver.engine import autocommitting, driver, is_missing_table
from nearsim_db.store.driver.statements import PARENTS, SCHEMA, Leaves, statement
from nearsim_db.store.work.queue import Stage

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Traces:
    """How many rows a generation holds, or held, of some documents."""

    signatures: int
    bands: int
    pairs: int
    cluster_rows: int


def delete_documents(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]
) -> dict[str, int]:
    """Delete documents; returns the doc_ids of those that were there."""
    parameters = {"collection_id": collection_id, "external_ids": list(external_ids)}
    rows = driver(connection).execute(statement("purge_documents"), parameters).fetchall()
    return dict(cast(list[tuple[str, int]], rows))


def delete_changes(connection: Connection, doc_ids: Ids) -> int:
    """Delete what was noted of documents."""
    return driver(connection).execute(statement("purge_changes"), {"doc_ids": packed_ids(doc_ids)}).rowcount


def note_deleted(connection: Connection, collection_id: CollectionId, doc_ids: Ids) -> None:
    """Note that documents were deleted, for every generation that is there when the note is made into work."""
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
    driver(connection).execute(statement("capture_deletes"), parameters)


def delete_work(connection: Connection, leaves: Leaves, doc_ids: Ids, stages: Sequence[Stage]) -> int:
    """Delete work on documents, and the texts of errors that others share with them."""
    parameters = {"doc_ids": packed_ids(doc_ids), "stages": list(stages)}
    inner = driver(connection)
    inner.execute(statement("redact_errors", leaves), {"doc_ids": packed_ids(doc_ids)})
    return inner.execute(statement("purge_work", leaves), parameters).rowcount


def have_tables(connection: Connection, leaves: Leaves) -> bool:
    """Whether a generation has tables of its own."""
    row = (
        driver(connection).execute(statement("has_leaf"), {"leaf": leaves.qualified("signature")}).fetchone()
    )
    return row is not None and bool(row[0])


def count_traces(
    connection: Connection, leaves: Leaves, doc_ids: Ids, owners: Ids, keys: NDArray[np.uint64]
) -> Traces:
    """What a generation holds of documents; `owners` are the heads among them, `keys` (n, bands) uint64 theirs."""
    parameters = {
        "doc_ids": packed_ids(doc_ids),
        "owners": packed(np.repeat(owners, keys.shape[1])),
        "bucket_hashes": packed(to_bigint(keys.reshape(-1))),
    }
    row = driver(connection).execute(statement("count_traces", leaves), parameters).fetchone()
    return Traces(*cast(tuple[int, int, int, int], row))


def strike_out(connection: Connection, leaves: Leaves, doc_ids: Ids) -> Traces:
    """Delete all rows of documents in a generation that cannot be worked on.

    Twins and clusters are named after others, but the twins are not found by their bands until it is built again.
    """
    parameters = {"doc_ids": packed_ids(doc_ids)}
    row = driver(connection).execute(statement("delete_document_rows", leaves), parameters).fetchone()
    for name in ("reassign_heads", "reassign_clusters"):
        driver(connection).execute(statement(name, leaves), parameters)
    return Traces(*cast(tuple[int, int, int, int], row))


def note_purge(connection: Connection, collection_id: CollectionId) -> datetime:
    """Tell whoever keeps features of a collection in memory to let go of them."""
    row = driver(connection).execute(statement("record_purge"), {"collection_id": collection_id}).fetchone()
    return cast(tuple[datetime], row)[0]


def vacuum(connection: Connection, generations: Sequence[Leaves]) -> None:
    """Make the space of deleted rows free, and forget samples of them that the planner keeps.

    The connection must be in autocommit. Tables that are not the user's own the server leaves alone.
    """
    tables = [
        sql.Identifier(SCHEMA, name)
        for name in ("document", "change", "work", "probe", "probe_match", "event", "verdict")
    ]
    tables += [leaves.table(parent) for leaves in generations for parent in PARENTS]
    for table in (*tables, sql.Identifier("pg_catalog", "pg_statistic")):
        try:
            autocommitting(connection).execute(statement("vacuum_leaf", leaf=table))
        except Exception as error:  # a generation may be dropped meanwhile
            if not is_missing_table(error):
                raise
