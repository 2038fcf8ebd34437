"""Choose the threshold by labelled pairs, or between near and random pairs, and cluster the sample at it."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from nearsim_db.analysis.tuning import labels
from nearsim_db.analysis.tuning.corpus import SampledCorpus
from nearsim_db.analysis.tuning.distinct_sets import DistinctSets
from nearsim_db.analysis.tuning.labels import LabelScores
from nearsim_db.analysis.tuning.proposal import THRESHOLDS, TuningOptions, choose_sketch
from nearsim_db.analysis.tuning.sample_clusters import PairsToCluster, SampleClusters
from nearsim_db.analysis.tuning.weighted_labels import WeightedLabels
from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe

MIN_THRESHOLD, MAX_THRESHOLD = 0.5, 0.95
MIN_LABELLED_THRESHOLD = 0.1
# Thresholds are proposed in steps of 0.05.
_STEPS = 20
# Without labels it is unknown what a higher threshold loses.
_MAX_RAISED_THRESHOLD = 0.7
_MAX_F1_LOSS = 0.1
# The F1 of clusters by a hundred labels varies by about as much.
_MIN_BETTER_F1 = 0.02


def choose_threshold(
    options: TuningOptions,
    scores: LabelScores | None,
    weighted: WeightedLabels | None,
    lowest: float | None,
    recipe_threshold: float,
) -> tuple[float, str]:
    """Return the threshold and the reason; `lowest` is the valley between near and random pairs."""
    if options.threshold is not None:
        return options.threshold, "given"
    if scores is not None and weighted is not None and scores.best.f1 > 0 and scores.separate:
        return _labelled_threshold(options, scores, weighted)
    if lowest is None:
        return recipe_threshold, (
            "the recipe's own, as there is no clear valley between near and random pairs; inspect the histogram and "
            "some pairs above and below it"
        )

    threshold = math.floor(lowest * _STEPS + 0.5) / _STEPS
    if threshold < recipe_threshold < MIN_THRESHOLD:
        return recipe_threshold, (
            f"the recipe's own; near and random pairs separate at {lowest:.2f}: set that threshold with --threshold"
        )
    if threshold < MIN_THRESHOLD <= recipe_threshold:
        return MIN_THRESHOLD, (
            f"near and random pairs separate at {lowest:.2f}, but texts that share less than half of their shingles "
            "are rarely near-duplicates, and cost more; for extracts of the same pages with different menus or "
            "comments use --preset web-pages, or set --threshold"
        )
    return min(threshold, MAX_THRESHOLD), f"the valley between near and random pairs, at about {lowest:.2f}"


def _labelled_threshold(
    options: TuningOptions, scores: LabelScores, weighted: WeightedLabels
) -> tuple[float, str]:
    """Return the threshold with the best weighted F1, or the one of the precision that is asked for."""
    if options.precision is None:
        point = weighted.best(scores.points)
        threshold = point.threshold
        reason = (
            f"the best F1 of the labelled pairs, {point.f1:.3f}, with their precision weighted by the pairs of the "
            "corpus at each similarity"
        )
    else:
        point = scores.best
        threshold = labels.separating(scores.points, point)
        reason = (
            f"a precision of {point.precision:.3f} on the labelled pairs, at a recall of {point.recall:.3f}"
        )

    if threshold >= MIN_LABELLED_THRESHOLD:
        return threshold, reason
    return MIN_LABELLED_THRESHOLD, (
        f"{reason}, is at {threshold:g}, which is too low: below {MIN_LABELLED_THRESHOLD} bands rarely reach the "
        "recall, and at high cost; set a lower threshold with --threshold"
    )


@dataclass(frozen=True, slots=True)
class ClustersAt:
    """The clusters of a sample at a threshold, with the precision and recall of labels there."""

    threshold: float
    documents: int
    removed: float  # share of the documents that are not the survivor of a cluster
    largest_cluster: float  # share of the documents that are in the largest cluster
    precision: float | None  # weighted by the pairs of the corpus, None without labels
    recall: float | None  # of the labels, None without labels
    is_excessive: bool  # whether most documents are removed, or one cluster has more than 5 % of them
    remaining: int  # documents that de-duplication leaves
    f1: float | None  # of the pairs within clusters, estimated by the labels, None without labels


class ThresholdJudge:
    """Clusters a sample at a threshold and higher ones; there are no clusters if no bands reach the recall."""

    def __init__(
        self,
        corpus: SampledCorpus,
        recipe: Recipe,
        sets: DistinctSets,
        options: TuningOptions,
        weighted: WeightedLabels | None,
        threshold: float,
    ) -> None:
        """`sets` are of the documents to cluster, `threshold` is the one that seems best by pairs alone."""
        self._weighted = weighted
        self._threshold = threshold
        self._texts = float(corpus.grown.sum())
        self._clusters: dict[float, SampleClusters] = {}
        self._pairs: PairsToCluster | None = None
        with suppress(RecipeError):
            profile, _ = choose_sketch(corpus, recipe, threshold, options.recall)
            self._pairs = PairsToCluster(sets, profile, options.seed)

    def cluster(self, threshold: float) -> SampleClusters | None:
        """Return the clusters at a threshold; None if it is below the one that seemed best, or there are no bands."""
        if self._pairs is None or threshold < self._threshold:
            return None
        if threshold not in self._clusters:
            self._clusters[threshold] = self._pairs.cluster(threshold)
        return self._clusters[threshold]

    def is_excessive(self, threshold: float) -> bool:
        """Whether most documents would be removed at a threshold, or be in one cluster."""
        clusters = self.cluster(threshold)
        return clusters is not None and clusters.is_excessive

    def f1(self, threshold: float) -> float | None:
        """Return the F1 of the pairs within clusters, estimated by the labels; None without labels or clusters."""
        clusters = self.cluster(threshold)
        if clusters is None or self._weighted is None:
            return None
        # Clusters of a sample have the square of its share of the pairs.
        growth = self._texts / clusters.texts if clusters.texts else 1.0
        return self._weighted.of_clusters(threshold, clusters.pairs * growth**2).f1

    def better(self) -> float | None:
        """Return the threshold above the one that seems best whose clusters are best by the labels.

        None if no clusters are better by 0.02, or labels do not bound the number of duplicates.
        """
        best_f1 = self.f1(self._threshold)
        if best_f1 is None or self._weighted is None or not self._weighted.is_bounded:
            return None
        best_f1, best = best_f1 + _MIN_BETTER_F1, None
        for threshold in self._higher():
            # No clusters have a higher F1 with this recall.
            recall = self._weighted.recall_at(threshold)
            if 2 * recall / (1 + recall) <= best_f1:
                break
            f1 = self.f1(threshold)
            if f1 is not None and f1 > best_f1:
                best_f1, best = f1, threshold
        return best

    def without_excess(self, recipe_threshold: float) -> float | None:
        """Return the next higher threshold at which not most documents are removed, None if there is none.

        With labels that do not bound the number of duplicates its F1 must be nearly as good, with others there is none;
        without labels it is at most 0.7 or the recipe's threshold.
        """
        if self._weighted is not None and self._weighted.is_bounded:
            return None
        for threshold in self._higher():
            if self._weighted is None and threshold > max(_MAX_RAISED_THRESHOLD, recipe_threshold):
                return None
            if self._weighted is not None:
                best = self._weighted.at(self._threshold).f1
                if self._weighted.at(threshold).f1 < best - _MAX_F1_LOSS:
                    return None
            if not self.is_excessive(threshold):
                return threshold
        return None

    def _higher(self) -> Iterator[float]:
        """Yield the thresholds above the one that seems best by pairs alone, in steps of 0.05."""
        for step in range(math.floor(self._threshold * _STEPS + 1e-9) + 1, round(MAX_THRESHOLD * _STEPS) + 1):
            yield step / _STEPS

    def table(self, chosen: float) -> Iterator[ClustersAt]:
        """Yield the clusters at the chosen threshold and at higher ones, lowest first."""
        for threshold in sorted({*THRESHOLDS, self._threshold, chosen}):
            clusters = self.cluster(threshold)
            if clusters is None:
                continue
            point = None if self._weighted is None else self._weighted.at(threshold)
            yield ClustersAt(
                threshold,
                clusters.documents,
                clusters.removed_share,
                clusters.largest_share,
                None if point is None else point.precision,
                None if point is None else point.recall,
                clusters.is_excessive,
                clusters.documents - clusters.removed,
                self.f1(threshold),
            )
