"""Forecasts for the corpus from which a sample was drawn: what a profile is expected to find and to cost."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets
from nearsim_db.analysis.tuning.pair_sample import WeightedPairs
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask
from nearsim_db.similarity.encoder import Encoder, Features
from nearsim_db.similarity.linked_pairs import begins, find_full_buckets, linked_pairs
from nearsim_db.similarity.metrics import intersections
from nearsim_db.similarity.profile import Profile, make_family

_CURVE_POINTS = 200
_SKETCHED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected results of a profile on a corpus. Recalls are in 0..1."""

    threshold: float
    k: int  # size of the sketch
    # The recall for which the bands were chosen, None if the recipe sets the bands
    wanted_recall: float | None
    bands: int
    rows: int
    recall_at: float  # of pairs exactly at the threshold
    recall: float  # of all pairs at or above the threshold: the S-curve weighted by the histogram
    pairs: float  # pairs of different texts at or above the threshold
    candidates: float  # candidate pairs per distinct document, without a bucket limit
    bytes_per_document: int


@dataclass(frozen=True)
class SampledCorpus:
    """A corpus, seen through the feature sets and pairs of a sample of its documents."""

    sets: DistinctSets
    pairs: WeightedPairs
    documents: int  # of the corpus
    sampled: int  # documents in the sample

    @cached_property
    def grown(self) -> Floats:
        """Number of distinct texts of the corpus that each text of the sample represents.

        A text that was sampled once is assumed to occur once in the corpus. A text that was sampled m times is assumed
        to occur m / share times, where share is the sampled fraction of the documents.
        """
        share, members = self.sampled / self.documents, self.sets.members
        if share == 1:
            return np.ones(len(members))
        occurrences = np.where(members == 1, 1.0, members / share)
        return np.asarray(1 / (1 - (1 - share) ** occurrences), np.float64)

    @cached_property
    def weight(self) -> Floats:
        """Number of pairs of the corpus that each pair of the sample represents."""
        return self.pairs.weight * self.grown[self.pairs.left] * self.grown[self.pairs.right]

    @property
    def identical_pairs(self) -> float:
        """Estimated number of pairs of documents of the corpus that have the same features."""
        size = self.sampled
        return self.sets.twin_pairs * self.documents * (self.documents - 1) / (size * (size - 1))

    def forecast(self, profile: Profile) -> Forecast:
        """Estimate recall, candidates and size for a profile."""
        probability = self._probabilities(profile)
        weight, threshold = self.weight, profile.recipe.match.threshold
        is_similar = self.pairs.similarity >= threshold - 1e-12

        pairs = float(weight[is_similar].sum())
        recall = float((weight * probability)[is_similar].sum()) / pairs if pairs else profile.expected_recall
        candidates = float((weight * probability).sum()) / max(float(self.grown.sum()), 1.0)

        return Forecast(
            threshold,
            profile.recipe.sketch.k,
            profile.recipe.bands.recall,
            profile.bands,
            profile.rows,
            profile.expected_recall,
            recall,
            pairs,
            candidates,
            profile.bytes_per_document(),
        )

    def _probabilities(self, profile: Profile) -> Floats:
        """Return the probability that each pair of the sample becomes a candidate."""
        if profile.recipe.sketch.family != "rare":
            return _probabilities(profile, self.pairs.similarity)
        # The family rare chooses its keys by weight, not at random, so count which pairs share a key.
        return self._share_keys(band_keys(profile, self.sets), self.pairs.left, self.pairs.right).astype(
            np.float64
        )

    def _share_keys(self, keys: Hashes, left: Ints, right: Ints) -> Mask:
        """Return which pairs share a key, whatever its position in their rows."""
        ordered = np.sort(keys, axis=1).ravel()
        offsets = np.arange(len(keys) + 1, dtype=np.int64) * keys.shape[1]
        shares_key: Mask = intersections(ordered, offsets, left, right, self.sets.backend) > 0
        return shares_key

    def kept_by_limit(self, profile: Profile) -> float:
        """Return the fraction of the pairs sharing a bucket that the bucket limit keeps, measured on sampled pairs.

        Buckets are assumed to grow in proportion to the corpus.
        """
        limit = profile.recipe.match.bucket_limit * self.sampled / self.documents
        is_similar = self.pairs.similarity >= profile.recipe.match.threshold - 1e-12
        left, right = self.pairs.left[is_similar], self.pairs.right[is_similar]
        if not limit or not len(left):
            return 1.0

        keys = band_keys(profile, self.sets)
        if profile.recipe.sketch.family == "rare":
            sharing = self._share_keys(keys, left, right)
            linked = sharing & np.isin(left * len(keys) + right, self._links(keys, math.ceil(limit)))
        else:
            sharing, linked = _linked(keys, left, right, max(limit, 1.0))
        weight = self.pairs.weight[is_similar]
        total = float(weight[sharing].sum())
        return float(weight[linked].sum()) / total if total else 1.0

    def _links(self, keys: Hashes, limit: int) -> Ints:
        """Return the pairs that a bucket limit keeps, each as the code left * number of sets + right."""
        blocks = linked_pairs(keys, limit, find_full_buckets(keys, limit), self.sets.backend)
        return np.concatenate([np.zeros(0, np.int64), *(left * len(keys) + right for left, right in blocks)])


def _probabilities(profile: Profile, similarity: Floats) -> Floats:
    """Interpolate the S-curve between points, which are denser towards 0, where there are more pairs."""
    points = (np.arange(_CURVE_POINTS + 1) / _CURVE_POINTS) ** 2
    family = make_family(profile.recipe, "numpy")
    curve = [
        profile.amplification.probability(family.collision_probability(point)) for point in points.tolist()
    ]
    return np.asarray(np.interp(similarity, points, curve), np.float64)


def band_keys(profile: Profile, sets: DistinctSets) -> Hashes:
    """Return the bucket hashes of n sets, uint64 of (n, bands)."""
    encoder = Encoder(profile)
    keys = []
    for begin in range(0, len(sets), _SKETCHED_AT_ONCE):
        offsets = sets.offsets[begin : begin + _SKETCHED_AT_ONCE + 1]
        ids = sets.ids[offsets[0] : offsets[-1]]
        weights = None if sets.weights is None else sets.weights[offsets[0] : offsets[-1]]
        features = Features(ids, offsets - offsets[0], np.zeros(len(offsets) - 1, np.uint64), weights)
        keys.append(encoder.matrix_keys(encoder.sketch(features)))
    return np.concatenate(keys)


def _linked(keys: Hashes, left: Ints, right: Ints, limit: float) -> tuple[Mask, Mask]:
    """Return which pairs share a bucket, and which of them the limit keeps.

    The limit keeps a pair if one of its sets is among the first `limit` sets of a bucket that both share.
    """
    sharing = np.zeros(len(left), bool)
    linked = np.zeros(len(left), bool)
    for hashes in keys.T:
        order = np.argsort(hashes, kind="stable")
        place_in_bucket = np.empty(len(hashes), np.int64)
        place_in_bucket[order] = np.arange(len(hashes)) - begins(hashes[order])

        shares_band = hashes[left] == hashes[right]
        sharing |= shares_band
        linked |= shares_band & (np.minimum(place_in_bucket[left], place_in_bucket[right]) < limit)
    return sharing, linked
