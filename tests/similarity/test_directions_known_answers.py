"""hyperplane and projection against a plain-Python oracle, and pinned.

A change that breaks the known answers makes other sketches: it needs a new scheme version.
"""

import hashlib
import importlib.util
import math
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from nearsim_db.similarity.sketch import Banding, Family, band_keys, make_family
from nearsim_db.similarity.sketch.directions import normal_quantiles
from tests.builders import plain_sketches

NEEDS_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
every_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=NEEDS_NUMBA)])
every_kind = pytest.mark.parametrize("kind", ["gaussian", "sign", "projection"])

K, SEED, WIDTH = 67, 12345, 3.7
_RANDOM = random.Random(11)
DOCUMENTS: list[dict[int, float]] = [
    {0x0123456789ABCDEF: 1.0},
    {1: 1.0, 2: 2.0, 3: -3.0, 2**63: 40.0, 2**64 - 1: 0.25},
    {1: 1.0, 2: -1.0},
    {_RANDOM.getrandbits(64): float(_RANDOM.randint(1, 9)) for _ in range(90)},
    {dimension: _RANDOM.gauss(0, 0.05) for dimension in range(70)},
    {dimension: _RANDOM.gauss(0, 1) * 10 ** _RANDOM.randint(-12, 12) for dimension in range(3, 20)},
    {dimension: _RANDOM.gauss(0, 1) * 1e30 for dimension in range(9)},
]
KNOWN_SKETCHES = {
    "gaussian": "e82adffa24b35202",
    "sign": "fb82d8cd8446d249",
    "projection": "d9307f091aa212c1",
}
KNOWN_KEYS = {
    "gaussian": "3fb1d71441658b4c",
    "sign": "b85a297501987c25",
    "projection": "8dce7ecdaaf715a7",
}


def make(kind: str, backend: str | None = None, given: str = "terms") -> Family:
    if kind == "projection":
        return make_family("projection", K, SEED, 64, {"width": WIDTH, "input": given}, backend)
    return make_family("hyperplane", K, SEED, 64, {"vectors": kind, "input": given}, backend)


def sketch_documents(family: Family, documents: list[dict[int, float]]) -> NDArray[Any]:
    offsets = np.cumsum([0] + [len(one) for one in documents], dtype=np.int64)
    ids = np.array([one for own in documents for one in sorted(own)], np.uint64)
    weights = np.array([own[one] for own in documents for one in sorted(own)])
    return family.sketch(ids, offsets, weights)


def expected_of(kind: str) -> list[list[int]]:
    if kind == "projection":
        return [plain_sketches.projection(one, K, SEED, WIDTH) for one in DOCUMENTS]
    return [plain_sketches.hyperplane(one, K, SEED, kind) for one in DOCUMENTS]


def digest(values: NDArray[Any]) -> str:
    little_endian = values.astype(values.dtype.newbyteorder("<"))
    return hashlib.sha256(little_endian.tobytes()).hexdigest()[:16]


@every_kind
@every_backend
@pytest.mark.parametrize("given", ["terms", "vector"])
def test_sketches_are_as_defined(kind: str, backend: str, given: str) -> None:
    """As terms, and as vectors: those of many dimensions, those of few together, and those too large for that."""
    family, expected = make(kind, backend, given), expected_of(kind)
    assert sketch_documents(family, DOCUMENTS).tolist() == expected
    assert sketch_documents(family, DOCUMENTS[4:6]).tolist() == expected[4:6]
    assert sketch_documents(family, DOCUMENTS[6:]).tolist() == expected[6:]


@every_kind
@every_backend
def test_band_keys_are_as_defined(kind: str, backend: str) -> None:
    sketches = sketch_documents(make(kind, backend), DOCUMENTS)
    keys = band_keys(sketches, Banding(9, 7, seed=SEED), backend=backend)
    assert keys.tolist() == [
        [plain_sketches.band_key(row[7 * band : 7 * band + 7], band, "mix64", SEED) for band in range(9)]
        for row in sketches.tolist()
    ]


@every_kind
def test_known_answers(kind: str) -> None:
    sketches = sketch_documents(make(kind), DOCUMENTS)
    assert digest(sketches) == KNOWN_SKETCHES[kind]
    assert digest(band_keys(sketches, Banding(9, 7, seed=SEED))) == KNOWN_KEYS[kind]


def test_normal_distribution_values() -> None:
    """Not close to halves: a logarithm that differs in its last digits is rounded to the same integer."""
    quantiles = norm.ppf((np.arange(4096) + 0.5) / 4096)
    scaled = quantiles / math.sqrt(np.mean(quantiles**2)) * 2**13
    assert np.abs(scaled % 1 - 0.5).min() > 1e-4
    assert normal_quantiles().tolist() == np.rint(scaled).tolist() == plain_sketches.NORMAL_PARTS
    assert digest(normal_quantiles()) == "1b43c8f808a97816"
