"""Differences that queued work will resolve, which do not count as faults."""

from collections.abc import Collection, Sequence

from nearsim_db.admin.verify_index.findings import Findings
from nearsim_db.store import verify_index as store
from nearsim_db.store.driver import Connection
from nearsim_db.store.work.queue import STAGES, Stage


def find_pending_documents(
    connection: Connection, findings: Findings, doc_ids: Collection[int], stages: Sequence[Stage] = STAGES
) -> Collection[int]:
    """Return which documents have queued work of some stages, or changes still to be dispatched, in this snapshot."""
    if not doc_ids:
        return set()
    generation = findings.generation
    found = store.find_pending_documents(
        connection, generation.leaves, generation.collection_id, sorted(doc_ids), stages
    )
    return doc_ids if 0 in found else found
