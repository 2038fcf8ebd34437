"""Sketches: fixed-size summaries of feature sets, to estimate similarity and to find candidates."""

from nearsim_db.similarity.sketch.bands import (
    BAND_SCHEME_VERSION,
    MAX_BANDS,
    Banding,
    band_keys,
    matched_bands,
)
from nearsim_db.similarity.sketch.bottom_k import BottomK
from nearsim_db.similarity.sketch.dart_minhash import DartMinHash
from nearsim_db.similarity.sketch.family import FAMILIES, Family, make_family
from nearsim_db.similarity.sketch.fast_similarity import FastSimilarity
from nearsim_db.similarity.sketch.hyperplane import Hyperplane
from nearsim_db.similarity.sketch.kernels import NO_KNOWN_PAIRS, KnownPairs
from nearsim_db.similarity.sketch.minhash import MinHash
from nearsim_db.similarity.sketch.projection import Projection, same_bucket

__all__ = [
    "BAND_SCHEME_VERSION",
    "FAMILIES",
    "MAX_BANDS",
    "NO_KNOWN_PAIRS",
    "Banding",
    "BottomK",
    "DartMinHash",
    "Family",
    "FastSimilarity",
    "Hyperplane",
    "KnownPairs",
    "MinHash",
    "Projection",
    "band_keys",
    "make_family",
    "matched_bands",
    "same_bucket",
]
