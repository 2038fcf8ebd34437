"""Help to find clusters whose texts only a chain of pairs connects: limits, samples, and their lowest similarity.

The work is bounded: of the largest clusters, all pairs of a sample of texts are compared. So the similarity that is
found is an upper bound of the lowest similarity in a cluster, and a chain may be overlooked.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nearsim_db.similarity.arrays import Floats, Ints
from nearsim_db.similarity.recipe import Recipe

MAX_CHECKED_CLUSTERS = 50
MAX_SAMPLED_TEXTS = 32
# A chain has at least three texts.
MIN_TEXTS = 3


class ClusterSpread(NamedTuple):
    """How far apart the texts of a cluster are."""

    documents: int  # of the cluster, equal texts included
    similarity: float  # the lowest among the sampled texts


def may_have_chains(recipe: Recipe) -> bool:
    """Whether clusters of a recipe may be chains that nobody asked for."""
    return recipe.cluster.linkage == "connected" and not recipe.cluster.allow_chains


def sampled_rows(count: int) -> Ints:
    """Return up to `MAX_SAMPLED_TEXTS` numbers below `count`, evenly spread from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(count, MAX_SAMPLED_TEXTS)).round().astype(np.int64))


def lowest_similarity(count: int, compare: Callable[[Ints, Ints], Floats]) -> float:
    """Return the lowest similarity of `count` texts, at least 2; `compare` takes the numbers of m pairs from 0."""
    return float(compare(*np.triu_indices(count, 1)).min())
