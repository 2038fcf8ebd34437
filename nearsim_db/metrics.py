"""Exact Jaccard similarity of sets of ids: the truth that a sketch estimates.

Thresholds are decided on integers: 7 of 10 reaches 0.7, whatever 7 / 10 is in binary.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from nearsim_db import backend as backends
from nearsim_db.sketch.kernels import Counts, Ids, Offsets, sketch_kernels

Threshold = Fraction | str | float

_LARGEST = 2**63 - 1


def intersection_size(left: Ids, right: Ids) -> int:
    """How many ids two sorted arrays of distinct ids have in common."""
    return len(np.intersect1d(left, right, assume_unique=True))


def jaccard_counts(left: Ids, right: Ids) -> tuple[int, int]:
    """The sizes of the intersection and of the union of two sorted arrays of distinct ids."""
    intersection = intersection_size(left, right)
    return intersection, len(left) + len(right) - intersection


def intersections(
    ids: Ids, offsets: Offsets, left_rows: Offsets, right_rows: Offsets, backend: str | None = None
) -> Counts:
    """How many ids two documents of a batch share, for m pairs of documents: int64 of m.

    Document i has ids[offsets[i]:offsets[i + 1]], sorted and distinct; `left_rows` and `right_rows` are int64
    of m.
    """
    return sketch_kernels(backends.resolve(backend)).intersections(ids, offsets, left_rows, right_rows)


def reaches(intersection: int, union: int, threshold: Threshold) -> bool:
    """Whether intersection / union is at least the threshold, taken as the decimal it is written as.

    Two documents without features (union 0) reach no threshold.
    """
    exact = exact_threshold(threshold)
    return union > 0 and intersection * exact.denominator >= exact.numerator * union


def which_reach(intersections: Counts, unions: Counts, threshold: Threshold) -> NDArray[np.bool_]:
    """`reaches` for int64 arrays of m: bool of m."""
    exact = exact_threshold(threshold)
    largest = int(max(intersections.max(initial=0), unions.max(initial=0)))
    if max(exact.numerator, exact.denominator) * largest > _LARGEST:
        intersections, unions = intersections.astype(object), unions.astype(object)
    reached = intersections * exact.denominator >= unions * exact.numerator
    return (reached & (unions > 0)).astype(np.bool_)


def exact_threshold(threshold: Threshold) -> Fraction:
    """The threshold as a fraction: 0.7 is 7/10, not the binary number next to it."""
    return threshold if isinstance(threshold, Fraction) else Fraction(str(threshold))
