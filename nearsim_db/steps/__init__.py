"""The steps of the road, each written once: sign, store, search, verify, link.

The bulk build and the rounds that keep a living index up to date compose them. No step commits; who composes them does.
"""

from nearsim_db.steps.context import Context
from nearsim_db.steps.linking import join, link, relink
from nearsim_db.steps.searching import search, widen
from nearsim_db.steps.signing import sign
from nearsim_db.steps.storing import merge_heads, store
from nearsim_db.steps.verifying import read_features, verify

__all__ = [
    "Context",
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
