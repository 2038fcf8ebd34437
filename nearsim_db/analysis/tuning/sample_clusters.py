"""Clusters of a sample: what de-duplication would remove at a threshold, and how large the clusters would be."""

from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.corpus import band_keys
from nearsim_db.analysis.tuning.distinct_sets import DistinctSets
from nearsim_db.similarity.arrays import Floats, Hashes, Ints
from nearsim_db.similarity.clustering import NO_EDGES, average_clusters, connected_components, star_clusters
from nearsim_db.similarity.linked_pairs import find_full_buckets, linked_pairs
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe_warnings import has_excessive_duplicates

# Comparing this number of ids, or clustering this number of pairs by average linkage, takes about two seconds.
_MAX_MERGED_IDS = 1_200_000_000
_MAX_CLUSTERED_PAIRS = 200_000


@dataclass(frozen=True, slots=True)
class SampleClusters:
    """Counts of the clusters of a sample, and of the documents that de-duplication would remove."""

    documents: int  # documents that have features and were clustered
    removed: int  # documents that are not the survivor of their cluster
    largest: int  # documents in the largest cluster, 0 if there is none
    texts: int  # different texts that were clustered
    pairs: int  # pairs of different texts of the same cluster

    @property
    def removed_share(self) -> float:
        """Share of the documents that are removed."""
        return self.removed / self.documents if self.documents else 0.0

    @property
    def largest_share(self) -> float:
        """Share of the documents that are in the largest cluster."""
        return self.largest / self.documents if self.documents else 0.0

    @property
    def is_excessive(self) -> bool:
        """Whether most documents are removed, or one cluster has more than 5 % of them."""
        return has_excessive_duplicates(self.documents, self.removed, self.largest)


class PairsToCluster:
    """The pairs of a sample that an index would find at or above a threshold.

    They can be clustered at this threshold or a higher one. If there are too many candidates to compare in a few
    seconds, or too many pairs to cluster, only a random part of the documents is used.
    """

    def __init__(self, sets: DistinctSets, profile: Profile, seed: int) -> None:
        self._linkage = profile.recipe.cluster.linkage
        self._members = sets.members
        generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune clusters", 4)))
        self._order: Ints = generator.permutation(len(sets))

        limit, keys = profile.recipe.match.bucket_limit, band_keys(profile, sets)
        self._rows = self._affordable(keys, limit, float(sets.sizes.mean()))
        keys = keys[self._rows]
        blocks = [*linked_pairs(keys, limit, find_full_buckets(keys, limit), sets.backend)]
        nothing = np.zeros(0, np.int64)
        left, right = (np.concatenate([nothing, *(block[side] for block in blocks)]) for side in (0, 1))
        left, right = self._rows[left], self._rows[right]

        similarity = sets.similarities(left, right)
        is_similar = similarity >= profile.recipe.match.threshold - 1e-12
        self._pairs: Ints = np.stack((left[is_similar], right[is_similar]), axis=1)
        self._similarity: Floats = similarity[is_similar]

    def _affordable(self, keys: Hashes, limit: int, mean_size: float) -> Ints:
        """Draw as many sets as there is time to compare, and return their rows in ascending order."""
        count = len(keys)
        while count > 1 and _count_links(keys[self._order[:count]], limit) * 2 * mean_size > _MAX_MERGED_IDS:
            count = count * 2 // 3
        return np.sort(self._order[:count])

    def cluster(self, threshold: float) -> SampleClusters:
        """Cluster the sample by the recipe's linkage. `threshold` must not be below the threshold of the pairs."""
        is_similar = self._similarity >= threshold - 1e-12
        pairs, similarities, rows = self._pairs[is_similar], self._similarity[is_similar], self._rows

        while len(pairs) > _MAX_CLUSTERED_PAIRS:
            rows = np.sort(self._order[: len(rows) * 2 // 3])
            inside = np.isin(pairs, rows).all(axis=1)
            pairs, similarities = pairs[inside], similarities[inside]

        # The clustering functions take document numbers, which begin with 1.
        edges = pairs + 1
        match self._linkage:
            case "connected":
                numbers, first = connected_components(edges)
            case "representative":
                numbers, first = star_clusters(edges, similarities, NO_EDGES, np.unique(edges))
            case "average":
                numbers, first = average_clusters(edges, similarities, NO_EDGES, NO_EDGES, threshold)

        cluster_of = rows + 1
        cluster_of[np.searchsorted(rows, numbers - 1)] = first
        texts = np.bincount(cluster_of)
        sizes = np.bincount(cluster_of, self._members[rows]).astype(np.int64)
        sizes = sizes[sizes > 0]
        largest = int(sizes.max(initial=0))
        return SampleClusters(
            int(sizes.sum()),
            int((sizes - 1).sum()),
            largest if largest > 1 else 0,
            len(rows),
            int((texts * (texts - 1) // 2).sum()),
        )


def _count_links(keys: Hashes, limit: int) -> int:
    """Count the pairs of a set and an anchor in all buckets. Anchors are the first `limit` sets of a bucket.

    A pair that shares several buckets is counted once for each of them.
    """
    sizes = np.unique(keys, return_counts=True)[1]
    anchors = np.minimum(sizes, limit) if limit else sizes
    return int((anchors * (anchors - 1) // 2 + (sizes - anchors) * anchors).sum())
