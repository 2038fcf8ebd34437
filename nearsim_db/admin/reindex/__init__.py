"""Reindex without stopping: a generation is built beside the live one, compared, promoted, and can be taken back."""

from nearsim_db.admin.reindex.diff_result import Difference
from nearsim_db.admin.reindex.limits import Limit, Limits
from nearsim_db.admin.reindex.reindex import Reindex
from nearsim_db.admin.reindex.status import Status

__all__ = ["Difference", "Limit", "Limits", "Reindex", "Status"]
