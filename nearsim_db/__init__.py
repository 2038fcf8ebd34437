"""nearsim: near-duplicate detection that lives in PostgreSQL."""

import logging
from typing import TYPE_CHECKING

from nearsim_db.errors import DuplicateError, NearsimError
from nearsim_db.records import (
    Cluster,
    ClusterMember,
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
    __version__: str
    from nearsim_db.analysis.dedupe_rows import Deduped, RemovedRow, dedupe
    from nearsim_db.index import Index
    from nearsim_db.search.explanation import Explanation
    from nearsim_db.search.result_set import Deduper
    from nearsim_db.similarity.recipe import Recipe
    from nearsim_db.store.database import Database

__all__ = [
    "Cluster",
    "ClusterMember",
    "Database",
    "Deduped",
    "Deduper",
    "Document",
    "Duplicate",
    "DuplicateError",
    "Explanation",
    "Index",
    "IngestSummary",
    "Judgement",
    "Match",
    "NearsimError",
    "OnDuplicate",
    "Pair",
    "Recipe",
    "Reject",
    "RemovedRow",
    "__version__",
    "dedupe",
]

_LAZY = {
    "Database": "nearsim_db.store.database",
    "Deduped": "nearsim_db.analysis.dedupe_rows",
    "Deduper": "nearsim_db.search.result_set",
    "Explanation": "nearsim_db.search.explanation",
    "Index": "nearsim_db.index",
    "Recipe": "nearsim_db.similarity.recipe",
    "RemovedRow": "nearsim_db.analysis.dedupe_rows",
    "dedupe": "nearsim_db.analysis.dedupe_rows",
}


logging.getLogger("nearsim").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """Import classes that need other libraries on first access; `__version__` is that of the installed package."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("nearsim-db")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
