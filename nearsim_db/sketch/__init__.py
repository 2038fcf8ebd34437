"""Sketches: fixed-size summaries of feature sets, to estimate similarity and to find candidates."""

from nearsim_db.sketch.bands import (
    BAND_SCHEME_VERSION,
    MAX_BANDS,
    band_keys,
    count_shared_bands,
    shared_bands,
)
from nearsim_db.sketch.bottom_k import BottomK
from nearsim_db.sketch.family import FAMILIES, Family, make_family
from nearsim_db.sketch.fast_similarity import FastSimilarity
from nearsim_db.sketch.kernels import UNDECIDED, Decided
from nearsim_db.sketch.minhash import MinHash

__all__ = [
    "BAND_SCHEME_VERSION",
    "FAMILIES",
    "MAX_BANDS",
    "UNDECIDED",
    "BottomK",
    "Decided",
    "Family",
    "FastSimilarity",
    "MinHash",
    "band_keys",
    "count_shared_bands",
    "make_family",
    "shared_bands",
]
