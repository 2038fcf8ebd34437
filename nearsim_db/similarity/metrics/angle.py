"""The angle between two vectors, which random hyperplanes estimate."""

import math

import numpy as np

from nearsim_db.similarity.metrics import weighing


def angle(left: weighing.Weighted, right: weighing.Weighted) -> float:
    """The angle between two vectors or arrays of `FEATURE` in degrees, in [0, 180]; NaN if one has length 0.

    Twice the arc tangent of |u - v| / |u + v|, u and v being the vectors at length 1 (Kahan, Miscalculating Area and
    Angles of a Needle-like Triangle, 2014): exact for small angles too, where the arc cosine is not.
    """
    one, other = weighing.as_features(left).copy(), weighing.as_features(right).copy()
    if not len(one) or not len(other):
        return math.nan
    for vector in (one, other):
        vector["weight"] /= np.abs(vector["weight"]).max()
        vector["weight"] /= math.sqrt(float((vector["weight"] ** 2).sum()))
    apart = weighing.compare_two(one, other).sums.squares[0]
    other["weight"] *= -1
    together = weighing.compare_two(one, other).sums.squares[0]
    return math.degrees(2 * math.atan2(math.sqrt(apart), math.sqrt(together)))
