"""Screening, counts and the caches, against fractions, Python's sets and a plain list."""

import math
import random
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.cache import BoundedCache
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import FEATURE, count_overlaps
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import from_mapping
from nearsim_db.similarity.screening import ENTRY_BYTES, FeatureCache, Screened, screen
from tests.builders.selection import every_backend, examples

K = 128


def signatures_agreeing_in(equal_positions: list[int], seed: int = 5) -> Signatures:
    """Sketches of K positions: row i + 1 agrees with row 0 in the first `equal_positions[i]`, and no more."""
    drawn = random.Random(seed)
    sketches = np.array([drawn.sample(range(2**32), K)] * (len(equal_positions) + 1), np.uint32)
    for row, equal in enumerate(equal_positions, 1):
        sketches[row, equal:] ^= np.uint32(row)
    doc_ids = np.arange(1, len(sketches) + 1, dtype=np.int64) * 10
    return Signatures(doc_ids, sketches, [UUID(int=row) for row in range(len(sketches))])


def screened(equal_positions: list[int], **sections: Any) -> Screened:
    recipe = from_mapping({"bands": {"count": 32, "rows": 4}} | sections)
    signatures = signatures_agreeing_in(equal_positions)
    right = np.arange(1, len(equal_positions) + 1, dtype=np.int64)
    return screen(Encoder(resolve(recipe), "numpy"), signatures, np.zeros_like(right), right)


def kept_rows(found: Screened) -> list[int]:
    rows: list[int] = found.right.tolist()
    return rows


EVERY_AGREEMENT = list(range(K + 1))


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.778, 0.9, 1.0])
def test_exact_screening_drops_only_estimates_far_below_the_threshold(threshold: float) -> None:
    found = screened(EVERY_AGREEMENT, match={"threshold": threshold})
    least = threshold - 5 * math.sqrt(threshold * (1 - threshold) / K)
    expected = [equal for equal in EVERY_AGREEMENT if equal >= 4 and equal / K >= least]
    assert kept_rows(found) == [equal + 1 for equal in expected]
    assert found.left.tolist() == [0] * len(expected)
    assert found.shared_bands.tolist() == [equal // 4 for equal in expected]
    assert found.estimate.tolist() == [equal / K for equal in expected]


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.778, 0.9, 1.0])
def test_estimates_are_decided_at_the_threshold(threshold: float) -> None:
    found = screened(EVERY_AGREEMENT, match={"threshold": threshold, "verify": "estimate"})
    exact = Fraction(Decimal(repr(threshold)))
    assert kept_rows(found) == [equal + 1 for equal in EVERY_AGREEMENT if Fraction(equal, K) >= exact]


def test_estimates_are_decided_on_integers() -> None:
    # 7 of 10 positions are 0.7; as floats, 0.7 * 10 and 7 / 10 need not agree.
    recipe = {"sketch": {"k": 10}, "bands": {"count": 1, "rows": 1}, "match": {"verify": "estimate"}}
    sketches = np.zeros((3, 10), np.uint32)
    sketches[1, 7:] = 1
    sketches[2, 6:] = 1
    signatures = Signatures(np.arange(3), sketches, [uuid4() for _ in range(3)])
    encoder = Encoder(resolve(from_mapping(recipe)), "numpy")
    found = screen(encoder, signatures, np.array([0, 0]), np.array([1, 2]))
    assert kept_rows(found) == [1]


