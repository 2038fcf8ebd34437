"""Reindex without downtime: build a generation beside the live one, compare, promote, roll back."""

from nearsim_db.admin.reindex.diff_result import Difference
from nearsim_db.admin.reindex.limits import Limit, Limits
from nearsim_db.admin.reindex.reindex import Reindex
from nearsim_db.admin.reindex.status import Status

__all__ = ["Difference", "Limit", "Limits", "Reindex", "Status"]
