"""dart_minhash against a plain-Python oracle, and pinned: a change that breaks it needs a new scheme version."""

import hashlib
import importlib.util
import math
import random
from fractions import Fraction
from functools import cache
from itertools import accumulate

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db.similarity.sketch import make_family
from tests.builders import plain_sketches
from tests.builders.plain_sketches import MASK32, MASK64, fmix64

NEEDS_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
every_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=NEEDS_NUMBA)])

GOLDEN = 0x9E3779B97F4A7C15
K, SEED = 37, 12345

_RANDOM = random.Random(11)
DOCUMENTS = [
    {0x0123456789ABCDEF: 1.0},
    {1: 1.0, 2: 2.0, 3: 3.0, 2**63: 40.0, 2**64 - 1: 0.25},
    {_RANDOM.getrandbits(64): float(_RANDOM.randint(1, 9)) for _ in range(40)},
    {_RANDOM.getrandbits(64): _RANDOM.uniform(0.001, 0.3) for _ in range(150)},
    {_RANDOM.getrandbits(64): 2.0 ** _RANDOM.randint(60, 70) for _ in range(5)},
    {_RANDOM.getrandbits(64): _RANDOM.random() * 2.0**-60 for _ in range(5)},
]
KNOWN = "29156caaba0f6a59"


def least_darts(weights: dict[int, float]) -> list[int]:
    """The dart of least rank in each position, among all below a limit that is raised until each has one."""
    limit = 1 / sum(weights.values())
    while True:
        best: dict[int, tuple[float, int]] = {}
        for one, weight in weights.items():
            for position, rank, value in darts_below(one, weight, limit):
                best[position] = min(best.get(position, (math.inf, 0)), (rank, value))
        if len(best) == K:
            return [best[position][1] for position in range(K)]
        limit *= 3


def darts_below(one: int, weight: float, limit: float) -> list[tuple[int, float, int]]:
    """Position, rank and value of the darts of an id, cell by cell of area 1, from the definition of the field."""
    (mask,) = plain_sketches.words(SEED, "dart_minhash mask", 1)
    point = fmix64(one ^ mask)
    found = []
    for a in range(200):
        for b in range(200):
            begin, width, first, depth = 2.0**a - 1, 2.0 ** (a - b), 2.0**b - 1, 2.0 ** (b - a)
            if begin >= weight or first >= limit:
                break
            for part in range(min(2**b, math.ceil((weight - begin) / width))):
                for layer in range(min(2**a, math.ceil((limit - first) / depth))):
                    cell = fmix64(point ^ (a << 56 | b << 48 | part << 24 | layer))
                    for dart in range(poisson(cell)):
                        within = fmix64((cell + (2 * dart + 1) * GOLDEN) & MASK64)
                        chosen = fmix64((cell + (2 * dart + 2) * GOLDEN) & MASK64)
                        at = begin + (part + (within >> 32) / 2**32) * width
                        rank = first + (layer + (within & MASK32) / 2**32) * depth
                        if at < weight and rank < limit:
                            found.append(((chosen >> 32) * K >> 32, rank, chosen & MASK32))
    return found


def poisson(word: int) -> int:
    """How many darts a cell has: Poisson with mean 1, by inversion."""
    return sum(word >= threshold for threshold in cumulated_probabilities())


@cache
def cumulated_probabilities() -> list[int]:
    """Of at most 0, 1, 2 ... darts, in units of 2^-64, in exact arithmetic."""
    none = sum((Fraction((-1) ** n, math.factorial(n)) for n in range(40)), Fraction(0))
    return [int(2**64 * some) for some in accumulate(none / math.factorial(count) for count in range(25))]


@cache
def expected_sketches() -> list[list[int]]:
    return [least_darts(one) for one in DOCUMENTS]


def sketch_documents(backend: str | None = None) -> NDArray[np.uint32]:
    sizes = [len(one) for one in DOCUMENTS]
    pairs = [pair for one in DOCUMENTS for pair in sorted(one.items())]
    sketches: NDArray[np.uint32] = make_family("dart_minhash", K, SEED, backend=backend).sketch(
        np.array([one for one, _ in pairs], np.uint64),
        np.cumsum([0, *sizes], dtype=np.int64),
        np.array([weight for _, weight in pairs]),
    )
    return sketches


@every_backend
def test_sketches_are_as_defined(backend: str) -> None:
    assert sketch_documents(backend).tolist() == expected_sketches()


def test_known_answers() -> None:
    little_endian = sketch_documents().astype("<u4").tobytes()
    assert hashlib.sha256(little_endian).hexdigest()[:16] == KNOWN