@pytest.mark.parametrize("minimum", [1, 2, 3, 31, 32])
def test_a_minimum_of_shared_bands(minimum: int) -> None:
    found = screened(EVERY_AGREEMENT, match={"threshold": 0.01, "min_shared_bands": minimum})
    assert kept_rows(found) == [equal + 1 for equal in EVERY_AGREEMENT if equal // 4 >= minimum]


def test_bands_that_satisfy_an_amplification() -> None:
    # The bands are shared from the first on: all of the first half, before one of the second.
    for text, least in (
        ("and(2, or(16, and(4)))", 17),
        ("or(2, and(16, and(4)))", 16),
        ("at_least(9, 32, and(4))", 9),
    ):
        found = screened(EVERY_AGREEMENT, bands={}, match={"threshold": 0.01, "amplification": text})
        assert kept_rows(found) == [equal + 1 for equal in EVERY_AGREEMENT if equal // 4 >= least]
        assert found.shared_bands.tolist() == [equal // 4 for equal in EVERY_AGREEMENT if equal // 4 >= least]


def test_large_sketches_are_screened_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = screened(EVERY_AGREEMENT, match={"threshold": 0.5})
    monkeypatch.setattr("nearsim_db.similarity.screening._SKETCH_BYTES_AT_ONCE", 7 * 4 * K)
    parts = screened(EVERY_AGREEMENT, match={"threshold": 0.5})
    for name in ("left", "right", "shared_bands", "estimate"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()
    assert parts.sketch_scores.intersection is not None and whole.sketch_scores.intersection is not None
    assert parts.sketch_scores.intersection.tolist() == whole.sketch_scores.intersection.tolist()
    assert parts.sketch_scores.distance is None


def bits_agreeing_in(equal_positions: list[int]) -> Signatures:
    """Sketches of K positions of 0 or 1: row i + 1 agrees with row 0 in the first `equal_positions[i]`, and no more."""
    sketches = np.zeros((len(equal_positions) + 1, K), np.uint8)
    for row, equal in enumerate(equal_positions, 1):
        sketches[row, equal:] = 1
    return Signatures(np.arange(len(sketches)), sketches, [UUID(int=row) for row in range(len(sketches))])


@pytest.mark.parametrize("threshold", [0.3, 0.7, 0.9, 0.99, 0.9999])
def test_pairs_at_a_cosine_threshold_are_rarely_dropped(threshold: float) -> None:
    """Also close to 1, where the distribution of estimates is skewed to low values."""
    sections = {"sketch": {"family": "hyperplane", "k": K}, "bands": {"count": 8, "rows": 1}}
    recipe = from_mapping({**sections, "match": {"threshold": threshold}})
    right = np.arange(1, K + 2)
    encoder = Encoder(resolve(recipe), "numpy")
    found = screen(encoder, bits_agreeing_in(EVERY_AGREEMENT), np.zeros_like(right), right)
    least = min(kept_rows(found)) - 1
    assert kept_rows(found) == list(range(least + 1, K + 2))
    lost = stats.binom.cdf(least - 1, K, 1 - math.acos(threshold) / math.pi)
    assert lost < 1e-3
    assert stats.binom.cdf(least + 16, K, 1 - math.acos(threshold) / math.pi) > 1e-3


some_ids = st.sets(st.one_of(st.integers(0, 20), st.integers(2**64 - 5, 2**64 - 1)), max_size=15)


@every_backend
@examples(60)
@given(sets=st.lists(some_ids, min_size=1, max_size=6), data=st.data())
def test_overlaps_equal_python_sets(backend: str, sets: list[set[int]], data: st.DataObject) -> None:
    rows = st.integers(0, len(sets) - 1)
    pairs = data.draw(st.lists(st.tuples(rows, rows), max_size=8))
    features = [np.array(sorted(ids), np.uint64) for ids in sets]
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    intersection, union = count_overlaps(features, left, right, backend)
    assert intersection.tolist() == [len(sets[one] & sets[other]) for one, other in pairs]
    assert union.tolist() == [len(sets[one] | sets[other]) for one, other in pairs]


def ids(count: int) -> NDArray[np.uint64]:
    return np.arange(count, dtype=np.uint64)


def cached(cache: FeatureCache, doc_id: int, digest: UUID) -> NDArray[np.uint64] | None:
    return cache.get_all([doc_id], [digest])[0]


def test_the_cache_returns_entries_of_the_same_digest_only() -> None:
    cache, digest, other = FeatureCache(), uuid4(), uuid4()
    cache.put(1, digest, ids(3))
    assert (found := cached(cache, 1, digest)) is not None and found.tolist() == [0, 1, 2]
    assert cached(cache, 1, other) is None and cached(cache, 2, digest) is None
    cache.put(1, other, ids(5))
    assert cached(cache, 1, digest) is None
    assert (replaced := cached(cache, 1, other)) is not None and len(replaced) == 5


def test_weighted_features_count_their_ids_and_weights_in_bytes() -> None:
    cache, digest = FeatureCache(capacity_bytes=2 * (16_000 + ENTRY_BYTES)), uuid4()
    for doc_id in (1, 2, 3):
        cache.put(doc_id, digest, np.ones(1_000, FEATURE))
    assert [doc_id for doc_id in (1, 2, 3) if cached(cache, doc_id, digest) is not None] == [2, 3]


def test_the_cache_counts_the_memory_of_its_entries() -> None:
    capacity, digests = 4 << 20, [uuid4() for _ in range(10_000)]
    tracemalloc.start()
    try:
        cache = FeatureCache(capacity)
        for doc_id, digest in enumerate(digests):
            cache.put(1_000_000 + doc_id, digest, ids(200))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.9 * capacity < held < 1.1 * capacity


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.integers(0, 50)), max_size=60))
def test_bounded_cache_keeps_the_most_recently_used(steps: list[tuple[bool, int, int]]) -> None:
    """Compare with a plain list of keys, the least recently used first."""
    cache = BoundedCache[int, int](100)
    kept: list[tuple[int, int]] = []
    for writes, key, size in steps:
        before = [one for one in kept if one[0] == key]
        if writes:
            cache.put(key, size, size)
            kept = [*(one for one in kept if one[0] != key), (key, size)]
            while sum(one[1] for one in kept) > 100:
                kept.pop(0)
        else:
            assert cache.get(key) == (before[0][1] if before else None)
            kept = [*(one for one in kept if one[0] != key), *before]
        assert len(cache) == len(kept)
    wanted = [*range(7)]
    random.Random(len(steps)).shuffle(wanted)
    assert cache.get_many(wanted) == [dict(kept).get(key) for key in wanted]


def test_a_value_larger_than_the_capacity_is_not_cached() -> None:
    cache = BoundedCache[str, str](10)
    cache.put("small", "kept", 5)
    cache.put("large", "never", 11)
    assert cache.get_many(["small", "large"]) == ["kept", None]
    cache.put("small", "again", 10)
    assert cache.get("small") == "again"
