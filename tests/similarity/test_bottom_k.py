"""Properties of bottom_k and minhash beyond the conformance suite."""

import math
import random
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch import (
    NO_KNOWN_PAIRS,
    Banding,
    BottomK,
    Family,
    FastSimilarity,
    KnownPairs,
    MinHash,
)
from tests.builders.random_sets import ragged
from tests.builders.selection import every_backend, examples, some

few_ids = st.sets(st.integers(0, 40), min_size=1, max_size=30)
edges = st.sampled_from([0, 1, 2**31, 2**32 - 1])


def sketches_of(family: BottomK, sets: Sequence[set[int]]) -> NDArray[np.generic]:
    return family.sketch(*ragged([list(ids) for ids in sets]))


@every_backend
@examples(100)
@given(ids=st.sets(st.one_of(edges, st.integers(0, 2**32 - 1)), min_size=1, max_size=30))
def test_without_a_seed_sketches_are_the_smallest_ids_in_order(backend: str, ids: set[int]) -> None:
    least = sorted(ids)[:12]
    expected = least + least[-1:] * (12 - len(least))
    for id_bits in (32, 64):
        family = BottomK(12, seed=0, id_bits=id_bits, backend=backend)
        assert sketches_of(family, [ids]).tolist() == [expected]


def similar(left: set[int], right: set[int], k: int, threshold: Fraction) -> bool:
    """Whether the estimate from the k smallest ids of the union reaches a threshold."""
    whole = len(left) < k and len(right) < k
    sample = set(sorted(left | right)[: None if whole else k])
    return len(sample & left & right) >= threshold * len(sample)


def result_set(rng: random.Random) -> list[set[int]]:
    """Sets of 5 to 90 ids: unrelated ones, near-copies, parts of each other, and some with 20 common ids."""
    common = set(rng.sample(range(2**32), 20))
    sets: list[set[int]] = []
    while len(sets) < 120:
        one = set(rng.sample(range(2**32), rng.choice([5, 30, 63, 64, 65, 90])))
        for _ in range(rng.choice([1, 1, 1, 5])):
            kept = rng.sample(sorted(one), rng.randint(2 * len(one) // 3, len(one)))
            sets.append({*kept, *rng.sample(range(2**32), rng.randrange(4)), *rng.choice([common, ()])})
    rng.shuffle(sets)
    return sets


@every_backend
@pytest.mark.parametrize("id_bits", some([64, 32], "both"))
def test_duplicates_of_a_result_set_equal_those_from_all_pairs(backend: str, id_bits: int) -> None:
    rng, k = random.Random(11), 64
    family = BottomK(k, seed=0, id_bits=id_bits, backend=backend)
    for numerator in (1, 8, 14, 19, 20):
        threshold, sets = Fraction(numerator, 20), result_set(rng)
        size = len(sets)
        present = [rng.random() < 0.9 for _ in sets]
        decided = {max(a, b) * size + min(a, b): rng.random() < 0.5 for a, b in ((1, 0), (70, 3), (119, 9))}
        first: list[int] = []
        for row, ids in enumerate(sets):
            kept = [other for other in range(row) if first[other] < 0]
            found = (
                other
                for other in kept
                if decided.get(
                    row * size + other,
                    present[row] and present[other] and similar(ids, sets[other], k, threshold),
                )
            )
            first.append(next(found, -1))
        pairs = sorted(decided)
        known = KnownPairs(np.array(pairs), np.array([decided[pair] for pair in pairs]))
        answer = family.first_similar(sketches_of(family, sets), np.array(present), threshold, known)
        assert answer.tolist() == first
        assert any(other >= 0 for other in first)


@pytest.mark.slow("measures time")
def test_numpy_stops_reading_unrelated_rows_early() -> None:
    """Reference: a full comparison of 100 rows of 128 positions; reading all ids takes 3 times as long."""
    rng = np.random.default_rng(3)
    batch = ragged([rng.integers(0, 2**63, 400).tolist() for _ in range(100)])

    def seconds(family: Family) -> float:
        sketches = family.sketch(*batch)
        taken = []
        for _ in range(20):
            began = time.thread_time()
            family.first_similar(sketches, np.ones(100, bool), Fraction(7, 10), NO_KNOWN_PAIRS)
            taken.append(time.thread_time() - began)
        return min(taken)

    assert seconds(BottomK(128, backend="numpy")) < 1.5 * seconds(FastSimilarity(128, backend="numpy"))


@every_backend
@examples(200)
@given(left=few_ids, right=few_ids, k=st.sampled_from([1, 2, 7, 16, 64]))
def test_estimates_use_the_smallest_ids_of_the_union(
    backend: str, left: set[int], right: set[int], k: int
) -> None:
    family = BottomK(k, seed=0, id_bits=32, backend=backend)
    whole = len(left) < k and len(right) < k
    sample = set(sorted(left | right)[: None if whole else k])
    one, other = (sketches_of(family, [ids]) for ids in (left, right))
    both = len(sample & left & right)
    assert family.agreements(one, other)[0].tolist() == [both]
    assert family.agreements(one, other)[1].tolist() == [len(sample)]
    assert family.estimate(one, other).tolist() == [both / len(sample)]
    known = len(sample & left)
    assert family.containment(one, other).tolist() == pytest.approx(
        [both / known if known else math.nan], nan_ok=True
    )
    if whole:
        assert family.estimate(one, other).tolist() == [len(left & right) / len(left | right)]
        assert family.containment(one, other).tolist() == [len(left & right) / len(left)]


@pytest.mark.parametrize(
    ("bands", "rows", "scheme"), [(4, 2, "mix64"), (4, 1, "xor"), (0, 1, "mix64"), (17, 1, "mix64")]
)
def test_bandings_of_positions_are_refused(bands: int, rows: int, scheme: str) -> None:
    sketches = np.zeros((1, 16), np.uint64)
    with pytest.raises(RecipeError):
        BottomK(16).band_keys(sketches, Banding(bands, rows, scheme, 1))
    with pytest.raises(RecipeError):
        BottomK(16).count_shared_bands(sketches, sketches, Banding(bands, rows, scheme, 1))


every_kind = pytest.mark.parametrize("functions", ["prime32", "java32"])


@every_kind
def test_merged_sketches_equal_those_of_the_unions(functions: str) -> None:
    family = MinHash(64, functions=functions)
    lefts, rights = [[1 << 40, 2 << 40], [9 << 40]], [[2 << 40, 3 << 40, 4 << 40], [9 << 40]]
    unions = [left + right for left, right in zip(lefts, rights, strict=True)]
    merged = np.minimum(family.sketch(*ragged(lefts)), family.sketch(*ragged(rights)))
    assert np.array_equal(merged, family.sketch(*ragged(unions)))


@every_kind
def test_truncated_sketches_equal_those_of_the_smaller_family(functions: str) -> None:
    ids, offsets = ragged([[1 << 33, 77 << 32, 5], [8 << 40]])
    large = MinHash(64, seed=3, functions=functions)
    small = MinHash(10, seed=3, functions=functions)
    assert np.array_equal(large.sketch(ids, offsets)[:, :10], small.sketch(ids, offsets))


@pytest.mark.parametrize("multiplier", [0, 2**32, -1])
def test_multipliers_that_overflow_or_are_zero_are_refused(multiplier: int) -> None:
    with pytest.raises(RecipeError, match=str(multiplier)):
        MinHash(coefficients=[(multiplier, 1)])
