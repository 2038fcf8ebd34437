"""Our own schemes against a plain-Python oracle, and pinned.

A change that breaks the known answers makes other sketches: it needs a new scheme version.
"""

import hashlib
import importlib.util
import random
import zlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch import Banding, band_keys, make_family
from tests.builders import plain_sketches

NEEDS_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
every_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=NEEDS_NUMBA)])

ID_SETS_64 = [
    [0x0123456789ABCDEF],
    [1, 2, 3, 2**63, 2**64 - 1],
    [random.Random(11).getrandbits(64) for _ in range(40)],
    [random.Random(word).getrandbits(64) for word in range(900)],
]
ID_SETS_32 = [
    [0],
    [1, 2, 3, 2**31, 2**32 - 1],
    sorted(zlib.crc32(word.encode()) for word in ["astronomers", "strike", "gravitational", "gold"]),
    list(range(900)),
]
ORACLES = {
    "fast_similarity": plain_sketches.fast_similarity,
    "prime32": plain_sketches.minhash_prime32,
    "java32": plain_sketches.minhash_java32,
    "bottom_k": plain_sketches.bottom_k,
}
POSITIONAL = [kind for kind in ORACLES if kind != "bottom_k"]
SCHEMES = ["mix64", "xor", "djb2a-joined"]

KNOWN_SKETCHES = {
    ("fast_similarity", 32): "fb9f0d833f75cbea",
    ("fast_similarity", 64): "14a5db51236bdab8",
    ("prime32", 32): "0ddbc0afaa6ca075",
    ("prime32", 64): "2b9d8ac9572f1fad",
    ("java32", 32): "900113d28b569164",
    ("java32", 64): "317ebdf1c2fd9bdc",
    ("bottom_k", 32): "16dd67b5061674ba",
    ("bottom_k", 64): "dc501f19e373c22f",
}
KNOWN_KEYS = {
    ("fast_similarity", "mix64"): "366f771683923df9",
    ("fast_similarity", "xor"): "80f657154394e322",
    ("fast_similarity", "djb2a-joined"): "62fc97b060c104d6",
    ("prime32", "mix64"): "364fb3d6e8304a78",
    ("prime32", "xor"): "7e328320151f16ec",
    ("prime32", "djb2a-joined"): "d40599be7742b261",
    ("java32", "mix64"): "251c51c26057c39e",
    ("java32", "xor"): "7c7440b5e6565ff0",
    ("java32", "djb2a-joined"): "01eeeb94860b3a66",
}
KNOWN_KEYS_OF_BOTTOM_K = {32: "3a6b97ca978896c0", 64: "9ac796acbabb2606"}


def make(kind: str, id_bits: int, backend: str | None, k: int = 37, seed: int = 12345) -> Any:
    name, options = ("minhash", {"functions": kind}) if kind.endswith("32") else (kind, {})
    return make_family(name, k, seed, id_bits, options, backend)


def sketch_sets(kind: str, id_bits: int, backend: str | None = None) -> NDArray[Any]:
    sets = ID_SETS_64 if id_bits == 64 else ID_SETS_32
    ids = np.array([one for ids in sets for one in ids], np.uint64)
    offsets = np.cumsum([0] + [len(ids) for ids in sets], dtype=np.int64)
    sketches: NDArray[Any] = make(kind, id_bits, backend).sketch(ids, offsets)
    return sketches


def digest(values: NDArray[Any]) -> str:
    little_endian = values.astype(values.dtype.newbyteorder("<"))
    return hashlib.sha256(little_endian.tobytes()).hexdigest()[:16]


@every_backend
@pytest.mark.parametrize("kind", list(ORACLES))
@pytest.mark.parametrize("id_bits", [32, 64])
def test_sketches_are_as_defined(kind: str, id_bits: int, backend: str) -> None:
    sets = ID_SETS_64 if id_bits == 64 else ID_SETS_32
    expected = [ORACLES[kind](ids, 37, 12345, id_bits) for ids in sets]
    assert sketch_sets(kind, id_bits, backend).tolist() == expected


@every_backend
@pytest.mark.parametrize("kind", POSITIONAL)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_band_keys_are_as_defined(kind: str, scheme: str, backend: str) -> None:
    sketches = sketch_sets(kind, 64)
    keys = band_keys(sketches, Banding(9, 4, scheme, 12345), backend=backend)
    expected = [
        [plain_sketches.band_key(row[4 * band : 4 * band + 4], band, scheme, 12345) for band in range(9)]
        for row in sketches.tolist()
    ]
    assert keys.tolist() == expected


@every_backend
@pytest.mark.parametrize("id_bits", [32, 64])
def test_keys_of_bottom_k_are_as_defined(id_bits: int, backend: str) -> None:
    sketches = sketch_sets("bottom_k", id_bits, backend)
    keys = make("bottom_k", id_bits, backend).band_keys(sketches, Banding(9, 1, seed=12345))
    assert keys.tolist() == [plain_sketches.bottom_k_keys(row, 9, 12345) for row in sketches.tolist()]
    assert digest(keys) == KNOWN_KEYS_OF_BOTTOM_K[id_bits]


@pytest.mark.parametrize(("kind", "id_bits"), list(KNOWN_SKETCHES))
def test_known_answers_of_sketches(kind: str, id_bits: int) -> None:
    assert digest(sketch_sets(kind, id_bits)) == KNOWN_SKETCHES[kind, id_bits]


@pytest.mark.parametrize(("kind", "scheme"), list(KNOWN_KEYS))
def test_known_answers_of_band_keys(kind: str, scheme: str) -> None:
    assert digest(band_keys(sketch_sets(kind, 64), Banding(9, 4, scheme, 12345))) == KNOWN_KEYS[kind, scheme]


def test_the_random_stream() -> None:
    assert random_words(1, "a purpose", 5).tolist() == plain_sketches.words(1, "a purpose", 5)
    # SplitMix64 from state 0, as published with the generator.
    state_zero = plain_sketches.split_mix(0, 3)
    assert state_zero == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
