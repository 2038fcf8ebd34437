"""Weighted labels: the precision that labelled pairs would have if they were as frequent as pairs of the corpus.

People label what they look for. Half of 200 labelled pairs may be duplicates, although only one in a thousand pairs of
the corpus at the same similarities is. Two estimates correct this, and the lower estimate counts.

The estimate by band takes the fraction of duplicates among the labels in a band of similarities, times the number of
pairs of the corpus in this band. The fractions are made not to fall with similarity (isotonic regression), and bands
without labels take their fraction from neighbouring bands. This estimate is right if the labelled pairs were chosen by
similarity.

The estimate by recall uses that a corpus with D duplicate pairs has D R(t) duplicate pairs at or above a threshold t,
where R(t) is the recall of the labels. Their number cannot exceed N(t), the number of all pairs at or above t. Hence
D <= N(t) / R(t) for each t, whatever the shingles are. This estimate is right if the labelled duplicates were chosen at
random among all duplicates, and it works where few distinct pairs were labelled. The same bound judges clusters, in
which chains of pairs can connect many more documents: at most D R(t) of the pairs within clusters are duplicates.

Only pairs of different texts count. Equal texts are pairs at every threshold, and if a phrase recurs as a whole text,
its pairs can outnumber all other pairs.
"""

import math
from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np

from nearsim_db.analysis.tuning.corpus import SampledCorpus
from nearsim_db.analysis.tuning.labels import Point, f1_of, separating
from nearsim_db.similarity.arrays import Floats, Ints, Mask

_BANDS = 20
# A threshold gives an upper bound of the number of duplicates only if at least this number of labelled duplicates and
# of sampled pairs reach it.
_MIN_DUPLICATES, _MIN_SAMPLED_PAIRS = 10, 30


