"""Exact similarity measures of two documents, which sketches estimate."""

from nearsim_db.similarity.metrics.angle import angle
from nearsim_db.similarity.metrics.containment import containment
from nearsim_db.similarity.metrics.contract import FEATURE, Metric, Scores
from nearsim_db.similarity.metrics.cosine import Cosine, cosine
from nearsim_db.similarity.metrics.euclidean import Euclidean, euclidean
from nearsim_db.similarity.metrics.jaccard import (
    Jaccard,
    Threshold,
    count_overlaps,
    exact_threshold,
    intersection_size,
    intersections,
    jaccard_counts,
    reach_mask,
    reaches,
)
from nearsim_db.similarity.metrics.weighted_jaccard import WeightedJaccard, weighted_jaccard

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
