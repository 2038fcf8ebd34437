"""Precision of labelled pairs weighted by the pairs of the corpus at each similarity.

People label what they look for: half of 200 labelled pairs may be duplicates, but one in a thousand pairs of the corpus
at the same similarities. Two estimates correct this, and the lower one counts.

By band: the share of duplicates among the labels in a band of similarity, times the pairs of the corpus in this band.
Shares do not fall with similarity (isotonic regression), and bands without labels take theirs from their neighbours.
This is right if labels were chosen by similarity.

By recall: a corpus with D duplicate pairs has D R(t) of them at or above a threshold t, where R(t) is the recall of the
labels. They are not more than all N(t) pairs there, so D <= N(t) / R(t) for each t, whatever the shingles. This is
right if the labelled duplicates were chosen at random among all; it counts pairs where few distinct ones were labelled.
The same bound judges clusters, which chains of pairs can make much larger: of the pairs within clusters, D R(t) at most
are duplicates.

Only pairs of different texts count: equal texts are pairs at every threshold, and a phrase that recurs as a whole text
has more of these pairs than all others have.
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
# Labelled duplicates and sampled pairs from a threshold on by which the number of duplicates is bounded.
_MIN_DUPLICATES, _MIN_SAMPLED_PAIRS = 10, 30


class WeightedLabels:
    """Labelled pairs of both kinds, with the pairs of the corpus.

    If all labelled duplicates are equal texts, they count as the others do.
    """

    def __init__(self, similarity: Floats, duplicate: Mask, corpus: SampledCorpus) -> None:
        """`similarity` is float64 of m labelled pairs, `duplicate` bool of m."""
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
        """Return these labels with a bound of the duplicate pairs of the corpus that is known from other shingles."""
        bounded = copy(self)
        bounded.max_duplicates = min(self.max_duplicates, max_duplicates)
        return bounded

    @property
    def is_bounded(self) -> bool:
        """Whether the number of duplicate pairs of the corpus has a bound."""
        return not math.isinf(self.max_duplicates)

    def best(self, points: Sequence[Point]) -> Point:
        """Return the point with the best F1, of equal ones the highest, for thresholds just below those of `points`."""
        scored = [self.at(separating(points, point)) for point in points]
        return max(scored, key=lambda point: (point.f1, point.threshold), default=Point(1.0, 0.0, 0.0, 0.0))

    def at(self, threshold: float) -> Point:
        """Return precision, weighted, and recall, of the labels, from a threshold on, with their F1; see the module."""
        place, hits, labelled = self._place(threshold), self._hits(threshold), len(self._duplicates)
        pairs, by_band = float(self._pairs[place]), float(self._by_band[place])
        precision = min(by_band, self._max_duplicates_from(threshold), pairs) / pairs if pairs else 0.0

        recall = hits / labelled
        return Point(threshold, precision, recall, f1_of(precision, recall))

    def of_clusters(self, threshold: float, pairs: float) -> Point:
        """Return precision, recall and F1 of clusters formed at a threshold, with `pairs` pairs of different texts.

        Recall is that of the pairs. Where nothing bounds the number of duplicates, precision is that of the pairs too.
        """
        point = self.at(threshold)
        if not self.is_bounded:
            return point
        duplicates = self._max_duplicates_from(threshold)
        precision = min(duplicates, pairs) / pairs if pairs else 0.0
        return Point(threshold, precision, point.recall, f1_of(precision, point.recall))

    def recall_at(self, threshold: float) -> float:
        """Return the share of the labelled duplicates from a threshold on."""
        return self._hits(threshold) / len(self._duplicates)

    def _max_duplicates_from(self, threshold: float) -> float:
        """Return the bound of the duplicate pairs of the corpus from a threshold on."""
        # Of few labels the share is uncertain: two more of either kind move it away from 0 and 1 (Agresti, Coull 1998).
        return self.max_duplicates * (self._hits(threshold) + 2) / (len(self._duplicates) + 4)

    def _max_duplicates_by(self, threshold: float) -> float:
        """Return the most duplicates that the pairs from a threshold on allow, infinite if there are few of them.

        As the least of many such bounds counts, numbers of pairs are taken one standard error higher, recalls lower.
        """
        place, hits, labelled = self._place(threshold), self._hits(threshold), len(self._duplicates)
        if place < _MIN_SAMPLED_PAIRS or hits < _MIN_DUPLICATES:
            return math.inf
        recall = hits / labelled
        pairs = float(self._pairs[place]) * (1 + 1 / math.sqrt(place))
        return pairs / (recall - math.sqrt(recall * (1 - recall) / labelled))

    def _place(self, threshold: float) -> int:
        """Return the number of sampled pairs of different texts from a threshold on."""
        return int(np.searchsorted(self._negative, -threshold + 1e-12, side="right"))

    def _hits(self, threshold: float) -> int:
        """Return the number of labelled duplicates from a threshold on."""
        return len(self._duplicates) - int(np.searchsorted(self._duplicates, threshold - 1e-12))


def _bands(similarity: Floats) -> Ints:
    """Return the band of each similarity: twentieths, and the last one for equal texts."""
    return np.floor(similarity * _BANDS + 1e-9).astype(np.int64)


def _running_sums(values: Floats) -> Floats:
    return np.cumsum(np.concatenate(([0.0], values)))


def _shares_of_duplicates(bands: Ints, duplicate: Mask) -> Floats:
    """Return the share of duplicates in each band, which does not fall from one to the next: float64 of 21."""
    labelled, places = np.unique(bands, return_inverse=True)
    counts = np.bincount(places)
    shares = _not_falling(np.bincount(places, duplicate) / counts, counts)
    return np.interp(np.arange(_BANDS + 1), labelled, shares)


def _not_falling(shares: Floats, counts: Ints) -> Floats:
    """Merge neighbours whose shares fall, weighted by their counts (pool adjacent violators, Ayer et al. 1955)."""
    merged: list[tuple[float, int, int]] = []  # share, count, bands
    for share, count in zip(shares.tolist(), counts.tolist(), strict=True):
        bands = 1
        while merged and merged[-1][0] >= share:
            lower, lower_count, lower_bands = merged.pop()
            share = (lower * lower_count + share * count) / (lower_count + count)
            count, bands = count + lower_count, bands + lower_bands
        merged.append((share, count, bands))
    return np.repeat([share for share, _, _ in merged], [bands for _, _, bands in merged])
