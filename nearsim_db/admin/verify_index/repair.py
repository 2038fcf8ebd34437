"""Repair in place: faulty documents, pairs and clusters are removed and queued for rebuilding."""

from functools import partial

import numpy as np

from nearsim_db.admin.verify_index.findings import KEPT, Findings
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.dispatch import dispatch_changes
from nearsim_db.store import bucket_lookups, pairs, signatures
from nearsim_db.store import verify_index as store
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import retry_conflicts, translate_errors
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.work import queue

_FEW = 100  # differences always repaired in place, regardless of index size
_SHARE = 10  # beyond them, at most every tenth may differ


def is_beyond_repair(findings: Findings) -> bool:
    """Whether tables are damaged, or so much differs that a rebuild is faster."""
    return findings.is_damaged or any(
        amount >= KEPT or (amount > _FEW and amount * _SHARE > findings.checked[kind])
        for kind, amount in findings.differing.items()
    )


def repair_in_place(database: Database, context: Context, findings: Findings) -> None:
    """Remove what is faulty, and queue the work that rebuilds it."""
    with translate_errors(), database.engine.connect() as connection:
        for repair in (_repair_documents, _repair_pairs, _repair_clusters):
            retry_conflicts(connection, partial(repair, connection, context, findings))
            connection.commit()
        dispatch_changes(database.engine)


def _repair_documents(connection: Connection, context: Context, findings: Findings) -> None:
    """Sign faulty documents again, with all that share a head or a digest with them and might take over as head."""
    if not findings.documents:
        return
    leaves = context.leaves
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id)
    faulty = sorted(findings.documents)
    removed = sorted({*faulty, *store.read_families(connection, leaves, faulty)})
    pairs.delete_pairs_of(connection, leaves, np.array(removed, np.int64))
    signatures.delete_signatures(connection, leaves, removed)
    buckets = store.delete_all_bands(connection, leaves, removed)
    # A document that replaces a removed anchor has to search the whole bucket.
    anchors, full = bucket_lookups.read_anchors(connection, leaves, context.bucket_limit, buckets)
    full_buckets = set(full.view(np.int64).tolist())
    searching = sorted({doc_id for bucket, doc_id in anchors if bucket in full_buckets})
    queue.queue_work(connection, leaves, "search", searching)
    queue.queue_work(connection, leaves, "sign", removed)
    queue.queue_work(connection, leaves, "link", removed)


def _repair_pairs(connection: Connection, context: Context, findings: Findings) -> None:
    """Delete false pairs, and search their documents and those of missing pairs again."""
    if not findings.missing_pairs and not findings.false_pairs:
        return
    leaves = context.leaves
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    false = np.array(findings.false_pairs, np.int64).reshape(-1, 2)
    store.delete_pairs(connection, leaves, false)
    queue.queue_work(connection, leaves, "link", np.unique(false))
    missing = np.array(findings.missing_pairs, np.int64).reshape(-1, 2)
    queue.queue_work(connection, leaves, "search", np.union1d(false, missing))


def _repair_clusters(connection: Connection, context: Context, findings: Findings) -> None:
    if findings.has_wrong_clusters:
        queue.queue_work(connection, context.leaves, "link", [queue.WHOLE])
