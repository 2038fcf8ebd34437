"""dart_minhash against a plain-Python oracle, and pinned: a change that breaks it needs a new scheme version."""

import hashlib
import importlib.util
import random
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db.similarity.sketch import make_family
from tests.builders import plain_sketches

NEEDS_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
every_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=NEEDS_NUMBA)])

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


@cache
def expected_sketches() -> list[list[int]]:
    return [plain_sketches.dart_minhash(one, K, SEED) for one in DOCUMENTS]


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
