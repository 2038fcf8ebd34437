"""Locality-sensitive hashing: the probability that a pair becomes a candidate, and the choice of bands."""

from nearsim_db.similarity.lsh.amplification import Amplification, Sensitivity, and_, at_least, banding, or_
from nearsim_db.similarity.lsh.choose import choose_bands, choose_keys, design_bands, pick_bands
from nearsim_db.similarity.lsh.curve import (
    Bin,
    ErrorAreas,
    approximate_steepest_point,
    error_areas,
    fixed_point,
    match_probability,
    similarities_around,
    steepest,
    steepest_point,
)
from nearsim_db.similarity.lsh.notation import parse

__all__ = [
    "Amplification",
    "Bin",
    "ErrorAreas",
    "Sensitivity",
    "and_",
    "approximate_steepest_point",
    "at_least",
    "banding",
    "choose_bands",
    "choose_keys",
    "design_bands",
    "error_areas",
    "fixed_point",
    "match_probability",
    "or_",
    "parse",
    "pick_bands",
    "similarities_around",
    "steepest",
    "steepest_point",
]
