"""Targets: sketches, band keys, estimates and metrics, on both back ends."""

import random
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.metrics import FEATURE, METRICS, Scores
from nearsim_db.similarity.sketch import Banding, Family, make_family
from tests.builders.sketch_variants import matrix_keys
from tests.fuzz.contract import Target

_POWERS = [2**bits for bits in (0, 1, 31, 32, 52, 53, 63)]
_EDGES = np.array(
    [0, *_POWERS, 2**32 - 1, 4294967311, 2 * 4294967311, 2**53 + 1, 2**63 - 1, 2**64 - 1], np.uint64
)
_WEIGHTS = np.array([1, -1, 2, 0.5, 3e38, -3e38, 1e-45, 0.1, 7, 1 + 2**-23], np.float32).astype(np.float64)
_FAMILIES: Sequence[tuple[str, dict[str, str | float]]] = (
    ("fast_similarity", {}),
    ("minhash", {"functions": "prime32"}),
    ("minhash", {"functions": "java32"}),
    ("bottom_k", {}),
    ("rare", {"weights": "idf"}),
    ("dart_minhash", {"input": "terms", "weights": "count"}),
    ("hyperplane", {"input": "terms", "weights": "count", "vectors": "gaussian"}),
    ("hyperplane", {"input": "terms", "weights": "count", "vectors": "sign"}),
    ("projection", {"input": "terms", "weights": "count", "width": 4.0}),
)
_BACKENDS = ("numpy", "numba")


def draw_sets(rng: random.Random, count: int) -> list[NDArray[np.uint64]]:
    """Return sets of ids, sorted and distinct: empty ones, neighbours that share most ids, and values at limits."""
    noise = np.random.default_rng(rng.getrandbits(64))
    sizes = noise.integers(0, 12, count) ** noise.integers(1, 3, count)
    base = np.concatenate(
        [_EDGES, noise.integers(0, 2**64, 40, np.uint64), noise.integers(0, 300, 20, np.uint64)]
    )
    drawn = noise.choice(base, int(sizes.sum()))
    return [np.unique(one) for one in np.split(drawn, list(accumulate(sizes.tolist()))[:-1])]


def check_sketches(sets: Sequence[NDArray[np.uint64]], rng: random.Random) -> None:
    """Both back ends give the same sketches, band keys, shared bands, estimates and exact scores."""
    name, options = rng.choice(_FAMILIES)
    bits, k = rng.choice([32, 64]), rng.choice([1, 2, 16, 33, 128])
    seed = rng.randrange(5)
    families = [make_family(name, k, seed, bits, options, backend) for backend in _BACKENDS]
    noise = np.random.default_rng(rng.getrandbits(64))
    ids = np.concatenate([np.zeros(0, np.uint64), *sets])
    if bits == 32:
        ids = ids & np.uint64(2**32 - 1)
        sets = [np.unique(one & np.uint64(2**32 - 1)) for one in sets]
        ids = np.concatenate([np.zeros(0, np.uint64), *sets])
    offsets = np.array([0, *accumulate(map(len, sets))], np.int64)
    metric = METRICS[families[0].metric]
    weights = None
    if metric.weighted:
        weights = noise.choice(_WEIGHTS if metric.signed else np.abs(_WEIGHTS), len(ids))
    left, right = (family.sketch(ids, offsets, weights) for family in families)
    assert np.array_equal(left, right)
    filled = np.flatnonzero(np.diff(offsets))
    _check_bands(families, left[filled], rng)
    features = [_features(ids, weights, *offsets[row : row + 2]) for row in filled]
    rows = np.arange(len(filled))
    scores = [metric.compare(features, rows, np.roll(rows, 1), backend) for backend in _BACKENDS]
    _assert_equal(*scores)


def _check_bands(families: Sequence[Family], sketches: NDArray[Any], rng: random.Random) -> None:
    rows = rng.choice([1, 2, 3]) if families[0].positional else 1
    bands = min(max(1, families[0].k // rows), rng.choice([1, 40, 256]))
    if bands * rows > families[0].k:
        return
    seed, others = rng.randrange(3), np.roll(sketches, 1, axis=0)
    keys = [matrix_keys(family, sketches, Banding(bands, rows, seed=seed)) for family in families]
    shared = [
        family.count_shared_bands(sketches, others, Banding(bands, rows, seed=seed)) for family in families
    ]
    estimates = [family.estimate(sketches, others) for family in families]
    for one, other in (keys, shared, estimates):
        assert np.array_equal(one, other)


def _features(
    ids: NDArray[np.uint64], weights: NDArray[np.float64] | None, begin: int, end: int
) -> NDArray[Any]:
    if weights is None:
        return ids[begin:end]
    weighted = np.empty(end - begin, FEATURE)
    weighted["id"], weighted["weight"] = ids[begin:end], weights[begin:end]
    return weighted


def _assert_equal(left: Scores, right: Scores) -> None:
    for name in ("similarity", "intersection", "union", "distance"):
        one, other = getattr(left, name), getattr(right, name)
        assert (one is None and other is None) or np.array_equal(one, other), name


KERNELS = {"sketches": Target(draw_sets, lambda: nullcontext(check_sketches), 2_000)}
