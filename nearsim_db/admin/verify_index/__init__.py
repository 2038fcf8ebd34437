"""Verification of an index against its documents, and its repair."""

from nearsim_db.admin.verify_index.findings import Fault, IndexCheck, Kind
from nearsim_db.admin.verify_index.verify_and_repair import DEFAULT_SAMPLE, VerifyResult, verify_index

__all__ = ["DEFAULT_SAMPLE", "Fault", "IndexCheck", "Kind", "VerifyResult", "verify_index"]
