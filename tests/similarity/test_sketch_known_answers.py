"""Every family against a plain-Python oracle, and pinned.

A change that breaks the known answers makes other sketches: it needs a new scheme version.
"""

import hashlib
import math
import random
import zlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch import Banding, band_keys, make_family
from nearsim_db.similarity.sketch.directions import normal_quantiles
from tests.builders import plain_sketches
from tests.builders.selection import every_backend
from tests.builders.sketch_variants import matrix_keys

SEED, WIDTH = 12345, 3.7
_RANDOM = random.Random(11)
Documents = Sequence[dict[int, float]]


def sets_of(*sets: Sequence[int]) -> Documents:
    return [dict.fromkeys(ids, 1.0) for ids in sets]


OF_64_BITS = sets_of(
    [0x0123456789ABCDEF],
    [1, 2, 3, 2**63, 2**64 - 1],
    [random.Random(11).getrandbits(64) for _ in range(40)],
    [random.Random(word).getrandbits(64) for word in range(900)],
)
OF_32_BITS = sets_of(
    [0],
    [1, 2, 3, 2**31, 2**32 - 1],
    sorted(zlib.crc32(word.encode()) for word in ["astronomers", "strike", "gravitational", "gold"]),
    list(range(900)),
)
ABOVE_ZERO: Documents = [
    {0x0123456789ABCDEF: 1.0},
    {1: 1.0, 2: 2.0, 3: 3.0, 2**63: 40.0, 2**64 - 1: 0.25},
    {_RANDOM.getrandbits(64): float(_RANDOM.randint(1, 9)) for _ in range(40)},
    {_RANDOM.getrandbits(64): _RANDOM.uniform(0.001, 0.3) for _ in range(150)},
    {_RANDOM.getrandbits(64): 2.0 ** _RANDOM.randint(60, 70) for _ in range(5)},
    {_RANDOM.getrandbits(64): _RANDOM.random() * 2.0**-60 for _ in range(5)},
]
_RANDOM.seed(11)
SIGNED: Documents = [
    {0x0123456789ABCDEF: 1.0},
    {1: 1.0, 2: 2.0, 3: -3.0, 2**63: 40.0, 2**64 - 1: 0.25},
    {1: 1.0, 2: -1.0},
    {_RANDOM.getrandbits(64): float(_RANDOM.randint(1, 9)) for _ in range(90)},
    {dimension: _RANDOM.gauss(0, 0.05) for dimension in range(70)},
    {dimension: _RANDOM.gauss(0, 1) * 10 ** _RANDOM.randint(-12, 12) for dimension in range(3, 20)},
    {dimension: _RANDOM.gauss(0, 1) * 1e30 for dimension in range(9)},
]


class Kind(NamedTuple):
    """A family with options, the documents it is pinned on, its definition in plain Python and the pinned digest."""

    family: str
    options: dict[str, Any]
    documents: Documents
    oracle: Callable[..., list[int]]
    known: str
    id_bits: int = 64

    @property
    def k(self) -> int:
        return 67 if self.documents is SIGNED else 37


fast, bottom = plain_sketches.fast_similarity, plain_sketches.bottom_k
prime, java = plain_sketches.minhash_prime32, plain_sketches.minhash_java32
PRIME, JAVA = {"functions": "prime32"}, {"functions": "java32"}
KINDS = {
    "fast_similarity 32": Kind("fast_similarity", {}, OF_32_BITS, fast, "fb9f0d833f75cbea", 32),
    "fast_similarity 64": Kind("fast_similarity", {}, OF_64_BITS, fast, "14a5db51236bdab8"),
    "prime32 32": Kind("minhash", PRIME, OF_32_BITS, prime, "0ddbc0afaa6ca075", 32),
    "prime32 64": Kind("minhash", PRIME, OF_64_BITS, prime, "2b9d8ac9572f1fad"),
    "java32 32": Kind("minhash", JAVA, OF_32_BITS, java, "900113d28b569164", 32),
    "java32 64": Kind("minhash", JAVA, OF_64_BITS, java, "317ebdf1c2fd9bdc"),
    "bottom_k 32": Kind("bottom_k", {}, OF_32_BITS, bottom, "16dd67b5061674ba", 32),
    "bottom_k 64": Kind("bottom_k", {}, OF_64_BITS, bottom, "dc501f19e373c22f"),
    "dart_minhash": Kind("dart_minhash", {}, ABOVE_ZERO, plain_sketches.dart_minhash, "29156caaba0f6a59"),
    **{
        vectors: Kind(
            "hyperplane",
            {"vectors": vectors},
            SIGNED,
            partial(plain_sketches.hyperplane, vectors=vectors),
            known,
        )
        for vectors, known in (("gaussian", "e82adffa24b35202"), ("sign", "fb82d8cd8446d249"))
    },
    "projection": Kind(
        "projection",
        {"width": WIDTH},
        SIGNED,
        partial(plain_sketches.projection, width=WIDTH),
        "d9307f091aa212c1",
    ),
}
# By kind, scheme and rows.
KNOWN_KEYS = {
    ("fast_similarity 64", "mix64", 4): "366f771683923df9",
    ("fast_similarity 64", "xor", 4): "80f657154394e322",
    ("fast_similarity 64", "djb2a-joined", 4): "62fc97b060c104d6",
    ("prime32 64", "mix64", 4): "364fb3d6e8304a78",
    ("prime32 64", "xor", 4): "7e328320151f16ec",
    ("prime32 64", "djb2a-joined", 4): "d40599be7742b261",
    ("java32 64", "mix64", 4): "251c51c26057c39e",
    ("java32 64", "xor", 4): "7c7440b5e6565ff0",
    ("java32 64", "djb2a-joined", 4): "01eeeb94860b3a66",
    ("gaussian", "mix64", 7): "3fb1d71441658b4c",
    ("sign", "mix64", 7): "b85a297501987c25",
    ("projection", "mix64", 7): "8dce7ecdaaf715a7",
}
KNOWN_KEYS_OF_BOTTOM_K = {32: "3a6b97ca978896c0", 64: "9ac796acbabb2606"}
every_kind = pytest.mark.parametrize("kind", KINDS)


