"""Exact measures of how alike two documents are: the truth that a sketch estimates."""

from nearsim_db.metrics.contract import FEATURE, Metric, Scores
from nearsim_db.metrics.jaccard import (
    Jaccard,
    Threshold,
    count_overlaps,
    exact_threshold,
    intersection_size,
    intersections,
    jaccard_counts,
    reaches,
    which_reach,
)

METRICS: dict[str, Metric] = {one.name: one for one in (Jaccard(),)}

__all__ = [
    "FEATURE",
    "METRICS",
    "Metric",
    "Scores",
    "Threshold",
    "count_overlaps",
    "exact_threshold",
    "intersection_size",
    "intersections",
    "jaccard_counts",
    "reaches",
    "which_reach",
]
