"""The indexing steps: sign, store, search, verify, cluster.

The build and the work queue compose them. No step commits; the caller does.
"""

from nearsim_db.indexing.steps.cluster import (
    extend_clusters,
    lock_clusters,
    rebuild_clusters,
    update_clusters,
)
from nearsim_db.indexing.steps.search import require_bands, search_candidates, search_full_buckets
from nearsim_db.indexing.steps.sign import sign_documents
from nearsim_db.indexing.steps.store import merge_heads, store_signatures
from nearsim_db.indexing.steps.verify import read_features, verify_candidates

__all__ = [
    "extend_clusters",
    "lock_clusters",
    "merge_heads",
    "read_features",
    "rebuild_clusters",
    "require_bands",
    "search_candidates",
    "search_full_buckets",
    "sign_documents",
    "store_signatures",
    "update_clusters",
    "verify_candidates",
]
