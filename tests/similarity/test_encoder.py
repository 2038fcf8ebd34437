"""Encoding: counts, digests, sketches and features of batches, for every division into chunks; weighted families."""

import hashlib
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.backend import sketch_kernels
from nearsim_db.similarity.encoder import Encoded, Encoder
from nearsim_db.similarity.profile import WIDTH_PER_THRESHOLD, make_family, resolve
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.similarity.sketch import same_bucket
from tests.builders.plain_text import Rules, any_text, poly64, shingles
from tests.builders.selection import every_backend, examples

STORY = "the council met on monday to talk about the new bridge over the river and its price of 14 million "


def encoder(backend: str, **sections: Any) -> Encoder:
    return Encoder(resolve(from_mapping(sections)), backend)


def stories(count: int, length: int) -> list[str]:
    """Texts of about `length` characters, alike and yet distinct, with empty ones among them."""
    texts = [f"story {n} é {STORY * (length // len(STORY))} ends {n % 5}" for n in range(count)]
    return [text if n % 4 else "" for n, text in enumerate(texts)]


def assert_equal(left: Encoded, right: Encoded) -> None:
    for name in ("counts", "digests", "sketches", "numbers"):
        one, other = getattr(left, name), getattr(right, name)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes(), name


@every_backend
@examples(60)
@given(texts=st.lists(any_text, max_size=5))
def test_features_are_the_distinct_ids_sorted(backend: str, texts: list[str]) -> None:
    encode = encoder(backend)
    features = encode.features(texts)
    encoded = encode.encode(texts)
    assert [features.ids.dtype, features.offsets.dtype] == [np.dtype(np.uint64), np.dtype(np.int64)]
    for row, text in enumerate(texts):
        expected = sorted({poly64(shingle.encode()) for shingle in shingles(text, Rules())})
        assert features.of(row).tolist() == expected
        assert encoded.counts[row] == len(expected)
        if expected:
            assert encode.digest(features.of(row)) == encoded.digests[row].tobytes()
    assert features.numbers.tolist() == encoded.numbers.tolist()


@every_backend
@examples(60)
@given(left=any_text, right=any_text)
def test_digests_are_equal_if_the_sets_are(backend: str, left: str, right: str) -> None:
    encoded = encoder(backend).encode([left, right, left + "\n"])
    digests = [digest.tobytes() for digest in encoded.digests]
    sets = [set(shingles(text, Rules())) for text in (left, right, left + "\n")]
    assert (digests[0] == digests[1]) == (sets[0] == sets[1])
    assert digests[0] == digests[2]
    if sets[0] == sets[1]:
        assert encoded.sketches[0].tolist() == encoded.sketches[1].tolist()


@every_backend
@pytest.mark.parametrize("scheme", ["char", "word"])
def test_chunks_do_not_change_the_result(backend: str, scheme: str) -> None:
    encode = encoder(backend, shingle={"scheme": scheme, "k": 5})
    texts = [*stories(30, 12_000), STORY * 2_000, *stories(10, 300)]
    whole = encode.encode(texts)
    single = [encode.encode([text]) for text in texts]
    assert_equal(
        whole,
        Encoded(
            np.concatenate([one.counts for one in single]),
            np.concatenate([one.digests for one in single]),
            np.concatenate([one.sketches for one in single]),
            np.concatenate([one.numbers for one in single]),
            whole.items,
            whole.sizes,
        ),
    )


@pytest.mark.slow("load")
@every_backend
def test_threads_share_an_encoder(backend: str) -> None:
    encode = encoder(backend, shingle={"stem": "english", "stopwords": "en"})
    batches = [stories(6, 2_000 + 100 * batch) for batch in range(12)]
    alone = [encode.encode(batch) for batch in batches]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(encode.encode, batches))
    for one, other in zip(alone, together, strict=True):
        assert_equal(one, other)


@every_backend
def test_digests_are_those_of_blake2b(backend: backends.Backend) -> None:
    sizes = np.array([0, 1, 15, 16, 17, 0, 31, 32, 33, 300, 0])
    words, key = np.random.default_rng(1).integers(0, 2**64, int(sizes.sum()), np.uint64), bytes(range(1, 33))
    found = sketch_kernels(backend).digests(words, np.concatenate(([0], np.cumsum(sizes))), key)
    parts = np.split(words, np.cumsum(sizes)[:-1])
    assert [one.tobytes() for one in found] == [
        hashlib.blake2b(part.tobytes(), digest_size=16, key=key).digest() for part in parts
    ]


def test_digests_depend_on_the_profile() -> None:
    digests = {
        encoder("numpy", **sections).encode(["one two three four"]).digests[0].tobytes()
        for sections in ({}, {"match": {"threshold": 0.8}}, {"sketch": {"seed": 2}})
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("fields", "title", "body", "text"),
    [
        (["title", "body"], "T", "B", "T\nB"),
        (["title", "body"], None, "B", "B"),
        (["title", "body"], "", "B", "B"),
        (["title", "body"], "T", None, "T"),
        (["title", "body"], "T", "", "T"),
        (["title", "body"], None, None, ""),
        (["body", "title"], "T", "B", "B\nT"),
        (["title"], "T", "B", "T"),
        (["body"], "T", None, ""),
        (["title", "body"], "a\0b", "c\ud800d", "a\ufffdb\nc\ufffdd"),
        (["title", "body"], "a\ud83d", "\ude00b", "a\ufffd\n\ufffdb"),
    ],
)
def test_text_of_joins_the_fields(fields: list[str], title: str | None, body: str | None, text: str) -> None:
    assert encoder("numpy", fields=fields).text_of(title, body) == text


