"""Checks of the installation, the server and the indexes, each with advice."""

from nearsim_db.admin.doctor.checks import examine
from nearsim_db.admin.doctor.findings import Finding, Verdict

__all__ = ["Finding", "Verdict", "examine"]
