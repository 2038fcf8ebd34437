"""The sketch families of the conformance suite, with batches and pairs of known similarity for each.

To test a new family, add a line to VARIANTS. To test a new metric, add an entry to PAIRS_OF and to CASES.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch import Banding, Family, make_family
from tests.builders.random_sets import Batch, flatten, ragged, random_pairs

Matrix = NDArray[np.float64]


def cosine_pairs(similarity: float, size: int, count: int, seed: int) -> tuple[Batch, Batch]:
    """Return pairs of vectors with the given cosine; the right one has as many further ids that the left one lacks."""
    ids, first, second = _parts(size // 2, count, seed)
    second *= np.linalg.norm(first, axis=1, keepdims=True) / np.linalg.norm(second, axis=1, keepdims=True)
    # The two halves have no common id, so they are orthogonal.
    turned = np.concatenate((similarity * first, math.sqrt(1 - similarity**2) * second), axis=1)
    return batch(ids[:, : size // 2], first), batch(ids, turned)


def euclidean_pairs(similarity: float, size: int, count: int, seed: int) -> tuple[Batch, Batch]:
    """Vectors over some ids, and copies that lie 1 / s - 1 away, in a random direction over these and other ids."""
    ids, first, second = _parts(size // 2, count, seed)
    moves = np.concatenate((_signed(first), _signed(second)), axis=1)
    moves *= (1 / similarity - 1) / np.linalg.norm(moves, axis=1, keepdims=True)
    moved = moves + np.concatenate((first, np.zeros_like(second)), axis=1)
    return batch(ids[:, : size // 2], first), batch(ids, moved)


def weighted_jaccard_pairs(similarity: float, size: int, count: int, seed: int) -> tuple[Batch, Batch]:
    """Pairs of vectors with positive weights. Each vector of a pair has the larger weights on half of the ids."""
    ids, first, second = _parts(size // 2, count, seed)
    minima = np.concatenate((first, second), axis=1)
    surplus = minima[:, ::-1] * (1 / similarity - 1)
    on_left = np.arange(minima.shape[1]) % 2 == 0
    surplus *= minima.sum(axis=1, keepdims=True) / minima[:, ::-1].sum(axis=1, keepdims=True)
    return batch(ids, minima + surplus * on_left), batch(ids, minima + surplus * ~on_left)


def batch(ids: NDArray[np.uint64], weights: Matrix) -> Batch:
    """Documents of equal size with sorted ids, one document for each row."""
    order = np.argsort(ids, axis=1)
    sorted_ids, sorted_weights = (
        np.take_along_axis(ids, order, axis=1),
        np.take_along_axis(weights, order, axis=1),
    )
    return Batch(
        sorted_ids.ravel(), np.arange(len(ids) + 1, dtype=np.int64) * ids.shape[1], sorted_weights.ravel()
    )


def _parts(half: int, count: int, seed: int) -> tuple[NDArray[np.uint64], Matrix, Matrix]:
    """Random ids of (count, 2 half), and for each half of them random weights in 0.5..1.5."""
    ids = random_words(seed, "ids of pairs", 2 * half * count).reshape(count, 2 * half)
    drawn = random_words(seed, "weights of pairs", 2 * half * count).reshape(count, 2 * half)
    weights = 0.5 + (drawn >> np.uint64(11)).astype(np.float64) / 2**53
    return ids, weights[:, :half], weights[:, half:]


def _signed(weights: Matrix) -> Matrix:
    """Give weights a sign, which depends on whether one of their digits is odd."""
    return np.where(np.floor(weights * 1e6) % 2 == 0, weights, -weights)


WIDTH = 4.0
SEEDS, PAIRS = 6, 300
Pairs = tuple[Batch, Batch]
Sketches = NDArray[Any]


def set_pairs(similarity: float, size: int, count: int, seed: int, id_bits: int = 64) -> Pairs:
    """Sets whose union has `size` ids."""
    left, right = random_pairs(count, size, round(similarity * size), seed, id_bits)
    return Batch(*flatten(left)), Batch(*flatten(right))


PAIRS_OF: Mapping[str, Callable[[float, int, int, int], Pairs]] = {
    "jaccard": set_pairs,
    "weighted_jaccard": weighted_jaccard_pairs,
    "cosine": cosine_pairs,
    "euclidean": euclidean_pairs,
}


# Similarities and set sizes for tests of estimates, small documents included.
_OF_SETS = ((0.5, 10), (0.7, 10), (0.25, 80), (60 / 86, 86), (0.2, 1000), (0.7, 800), (0.9, 640))


CASES: Mapping[str, tuple[tuple[float, int], ...]] = {
    "jaccard": _OF_SETS,
    "weighted_jaccard": ((0.5, 10), (0.7, 60), (0.2, 200), (0.9, 100)),
    "cosine": ((-0.5, 120), (0.0, 120), (0.5, 120), (0.8, 200), (0.95, 120)),
    "euclidean": ((0.2, 6), (0.5, 2), (0.1, 80), (1 / 3, 80), (0.5, 120), (0.8, 80)),
}


@dataclass(frozen=True)
class Variant:
    """A family with its options."""

    name: str
    options: dict[str, str | float] = field(default_factory=dict)

    def make(self, k: int = 128, seed: int = 1, id_bits: int = 64, backend: str | None = None) -> Family:
        return make_family(self.name, k, seed, id_bits, self.options, backend)

    @property
    def metric(self) -> str:
        return self.make(1, backend="numpy").metric

    @property
    def is_binomial(self) -> bool:
        """Whether the positions of a sketch are independent. If not, estimates vary less."""
        return self.name not in ("fast_similarity", "bottom_k")

    def batch(self, documents: list[list[int]]) -> Batch:
        """Documents with these ids. For weighted families, each id has a weight from 1 to 7."""
        if self.metric == "jaccard":
            return Batch(*ragged(documents))
        ids, offsets = ragged([sorted(set(document)) for document in documents])
        return Batch(ids, offsets, (1 + ids % np.uint64(7)).astype(np.float64))

    def sketches(self, similarity: float, size: int, seed: int) -> tuple[Sketches, Sketches]:
        """Return the left and the right sketches of PAIRS pairs under the family with this seed: two (PAIRS, 128)."""
        return _sketches(str(self), similarity, size, seed)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return "-".join([self.name, *map(str, self.options.values())])


VARIANTS = [
    Variant("fast_similarity"),
    Variant("minhash", {"functions": "prime32"}),
    Variant("minhash", {"functions": "java32"}),
    Variant("bottom_k"),
    Variant("dart_minhash"),
    Variant("hyperplane", {"vectors": "gaussian"}),
    Variant("hyperplane", {"vectors": "sign"}),
    Variant("projection", {"width": WIDTH}),
]
OF_SETS = [variant for variant in VARIANTS if variant.metric == "jaccard"]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)
every_variant_of_sets = pytest.mark.parametrize("variant", OF_SETS, ids=str)
every_width = pytest.mark.parametrize("id_bits", [32, 64])


@lru_cache(maxsize=64)
def _sketches(name: str, similarity: float, size: int, seed: int) -> tuple[Sketches, Sketches]:
    variant = next(variant for variant in VARIANTS if str(variant) == name)
    left, right = PAIRS_OF[variant.metric](similarity, size, PAIRS, 1000 * size + seed)
    family = variant.make(seed=seed)
    return family.sketch(*left), family.sketch(*right)


def matrix_keys(family: Family, sketches: NDArray[Any], banding: Banding) -> NDArray[np.uint64]:
    """The band keys of n sketches, as (n, bands). Fails if the numbers of keys differ between documents."""
    keys = family.band_keys(sketches, banding)
    assert isinstance(keys, np.ndarray)
    return keys
