"""Sketches: compact summaries of feature sets, which estimate similarities and find candidates."""

from collections.abc import Mapping
from typing import Any

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch.bands import (
    BAND_SCHEME_VERSION,
    MAX_BANDS,
    Banding,
    band_keys,
    matched_bands,
)
from nearsim_db.similarity.sketch.bottom_k import BottomK
from nearsim_db.similarity.sketch.dart_minhash import DartMinHash
from nearsim_db.similarity.sketch.family import Family
from nearsim_db.similarity.sketch.fast_similarity import FastSimilarity
from nearsim_db.similarity.sketch.hyperplane import Hyperplane
from nearsim_db.similarity.sketch.kernels import NO_KNOWN_PAIRS, KnownPairs
from nearsim_db.similarity.sketch.minhash import MinHash
from nearsim_db.similarity.sketch.projection import Projection, same_bucket
from nearsim_db.similarity.sketch.rare import Rare
from nearsim_db.similarity.sketch.winnow import Winnow

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
    "Rare",
    "Winnow",
    "band_keys",
    "make_family",
    "matched_bands",
    "same_bucket",
]

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (FastSimilarity, MinHash, BottomK, Hyperplane, Projection, DartMinHash, Winnow, Rare)
}


def make_family(
    name: str,
    k: int,
    seed: int,
    id_bits: int = 64,
    options: Mapping[str, Any] | None = None,
    backend: str | None = None,
) -> Family:
    """Create a sketch family with this name and these parameters.

    `id_bits` is 64 if ids are hashes mixed over all 64 bits, and 32 if they are values of CRC-32 or djb2a. `options`
    are options that this family has besides k and seed. `backend` is "numba", "numpy", or None for the faster one that
    is installed; both give identical results. Raises RecipeError for an unknown family or option, and for a value out
    of range.
    """
    if name not in FAMILIES:
        raise RecipeError(f"unknown sketch family {name!r}; choose one of {', '.join(FAMILIES)}")
    family, options = FAMILIES[name], options or {}

    for option, value in options.items():
        if option not in family.options:
            remedy = f"its options are {', '.join(family.options)}" if family.options else "leave it out"
            raise RecipeError(f"{name} has no option {option}; {remedy}")
        if (allowed := family.options[option]) and value not in allowed:
            raise RecipeError(f"unknown {name} {option} {value!r}; choose one of {', '.join(allowed)}")
    sketch_options = {
        option: value for option, value in options.items() if option not in family.feature_options
    }
    return family(k, seed, id_bits, backend=backend, **sketch_options)
