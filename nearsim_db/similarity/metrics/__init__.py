"""Exact similarity measures of two documents, which sketches estimate."""

from nearsim_db.similarity.metrics.contract import FEATURE, Metric, Scores
from nearsim_db.similarity.metrics.jaccard import (
    Jaccard,
    Threshold,
    containment,
    count_overlaps,
    exact_threshold,
    intersection_size,
    intersections,
    jaccard_counts,
    reach_mask,
    reaches,
)
from nearsim_db.similarity.metrics.vectors import Cosine, Euclidean, angle, cosine, euclidean
from nearsim_db.similarity.metrics.weighted import WeightedJaccard, weighted_jaccard

METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (Jaccard(), WeightedJaccard(), Cosine(), Euclidean())
}

__all__ = [
    "FEATURE",
    "METRICS",
    "Metric",
    "Scores",
    "Threshold",
    "angle",
    "containment",
    "cosine",
    "count_overlaps",
    "euclidean",
    "exact_threshold",
    "intersection_size",
    "intersections",
    "jaccard_counts",
    "reach_mask",
    "reaches",
    "weighted_jaccard",
]
