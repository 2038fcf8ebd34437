"""The steps of the road, each written once: sign, store, search, verify, link.

The bulk build and the rounds that keep a living index up to date compose them. No step commits; who composes them does.
"""

from nearsim_db.indexing.steps.cluster import join, link, relink
from nearsim_db.indexing.steps.search import search, widen
from nearsim_db.indexing.steps.sign import sign
from nearsim_db.indexing.steps.store import merge_heads, store
from nearsim_db.indexing.steps.verify import read_features, verify

__all__ = [
    "join",
    "link",
    "merge_heads",
    "read_features",
    "relink",
    "search",
    "sign",
    "store",
    "verify",
    "widen",
]
