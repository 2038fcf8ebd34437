"""The views as mapped classes, read only, in a separate metadata that is never created, dropped or compared."""

from nearsim_db.store.schema.orm_views import internal as internal
from nearsim_db.store.schema.orm_views.base import View
from nearsim_db.store.schema.orm_views.operations import (
    Backlog,
    Buckets,
    Functions,
    Generations,
    LiveGenerations,
    Profiles,
)
from nearsim_db.store.schema.orm_views.results import (
    Clusters,
    CombinedPairs,
    Documents,
    Duplicates,
    Events,
    Pairs,
    Verdicts,
)

__all__ = [
    "Backlog",
    "Buckets",
    "Clusters",
    "CombinedPairs",
    "Documents",
    "Duplicates",
    "Events",
    "Functions",
    "Generations",
    "LiveGenerations",
    "Pairs",
    "Profiles",
    "Verdicts",
    "View",
]
