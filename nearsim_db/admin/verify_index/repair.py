"""Repair of single documents, pairs and clusters: what is at fault is taken out exactly and done again."""

from collections.abc import Callable
from functools import partial

import numpy as np

from nearsim_db.admin.verify_index.findings import Findings
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.dispatch import dispatch_changes
from nearsim_db.store import bands, pairs, signatures
from nearsim_db.store import verify_index as store
from nearsim_db.store.catalog import Generation
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import again_after_conflicts, translated
from nearsim_db.store.driver.locks import Lock, hold_lock
from nearsim_db.store.work import queue


def repair_in_place(
    database: Database, context: Context, findings: Findings, catch_up: Callable[[Generation], None]
) -> None:
    """Take out what is at fault, queue what makes it again, and do all that is queued."""
    actions = [_take_out_documents, _take_out_pairs, _queue_clusters]
    with translated(), database.engine.connect() as connection:
        for action in actions:
            again_after_conflicts(connection, partial(action, connection, context, findings))
            connection.commit()
        dispatch_changes(database.engine)
    catch_up(context.generation)


def _take_out_documents(connection: Connection, context: Context, findings: Findings) -> None:
    """Documents go with all that share a head or a digest with them, as any of these may be the head of the others."""
    if not findings.documents:
        return
    leaves = context.leaves
    hold_lock(connection, Lock.STORE, context.generation.generation_id)
    asked = sorted(findings.documents)
    gone = sorted({*asked, *store.read_families(connection, leaves, asked)})
    pairs.delete_pairs_of(connection, leaves, np.array(gone, np.int64))
    signatures.delete_signatures(connection, leaves, gone)
    buckets = store.delete_all_bands(connection, leaves, gone)
    # Whoever takes the place of an anchor that goes has to look through its bucket.
    anchors, full = bands.read_anchors(connection, leaves, context.bucket_limit, buckets)
    crowded = set(full.view(np.int64).tolist())
    queue.queue_work(
        connection, leaves, "search", sorted({doc_id for bucket, doc_id in anchors if bucket in crowded})
    )
    queue.queue_work(connection, leaves, "sign", gone)
    queue.queue_work(connection, leaves, "link", gone)


def _take_out_pairs(connection: Connection, context: Context, findings: Findings) -> None:
    if not findings.lost_pairs and not findings.wrong_pairs:
        return
    leaves = context.leaves
    hold_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    wrong = np.array(findings.wrong_pairs, np.int64).reshape(-1, 2)
    store.delete_pairs(connection, leaves, wrong)
    queue.queue_work(connection, leaves, "link", np.unique(wrong))
    lost = np.array(findings.lost_pairs, np.int64).reshape(-1, 2)
    queue.queue_work(connection, leaves, "search", np.union1d(wrong, lost))


def _queue_clusters(connection: Connection, context: Context, findings: Findings) -> None:
    if findings.has_wrong_clusters:
        queue.queue_work(connection, context.leaves, "link", [queue.WHOLE])
