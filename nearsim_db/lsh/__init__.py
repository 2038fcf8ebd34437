"""Locality-sensitive hashing: how probable it is that a pair becomes a candidate, and how to choose bands."""

from nearsim_db.lsh.amplification import Amplification, Sensitivity, and_, or_
from nearsim_db.lsh.choose import BandChoice, choose_bands, choose_keys, pick_bands
from nearsim_db.lsh.curve import (
    approximate_steepest_point,
    curve,
    match_probability,
    similarities_around,
    steepest_point,
)

__all__ = [
    "Amplification",
    "BandChoice",
    "Sensitivity",
    "and_",
    "approximate_steepest_point",
    "choose_bands",
    "choose_keys",
    "curve",
    "match_probability",
    "or_",
    "pick_bands",
    "similarities_around",
    "steepest_point",
]