def sketch(
    kind: str, backend: str | None = None, documents: Documents | None = None, **more: str
) -> NDArray[Any]:
    """The sketches of documents, the kind's own unless given."""
    one = KINDS[kind]
    own = one.documents if documents is None else documents
    ids = np.array([id for document in own for id in document], np.uint64)
    weights = np.array([weight for document in own for weight in document.values()])
    family = make_family(one.family, one.k, SEED, one.id_bits, {**one.options, **more}, backend)
    offsets = np.cumsum([0, *map(len, own)], dtype=np.int64)
    return family.sketch(ids, offsets, None if family.metric == "jaccard" else weights)


@cache
def expected_of(kind: str) -> list[list[int]]:
    one = KINDS[kind]
    more = (one.id_bits,) if one.documents in (OF_64_BITS, OF_32_BITS) else ()
    return [one.oracle(list(own) if more else own, one.k, SEED, *more) for own in one.documents]


def digest(values: NDArray[Any]) -> str:
    little_endian = values.astype(values.dtype.newbyteorder("<"))
    return hashlib.sha256(little_endian.tobytes()).hexdigest()[:16]


@every_kind
@every_backend
def test_sketches_are_as_defined_and_pinned(kind: str, backend: str) -> None:
    sketches = sketch(kind, backend)
    assert sketches.tolist() == expected_of(kind)
    assert digest(sketches) == KINDS[kind].known


@pytest.mark.parametrize(("kind", "scheme", "rows"), KNOWN_KEYS)
@every_backend
def test_band_keys_are_as_defined_and_pinned(kind: str, scheme: str, rows: int, backend: str) -> None:
    keys = band_keys(sketch(kind, backend), Banding(9, rows, scheme, SEED), backend=backend)
    assert keys.tolist() == [
        [
            plain_sketches.band_key(row[rows * band : rows * band + rows], band, scheme, SEED)
            for band in range(9)
        ]
        for row in expected_of(kind)
    ]
    assert digest(keys) == KNOWN_KEYS[kind, scheme, rows]


@every_backend
@pytest.mark.parametrize("id_bits", [32, 64])
def test_keys_of_bottom_k_are_as_defined_and_pinned(id_bits: int, backend: str) -> None:
    family = make_family("bottom_k", 37, SEED, id_bits, {}, backend)
    keys = matrix_keys(family, sketch(f"bottom_k {id_bits}", backend), Banding(9, 1, seed=SEED))
    expected = expected_of(f"bottom_k {id_bits}")
    assert keys.tolist() == [plain_sketches.bottom_k_keys(row, 9, SEED) for row in expected]
    assert digest(keys) == KNOWN_KEYS_OF_BOTTOM_K[id_bits]


def test_the_random_stream() -> None:
    assert random_words(1, "a purpose", 5).tolist() == plain_sketches.words(1, "a purpose", 5)
    # SplitMix64 from state 0, as published with the generator.
    state_zero = plain_sketches.split_mix(0, 3)
    assert state_zero == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_normal_distribution_values() -> None:
    """Not close to halves: a logarithm that differs in its last digits is rounded to the same integer."""
    quantiles = norm.ppf((np.arange(4096) + 0.5) / 4096)
    scaled = quantiles / math.sqrt(np.mean(quantiles**2)) * 2**13
    assert np.abs(scaled % 1 - 0.5).min() > 1e-4
    assert normal_quantiles().tolist() == np.rint(scaled).tolist() == plain_sketches.NORMAL_PARTS
    assert digest(normal_quantiles()) == "1b43c8f808a97816"