class WeightedLabels:
    """Duplicate and distinct labelled pairs, with the pairs of the corpus.

    Labelled duplicates that are equal texts are left out, unless all labelled duplicates are equal texts.
    """

    def __init__(self, similarity: Floats, duplicate: Mask, corpus: SampledCorpus) -> None:
        """Take m labelled pairs: `similarity` is float64 of m, `duplicate` bool of m."""
        duplicates: Floats = np.sort(similarity[duplicate])
        different = duplicates[duplicates < 1]
        self._duplicates = different if len(different) else duplicates
        shares = _shares_of_duplicates(_bands(similarity), duplicate)

        order = np.argsort(-corpus.pairs.similarity)
        descending, weight = corpus.pairs.similarity[order], corpus.weight[order]
        self._negative: Floats = -descending
        self._pairs = _running_sums(weight)
        self._by_band = _running_sums(weight * shares[_bands(descending)])

        bounds = map(self._max_duplicates_by, np.unique(similarity).tolist())
        self.max_duplicates: float = min(bounds, default=math.inf)

    def bounded_by(self, max_duplicates: float) -> Self:
        """Return these labels with an upper bound of the number of duplicates that follows from other shingles."""
        bounded = copy(self)
        bounded.max_duplicates = min(self.max_duplicates, max_duplicates)
        return bounded

    @property
    def is_bounded(self) -> bool:
        """Whether there is an upper bound of the number of duplicate pairs of the corpus."""
        return not math.isinf(self.max_duplicates)

    def best(self, points: Sequence[Point]) -> Point:
        """Return the point with the best F1, for the thresholds of `points` rounded down as `separating` does.

        If several thresholds have the best F1, the highest threshold is taken.
        """
        scored = [self.at(separating(points, point)) for point in points]
        return max(scored, key=lambda point: (point.f1, point.threshold), default=Point(1.0, 0.0, 0.0, 0.0))

    def at(self, threshold: float) -> Point:
        """Return the weighted precision, the recall of the labels and their F1 at a threshold; see the module."""
        place, hits, labelled = self._place(threshold), self._hits(threshold), len(self._duplicates)
        pairs, by_band = float(self._pairs[place]), float(self._by_band[place])
        precision = min(by_band, self._max_duplicates_from(threshold), pairs) / pairs if pairs else 0.0

        recall = hits / labelled
        return Point(threshold, precision, recall, f1_of(precision, recall))

    def of_clusters(self, threshold: float, pairs: float) -> Point:
        """Return precision, recall and F1 of clusters that were formed at a threshold.

        `pairs` is the number of pairs of different texts within the clusters. The recall is the recall of `at`. So is
        the precision if there is no upper bound of the number of duplicates.
        """
        point = self.at(threshold)
        if not self.is_bounded:
            return point
        duplicates = self._max_duplicates_from(threshold)
        precision = min(duplicates, pairs) / pairs if pairs else 0.0
        return Point(threshold, precision, point.recall, f1_of(precision, point.recall))

    def recall_at(self, threshold: float) -> float:
        """Return the fraction of the labelled duplicates that are at or above a threshold."""
        return self._hits(threshold) / len(self._duplicates)

    def _max_duplicates_from(self, threshold: float) -> float:
        """Return the upper bound of the number of duplicate pairs of the corpus at or above a threshold."""
        # With few labels the recall is uncertain: two more labels on either side move it away from 0 and 1
        # (Agresti and Coull 1998).
        return self.max_duplicates * (self._hits(threshold) + 2) / (len(self._duplicates) + 4)

    def _max_duplicates_by(self, threshold: float) -> float:
        """Return the upper bound N(t) / R(t) of the number of duplicates, infinite if too few pairs reach t.

        Because the lowest of many bounds counts, the number of pairs is taken one standard error higher, and the recall
        one standard error lower.
        """
        place, hits, labelled = self._place(threshold), self._hits(threshold), len(self._duplicates)
        if place < _MIN_SAMPLED_PAIRS or hits < _MIN_DUPLICATES:
            return math.inf
        recall = hits / labelled
        pairs = float(self._pairs[place]) * (1 + 1 / math.sqrt(place))
        return pairs / (recall - math.sqrt(recall * (1 - recall) / labelled))

    def _place(self, threshold: float) -> int:
        """Return the number of sampled pairs of different texts at or above a threshold."""
        return int(np.searchsorted(self._negative, -threshold + 1e-12, side="right"))

    def _hits(self, threshold: float) -> int:
        """Return the number of labelled duplicates at or above a threshold."""
        return len(self._duplicates) - int(np.searchsorted(self._duplicates, threshold - 1e-12))


def _bands(similarity: Floats) -> Ints:
    """Return the band of each similarity. Bands are twentieths; the last band is for equal texts."""
    return np.floor(similarity * _BANDS + 1e-9).astype(np.int64)


def _running_sums(values: Floats) -> Floats:
    return np.cumsum(np.concatenate(([0.0], values)))


def _shares_of_duplicates(bands: Ints, duplicate: Mask) -> Floats:
    """Return the fraction of duplicates in each band, made not to fall from band to band: float64 of 21."""
    labelled, places = np.unique(bands, return_inverse=True)
    counts = np.bincount(places)
    shares = _not_falling(np.bincount(places, duplicate) / counts, counts)
    return np.interp(np.arange(_BANDS + 1), labelled, shares)


def _not_falling(shares: Floats, counts: Ints) -> Floats:
    """Average neighbours that fall, weighted by their counts (pool adjacent violators, Ayer et al. 1955)."""
    merged: list[tuple[float, int, int]] = []  # share, count, bands
    for share, count in zip(shares.tolist(), counts.tolist(), strict=True):
        bands = 1
        while merged and merged[-1][0] >= share:
            lower, lower_count, lower_bands = merged.pop()
            share = (lower * lower_count + share * count) / (lower_count + count)
            count, bands = count + lower_count, bands + lower_bands
        merged.append((share, count, bands))
    return np.repeat([share for share, _, _ in merged], [bands for _, _, bands in merged])
