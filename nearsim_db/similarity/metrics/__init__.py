"""Exact similarity measures of two documents, which sketches estimate."""

from nearsim_db.similarity.metrics.contract import FEATURE, Metric, Scores
from nearsim_db.similarity.metrics.jaccard import (
    Jaccard,
    Threshold,
    containment,
    count_overlaps,
    exact_threshold,
    intersections,
    reach_mask,
)
from nearsim_db.similarity.metrics.vectors import Cosine, Euclidean
from nearsim_db.similarity.metrics.weighted import WeightedJaccard

METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (Jaccard(), WeightedJaccard(), Cosine(), Euclidean())
}

__all__ = [
    "FEATURE",
    "METRICS",
    "Metric",
    "Scores",
    "Threshold",
    "containment",
    "count_overlaps",
    "exact_threshold",
    "intersections",
    "reach_mask",
]
