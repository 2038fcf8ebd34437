"""Random vectors around a few directions, and their pairs by brute force."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nearsim_db import Index
from nearsim_db.similarity.recipe import Recipe, from_mapping

THRESHOLD = 0.9

Vectors = Mapping[str, NDArray[np.float32]]
Pairs = set[tuple[str, str]]


def recipe(**match: object) -> Recipe:
    """A recipe with enough bands to miss no pair at the threshold."""
    return from_mapping(
        {
            "sketch": {"family": "hyperplane", "input": "vector", "k": 1024},
            "bands": {"count": 128, "rows": 8},
            "match": {"threshold": THRESHOLD, "bucket_limit": 0, **match},
        }
    )


def made_up(directions: int = 8, members: int = 6, dimensions: int = 24, seed: int = 3) -> Vectors:
    """Vectors of various lengths, at growing distances from each direction.

    The last vector of a direction is a twin of its first.
    """
    rng = np.random.default_rng(seed)
    vectors = {}
    for direction in range(directions):
        centre = rng.normal(size=dimensions)
        for member in range(members):
            vector = centre + rng.normal(size=dimensions) * 0.12 * member
            vectors[f"v{direction}-{member}"] = (vector * rng.uniform(0.1, 10)).astype(np.float32)
        vectors[f"v{direction}-{members - 1}"] = vectors[f"v{direction}-0"].copy()
    return vectors


def cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """The cosine in double precision, rounded to 12 decimals."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    return round(float(a @ b / np.sqrt((a @ a) * (b @ b))), 12)


def alike(vectors: Vectors) -> Pairs:
    """The pairs that reach the threshold."""
    names = sorted(vectors)
    return {
        (left, right)
        for at, left in enumerate(names)
        for right in names[at + 1 :]
        if cosine(vectors[left], vectors[right]) >= THRESHOLD
    }


def found(index: Index) -> Pairs:
    """The pairs of the index."""
    return {(min(pair.left, pair.right), max(pair.left, pair.right)) for pair in index.pairs()}
