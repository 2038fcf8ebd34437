"""Does an index agree with its documents: checked against them, told, and repaired."""

from nearsim_db.admin.verify_index.findings import Audit, Fault, Kind
from nearsim_db.admin.verify_index.verification import Outcome, verify_index

__all__ = ["Audit", "Fault", "Kind", "Outcome", "verify_index"]
