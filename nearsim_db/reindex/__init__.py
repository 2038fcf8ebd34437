"""Reindex without stopping: a generation is built beside the live one, compared, promoted, and can be taken back."""

from nearsim_db.reindex.difference import Difference
from nearsim_db.reindex.limits import Limit, Limits
from nearsim_db.reindex.reindex import Reindex
from nearsim_db.reindex.status import Status

__all__ = ["Difference", "Limit", "Limits", "Reindex", "Status"]