@pytest.fixture
def numba_started(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set once an encoder has started numba, as in a new process."""
    monkeypatch.setattr(backends, "NUMBA_STARTED", started := Event())
    return started


def test_results_stay_the_same_when_the_back_end_changes(numba_started: Event) -> None:
    profile, texts = resolve(Recipe()), stories(40, 200)
    expected = Encoder(profile, "numpy").encode(texts)
    encoder = Encoder(profile, plain_characters=sum(map(len, texts[:25])))
    assert not numba_started.is_set()
    found = [encoder.encode(texts[at : at + 10]) for at in range(0, 30, 10)]
    assert numba_started.is_set() == (backends.resolve() == "numba")
    found.append(encoder.encode(texts[30:]))
    assert np.array_equal(np.concatenate([one.sketches for one in found]), expected.sketches)
    assert np.array_equal(np.concatenate([one.digests for one in found]), expected.digests)


def test_comparisons_count_towards_the_start_of_numba(numba_started: Event) -> None:
    encoder = Encoder(resolve(Recipe()), plain_characters=2_000)
    features = [np.arange(size, dtype=np.uint64) for size in (8, 10)]
    left, right = np.zeros(20, np.int64), np.ones(20, np.int64)
    assert encoder.compare(features, left, right).similarity.tolist() == [0.8] * 20
    assert not numba_started.is_set()
    assert encoder.compare(features, left, right).similarity.tolist() == [0.8] * 20
    assert numba_started.is_set() == (backends.resolve() == "numba")


ROYAL = "the king and the queen of the north met the king of the south at the old mill by the river"
REPUBLISHED = "the king and the queen of the north met the king of the south near the old mill by the sea"
OTHER = "prices of copper fell again while zinc and tin rose a little in slow trade before the long holiday"


def weighted_encoder(threshold: float, backend: str | None = None, **sketch: Any) -> Encoder:
    recipe = {
        "shingle": {"scheme": "bag"},
        "sketch": {"k": 2048, **sketch},
        "match": {"threshold": threshold},
    }
    return Encoder(resolve(from_mapping(recipe)), backend)


def weighed(text: str, weights: str) -> dict[str, float]:
    counts = Counter(text.split())
    return {word: 1 + math.log(count) if weights == "log" else count for word, count in counts.items()}


def cosine(left: dict[str, float], right: dict[str, float]) -> float:
    product = sum(weight * right.get(word, 0) for word, weight in left.items())
    return product / math.hypot(*left.values()) / math.hypot(*right.values())


def closeness(left: dict[str, float], right: dict[str, float]) -> float:
    return 1 / (1 + math.hypot(*(left.get(word, 0) - right.get(word, 0) for word in {*left, *right})))


@pytest.mark.parametrize("weights", ["count", "log"])
@pytest.mark.parametrize(
    ("family", "truth"),
    [
        ({"family": "hyperplane"}, cosine),
        ({"family": "hyperplane", "vectors": "sign"}, cosine),
        ({"family": "projection"}, closeness),
    ],
    ids=["gaussian", "sign", "projection"],
)
def test_similarity_of_texts_equals_that_of_weighted_words(
    family: dict[str, Any], truth: Any, weights: str
) -> None:
    made = weighted_encoder(0.9 if "hyperplane" in family.values() else 2.5, weights=weights, **family)
    sketches = made.encode([ROYAL, REPUBLISHED, OTHER]).sketches
    for left, right, texts in ((0, 1, (ROYAL, REPUBLISHED)), (0, 2, (ROYAL, OTHER))):
        exact = truth(*(weighed(text, weights) for text in texts))
        found = made.family.estimate(sketches[[left]], sketches[[right]])[0]
        assert abs(found - exact) < 4.5 * made.family.standard_error(exact) + 0.01


@pytest.mark.parametrize("family", ["hyperplane", "projection"])
def test_similarity_of_vectors_equals_that_of_their_numbers(family: str) -> None:
    made = weighted_encoder(0.9, family=family, input="vector")
    vectors = [[0.5, -0.5, 0.25, 0.0], [0.5, -0.5, 0.25], [0.5, -0.4, 0.25], [0.0, 0.0], None, [math.nan]]
    encoded = made.encode(vectors)
    assert encoded.counts.tolist() == [3, 3, 3, 0, 0, 0]
    estimates = made.family.estimate(encoded.sketches[[0, 0]], encoded.sketches[[1, 2]])
    assert estimates[0] == 1
    exact = 1 / 1.1 if family == "projection" else 0.5125 / math.sqrt(0.5625 * 0.4725)
    assert abs(estimates[1] - exact) < 4.5 * made.family.standard_error(exact)


def test_the_default_width_depends_on_the_threshold() -> None:
    for threshold, width, expected in (
        (2.0, 0.0, WIDTH_PER_THRESHOLD * 2),
        (8.0, 0.0, WIDTH_PER_THRESHOLD * 8),
        (2.0, 3.0, 3.0),
    ):
        profile = weighted_encoder(threshold, family="projection", width=width).profile
        chance = same_bucket(threshold, expected)
        similarity = 1 / (1 + threshold)
        assert make_family(profile.recipe).collision_probability(similarity) == pytest.approx(chance)
        recall = 1 - (1 - chance**profile.rows) ** profile.bands
        assert profile.expected_recall == pytest.approx(recall)
        assert recall >= 0.99
