"""Containment: the share of one set that is in another."""

import math

from nearsim_db.similarity.metrics.jaccard import intersection_size
from nearsim_db.similarity.sketch.kernels import Ids


def containment(left: Ids, right: Ids) -> tuple[float, float]:
    """Return |A ∩ B| / |A| and |A ∩ B| / |B| of two sorted arrays of distinct ids, each in [0, 1] (Broder 1997).

    The share of an empty set is NaN. `BottomK` sketches estimate both.
    """
    shared = intersection_size(left, right)
    of_left, of_right = (shared / len(ids) if len(ids) else math.nan for ids in (left, right))
    return of_left, of_right
