"""Reindex without downtime: build a generation beside the live one, compare the two, promote it, roll back."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearsim_db.admin.reindex.diff import Difference
    from nearsim_db.admin.reindex.limits import Limit, Limits
    from nearsim_db.admin.reindex.reindex import Reindex
    from nearsim_db.admin.reindex.status import Status

__all__ = ["Difference", "Limit", "Limits", "Reindex", "Status"]

_MODULES = {
    "Difference": "diff",
    "Limit": "limits",
    "Limits": "limits",
    "Reindex": "reindex",
    "Status": "status",
}


def __getattr__(name: str) -> object:
    """Import on first access, because showing the status of generations does not need the modules that build them."""
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
