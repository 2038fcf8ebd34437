"""The angle between two vectors, which random hyperplanes estimate."""

import math

import numpy as np

from nearsim_db.similarity.metrics import weighted_features


def angle(left: weighted_features.Weighted, right: weighted_features.Weighted) -> float:
    """Return the angle between two vectors or arrays of `FEATURE` in degrees, in [0, 180]; NaN if one has length
    0.

    Computed as twice the arc tangent of |u - v| / |u + v| of the unit vectors u and v, which is also exact for
    small angles, where the arc cosine is not (Kahan, Miscalculating Area and Angles of a Needle-like Triangle,
    2014).
    """
    u, v = weighted_features.as_features(left).copy(), weighted_features.as_features(right).copy()
    if not len(u) or not len(v):
        return math.nan
    for vector in (u, v):
        vector["weight"] /= np.abs(vector["weight"]).max()
        vector["weight"] /= math.sqrt(float((vector["weight"] ** 2).sum()))
    difference = weighted_features.compare_two(u, v).sums.squares[0]
    v["weight"] *= -1
    total = weighted_features.compare_two(u, v).sums.squares[0]
    return math.degrees(2 * math.atan2(math.sqrt(difference), math.sqrt(total)))
