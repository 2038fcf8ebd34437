"""nearsim: near-duplicate detection that lives in PostgreSQL."""

import logging
from typing import TYPE_CHECKING

from nearsim_db.errors import (
    BuildStoppedError,
    ConflictError,
    DatabaseError,
    DuplicateError,
    EmptyIndexError,
    FingerprintError,
    InputError,
    LimitsExceededError,
    MissedEventsError,
    MissingCollectionError,
    NearsimError,
    NotFoundError,
    PoolError,
    RecipeConflictError,
    RecipeError,
    SchemaError,
    ServerError,
    UnreachableError,
)
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
    Results,
)

if TYPE_CHECKING:
    from nearsim_db.analysis.pair_scores import PairScore, score

    __version__: str
    from nearsim_db.async_index import AsyncIndex
    from nearsim_db.deduplication.rows import Deduped, RemovedRow, dedupe
    from nearsim_db.index import Index
    from nearsim_db.search.answers import IndexedProfile
    from nearsim_db.search.explanation import Explanation
    from nearsim_db.search.result_set import Deduper
    from nearsim_db.similarity import presets
    from nearsim_db.similarity.recipe import (
        Bands,
        ClusterRules,
        Hash,
        MatchRules,
        Normalise,
        Recipe,
        Retain,
        Shingle,
        Sketch,
    )
    from nearsim_db.store.database import Database

__all__ = [
    "AsyncIndex",
    "Bands",
    "BuildStoppedError",
    "Cluster",
    "ClusterMember",
    "ClusterRules",
    "ConflictError",
    "Database",
    "DatabaseError",
    "Deduped",
    "Deduper",
    "Document",
    "Duplicate",
    "DuplicateError",
    "EmptyIndexError",
    "Explanation",
    "FingerprintError",
    "Hash",
    "Index",
    "IndexedProfile",
    "IngestSummary",
    "InputError",
    "Judgement",
    "LimitsExceededError",
    "Match",
    "MatchRules",
    "MissedEventsError",
    "MissingCollectionError",
    "NearsimError",
    "Normalise",
    "NotFoundError",
    "OnDuplicate",
    "Pair",
    "PairScore",
    "PoolError",
    "Recipe",
    "RecipeConflictError",
    "RecipeError",
    "Reject",
    "RemovedRow",
    "Results",
    "Retain",
    "SchemaError",
    "ServerError",
    "Shingle",
    "Sketch",
    "UnreachableError",
    "__version__",
    "dedupe",
    "presets",
    "score",
]

_RECIPE = "nearsim_db.similarity.recipe"
_LAZY = {
    "AsyncIndex": "nearsim_db.async_index",
    "Database": "nearsim_db.store.database",
    "Deduped": "nearsim_db.deduplication.rows",
    "Deduper": "nearsim_db.search.result_set",
    "Explanation": "nearsim_db.search.explanation",
    "Index": "nearsim_db.index",
    "IndexedProfile": "nearsim_db.search.answers",
    "RemovedRow": "nearsim_db.deduplication.rows",
    "dedupe": "nearsim_db.deduplication.rows",
    "PairScore": "nearsim_db.analysis.pair_scores",
    "score": "nearsim_db.analysis.pair_scores",
    "Recipe": _RECIPE,
    "Bands": _RECIPE,
    "ClusterRules": _RECIPE,
    "Hash": _RECIPE,
    "MatchRules": _RECIPE,
    "Normalise": _RECIPE,
    "Retain": _RECIPE,
    "Shingle": _RECIPE,
    "Sketch": _RECIPE,
}
_MODULES = {"presets": "nearsim_db.similarity.presets"}


logging.getLogger("nearsim").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """Import a public name on first access if its module needs other libraries; look up `__version__` the same way."""
    from importlib import import_module

    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name == "__version__":
        from importlib.metadata import version

        return version("nearsim-db")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all public names, also those that are not imported yet."""
    return sorted({*globals(), *__all__})
