"""Does an index agree with its documents: checked against them, told, and repaired."""

from nearsim_db.audit.findings import Audit, Fault, Kind
from nearsim_db.audit.verifying import Outcome, verify

__all__ = ["Audit", "Fault", "Kind", "Outcome", "verify"]
