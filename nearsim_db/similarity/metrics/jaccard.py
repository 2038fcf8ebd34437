"""Exact Jaccard similarity of sets of ids.

Thresholds are decided on integers: 7 of 10 reaches 0.7, whatever 7 / 10 is in binary.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.metrics.contract import Scores
from nearsim_db.similarity.sketch.kernels import Counts, Ids, Offsets, sketch_kernels

Threshold = Fraction | str | float

_LARGEST = 2**63 - 1


class Jaccard:
    """|A ∩ B| / |A ∪ B| of two sets of ids."""

    name = "jaccard"
    weighted = False
    signed = False

    def compare(
        self, features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None
    ) -> Scores:
        """Count intersections and unions, and divide them; see `Metric.compare`."""
        intersection, union = count_overlaps(features, left, right, backend)
        return Scores(intersection / union, intersection, union)

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Compare the counts; see `Metric.reaches`."""
        assert scores.intersection is not None and scores.union is not None
        return reach_mask(scores.intersection, scores.union, threshold)

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return the threshold itself."""
        return threshold


def intersections(
    ids: Ids, offsets: Offsets, left_rows: Offsets, right_rows: Offsets, backend: str | None = None
) -> Counts:
    """Return the number of ids that two documents of a batch share, for m pairs of documents: int64 of m.

    Document i has ids[offsets[i]:offsets[i + 1]], sorted and distinct; `left_rows` and `right_rows` are int64
    of m.
    """
    return sketch_kernels(backends.resolve(backend)).intersections(ids, offsets, left_rows, right_rows)


def count_overlaps(
    features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None = None
) -> tuple[Counts, Counts]:
    """Return intersection and union sizes of m pairs, given as int64 rows into `features`: two int64 of m."""
    sizes = np.array([len(ids) for ids in features], np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    flat = np.concatenate(features) if features else np.zeros(0, np.uint64)
    shared = intersections(flat, offsets, left, right, backend)
    return shared, sizes[left] + sizes[right] - shared


def reach_mask(intersections: Counts, unions: Counts, threshold: Threshold) -> NDArray[np.bool_]:
    """Return which intersections / unions, int64 of m, are at least the threshold, taken as an exact decimal.

    Two documents without features (union 0) reach no threshold.
    """
    exact = exact_threshold(threshold)
    largest = int(max(intersections.max(initial=0), unions.max(initial=0)))
    if max(exact.numerator, exact.denominator) * largest > _LARGEST:
        intersections, unions = intersections.astype(object), unions.astype(object)
    reached = intersections * exact.denominator >= unions * exact.numerator
    return (reached & (unions > 0)).astype(np.bool_)


def exact_threshold(threshold: Threshold) -> Fraction:
    """Return the threshold as a fraction: 0.7 is 7/10, not the nearest binary number."""
    return threshold if isinstance(threshold, Fraction) else _fraction(str(threshold))


@lru_cache(maxsize=64)
def _fraction(decimal: str) -> Fraction:
    return Fraction(decimal)


def containment(left: Ids, right: Ids) -> tuple[float, float]:
    """Return |A ∩ B| / |A| and |A ∩ B| / |B| of two sorted arrays of distinct ids, each in [0, 1] (Broder 1997).

    The share of an empty set is NaN. `BottomK` sketches estimate both.
    """
    shared = len(np.intersect1d(left, right, assume_unique=True))
    of_left, of_right = (shared / len(ids) if len(ids) else math.nan for ids in (left, right))
    return of_left, of_right
