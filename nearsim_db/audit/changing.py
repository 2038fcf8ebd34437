"""What differs because the index has still to follow it, and is no fault."""

from collections.abc import Collection

from sqlalchemy import Connection

from nearsim_db.audit.findings import Findings
from nearsim_db.store import audits


def find_changing(connection: Connection, findings: Findings, doc_ids: Collection[int]) -> Collection[int]:
    """Those of some documents that wait to be taken in, in the snapshot in which they were looked at."""
    if not doc_ids:
        return set()
    generation = findings.generation
    found = audits.find_changing(connection, generation.leaves, generation.collection_id, sorted(doc_ids))
    return doc_ids if 0 in found else found
