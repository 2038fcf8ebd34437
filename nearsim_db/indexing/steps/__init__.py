"""The steps of indexing: sign, search, cluster.

The bulk build and the work queue are composed of these steps. A step never commits; its caller does.
"""

from nearsim_db.indexing.steps.cluster import (
    extend_clusters,
    lock_clusters,
    rebuild_clusters,
    update_clusters,
)
from nearsim_db.indexing.steps.search import (
    read_features,
    search_candidates,
    search_committed,
    search_full_buckets,
    verify_candidates,
)
from nearsim_db.indexing.steps.sign import (
    begin_encoding,
    finish_encoding,
    labelled,
    merge_heads,
    sign_documents,
    store_signatures,
)

__all__ = [
    "begin_encoding",
    "extend_clusters",
    "finish_encoding",
    "labelled",
    "lock_clusters",
    "merge_heads",
    "read_features",
    "rebuild_clusters",
    "search_candidates",
    "search_committed",
    "search_full_buckets",
    "sign_documents",
    "store_signatures",
    "update_clusters",
    "verify_candidates",
]
