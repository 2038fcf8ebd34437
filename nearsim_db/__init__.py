"""nearsim: near-duplicate detection that lives in PostgreSQL."""

from typing import TYPE_CHECKING

from nearsim_db.errors import DuplicateError, NearsimError
from nearsim_db.recipe import Recipe
from nearsim_db.records import (
    Cluster,
    Document,
    Duplicate,
    IngestSummary,
    Judgement,
    Match,
    OnDuplicate,
    Pair,
    Reject,
)

if TYPE_CHECKING:
    from nearsim_db.database import Database
    from nearsim_db.index import Index
    from nearsim_db.result_set import Deduper

__all__ = [
    "Cluster",
    "Database",
    "Deduper",
    "Document",
    "Duplicate",
    "DuplicateError",
    "Index",
    "IngestSummary",
    "Judgement",
    "Match",
    "NearsimError",
    "OnDuplicate",
    "Pair",
    "Recipe",
    "Reject",
]

_HEAVY = {
    "Database": "nearsim_db.database",
    "Deduper": "nearsim_db.result_set",
    "Index": "nearsim_db.index",
}


def __getattr__(name: str) -> object:
    """Import what needs NumPy and the database driver only when it is asked for."""
    if name in _HEAVY:
        from importlib import import_module

        return getattr(import_module(_HEAVY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
