"""Choice of the threshold, by labelled pairs or between near and random pairs, and the clusters that it gives."""

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
# Without labels, the number of duplicates that a higher threshold loses is unknown, so it is not raised beyond this.
_MAX_RAISED_THRESHOLD = 0.7
_MAX_F1_LOSS = 0.1
# The F1 of clusters on a hundred labels varies by about this much.
_MIN_BETTER_F1 = 0.02


def choose_threshold(
    options: TuningOptions,
    scores: LabelScores | None,
    weighted: WeightedLabels | None,
    lowest: float | None,
    recipe_threshold: float,
) -> tuple[float, str]:
    """Return the threshold and the reason. `lowest` is the valley between near and random pairs, None without one."""
    if options.threshold is not None:
        return options.threshold, "set by the user"
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
    """Return the threshold with the best weighted F1, or with the required precision, and the reason."""
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
    """The clusters of a sample at a threshold, and precision and recall according to the labels."""

    threshold: float
    documents: int  # documents that were clustered
    removed: float  # fraction of the documents that de-duplication removes
    largest_cluster: float  # fraction of the documents that are in the largest cluster
    precision: float | None  # of the pairs, weighted by the pairs of the corpus; None without labels
    recall: float | None  # fraction of the labelled duplicates at or above the threshold, None without labels
    is_excessive: bool  # whether most documents are removed, or one cluster has more than 5 % of them
    remaining: int  # documents that de-duplication keeps
    f1: float | None  # of the pairs within clusters, estimated by the labels; None without labels


class ThresholdJudge:
    """Clusters a sample at a threshold and at higher ones, and compares their clusters.

    There are no clusters if no bands reach the recall.
    """

    def __init__(
        self,
        corpus: SampledCorpus,
        recipe: Recipe,
        sets: DistinctSets,
        options: TuningOptions,
        weighted: WeightedLabels | None,
        threshold: float,
    ) -> None:
        """`sets` are the feature sets of the documents to cluster. `threshold` is the best one by pairs alone."""
        self._weighted = weighted
        self._threshold = threshold
        self._texts = float(corpus.grown.sum())
        self._clusters: dict[float, SampleClusters] = {}
        self._pairs: PairsToCluster | None = None
        with suppress(RecipeError):
            profile, _ = choose_sketch(corpus, recipe, threshold, options.recall)
            self._pairs = PairsToCluster(sets, profile, options.seed)

    def cluster(self, threshold: float) -> SampleClusters | None:
        """Return the clusters at a threshold.

        Returns None if the threshold is below the best one by pairs alone, or if there are no bands.
        """
        if self._pairs is None or threshold < self._threshold:
            return None
        if threshold not in self._clusters:
            self._clusters[threshold] = self._pairs.cluster(threshold)
        return self._clusters[threshold]

    def is_excessive(self, threshold: float) -> bool:
        """Whether a threshold would remove most documents, or put more than 5 % of the documents into one cluster."""
        clusters = self.cluster(threshold)
        return clusters is not None and clusters.is_excessive

    def f1(self, threshold: float) -> float | None:
        """Return the F1 of the pairs within clusters, estimated by the labels; None without labels or clusters."""
        clusters = self.cluster(threshold)
        if clusters is None or self._weighted is None:
            return None
        # The number of pairs within clusters grows with the square of the number of texts.
        growth = self._texts / clusters.texts if clusters.texts else 1.0
        return self._weighted.of_clusters(threshold, clusters.pairs * growth**2).f1

    def better(self) -> float | None:
        """Return the higher threshold whose clusters have the best F1 according to the labels.

        Returns None if no clusters are better by 0.02 than at the best threshold by pairs alone, or if the labels give
        no upper bound of the number of duplicates.
        """
        best_f1 = self.f1(self._threshold)
        if best_f1 is None or self._weighted is None or not self._weighted.is_bounded:
            return None
        best_f1, best = best_f1 + _MIN_BETTER_F1, None
        for threshold in self._higher():
            # Even with a precision of 1, the F1 would not be better with this recall or a lower one.
            recall = self._weighted.recall_at(threshold)
            if 2 * recall / (1 + recall) <= best_f1:
                break
            f1 = self.f1(threshold)
            if f1 is not None and f1 > best_f1:
                best_f1, best = f1, threshold
        return best

    def without_excess(self, recipe_threshold: float) -> float | None:
        """Return the next higher threshold whose clusters are not excessive, None if there is no such threshold.

        Without labels, the threshold is at most 0.7 or the recipe's threshold, whichever is higher. With labels that
        give no upper bound of the number of duplicates, its F1 must be nearly as good. With labels that give an upper
        bound, `better` decides instead, and this method returns None.
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
        """Yield the thresholds above the best one by pairs alone, in steps of 0.05."""
        for step in range(math.floor(self._threshold * _STEPS + 1e-9) + 1, round(MAX_THRESHOLD * _STEPS) + 1):
            yield step / _STEPS

    def table(self, chosen: float) -> Iterator[ClustersAt]:
        """Yield the clusters at the chosen threshold and at other ones, lowest threshold first."""
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
