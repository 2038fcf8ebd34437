"""Estimates of every sketch family against theory: bias, variance, collision probability."""

import math
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, norm

from nearsim_db.similarity.sketch import Banding, KnownPairs
from tests.builders.random_sets import ragged
from tests.builders.selection import every_backend, examples
from tests.builders.sketch_variants import (
    CASES,
    SEEDS,
    VARIANTS,
    WIDTH,
    Variant,
    every_variant,
    every_variant_of_sets,
    matrix_keys,
)

pytestmark = pytest.mark.slow("statistics")

EVERY_CASE = [(variant, *case) for variant in VARIANTS for case in CASES[variant.metric]]
every_case = pytest.mark.parametrize(("variant", "similarity", "size"), EVERY_CASE, ids=str)


def chance_of_bucket(similarity: float) -> float:
    """The p-stable formula of Datar and others."""
    if not 0 < similarity < 1:
        return float(similarity >= 1)
    ratio = WIDTH / (1 / similarity - 1)
    lost = 2 / (math.sqrt(2 * math.pi) * ratio) * (1 - math.exp(-(ratio**2) / 2))
    return float(1 - 2 * norm.cdf(-ratio) - lost)


@cache
def similarity_of_buckets(share: float) -> float:
    """Its inverse."""
    if share in (0, 1):
        return share
    return float(
        brentq(lambda similarity: chance_of_bucket(similarity) - share, 1e-12, 1 - 1e-12, xtol=1e-14)
    )


CHANCES: Mapping[str, Callable[[float], float]] = {
    "jaccard": lambda similarity: similarity,
    "weighted_jaccard": lambda similarity: similarity,
    "cosine": lambda similarity: 1 - math.acos(similarity) / math.pi,
    "euclidean": chance_of_bucket,
}
INVERSES: Mapping[str, Callable[[float], float]] = {
    "jaccard": lambda share: share,
    "weighted_jaccard": lambda share: share,
    "cosine": lambda share: math.cos(math.pi * (1 - share)),
    "euclidean": similarity_of_buckets,
}


def moments(metric: str, similarity: float, k: int) -> tuple[float, float]:
    """Expectation and standard deviation of an estimate from k independent positions."""
    chances = binom.pmf(np.arange(k + 1), k, CHANCES[metric](similarity))
    estimates = np.array([INVERSES[metric](count / k) for count in range(k + 1)])
    mean = float(chances @ estimates)
    return mean, math.sqrt(float(chances @ (estimates - mean) ** 2))


@pytest.mark.slow("statistics")
@every_case
def test_bias_and_variance_agree_with_theory(variant: Variant, similarity: float, size: int) -> None:
    family = variant.make()
    mean, deviation = moments(variant.metric, similarity, 128)
    pairs = [variant.sketches(similarity, size, seed) for seed in range(SEEDS)]
    errors = np.concatenate([family.estimate(*pair) for pair in pairs]) - mean
    assert abs(errors.mean()) < 4.5 * deviation / math.sqrt(len(errors))
    assert np.mean(errors**2) < 1.15 * deviation**2
    if variant.is_binomial:
        assert np.mean(errors**2) > 0.85 * deviation**2


@every_case
def test_collision_probability_and_standard_error_agree_with_theory(
    variant: Variant, similarity: float, size: int
) -> None:
    """With many positions, where the slope approximates the curve."""
    probability = variant.make().collision_probability(similarity)
    assert probability == pytest.approx(CHANCES[variant.metric](similarity), abs=1e-12)
    _, deviation = moments(variant.metric, similarity, 1024)
    assert variant.make(k=1024).standard_error(similarity) == pytest.approx(deviation, rel=0.03)


@every_variant
def test_standard_errors_are_finite_and_zero_at_the_upper_end(variant: Variant) -> None:
    family = variant.make()
    errors = [family.standard_error(similarity) for similarity in (0.0, 1e-300, 1e-9, 0.3, 1 - 1e-12, 1.0)]
    assert all(math.isfinite(error) and error >= 0 for error in errors)
    assert errors[-1] == 0


few_documents = st.lists(st.lists(st.integers(0, 25), min_size=1, max_size=20), min_size=1, max_size=9)


@every_variant
@examples(25)
@given(documents=few_documents)
def test_shared_bands_count_equal_keys(variant: Variant, documents: list[list[int]]) -> None:
    family = variant.make(k=12, id_bits=32)
    sketches = family.sketch(*variant.batch(documents))
    bands, rows = (4, 3) if family.positional else (8, 1)
    keys = matrix_keys(family, sketches, Banding(bands, rows)).tolist()
    assert all(len(set(own)) == bands for own in keys)
    for row in range(len(documents)):
        others = np.broadcast_to(sketches[row], sketches.shape)
        counts = family.count_shared_bands(others, sketches, Banding(bands, rows))
        assert counts.tolist() == [len(set(keys[row]) & set(other)) for other in keys]
        matched = family.matched_bands(others, sketches, Banding(bands, rows))
        assert matched.tolist() == [[key in other for key in keys[row]] for other in keys]


@every_variant
@examples(25)
@given(documents=few_documents)
def test_estimates_depend_only_on_agreements(variant: Variant, documents: list[list[int]]) -> None:
    family = variant.make(k=12, id_bits=32)
    sketches = family.sketch(*variant.batch(documents))
    for other in sketches:
        against = np.broadcast_to(other, sketches.shape)
        agreeing, compared = family.agreements(sketches, against)
        expected = [INVERSES[variant.metric](share) for share in (agreeing / compared).tolist()]
        assert family.estimate(sketches, against).tolist() == pytest.approx(expected, abs=1e-11)


@every_variant
@every_backend
@pytest.mark.parametrize("scheme", ["mix64", "xor"])
@examples(10)
@given(documents=few_documents, data=st.data())
def test_rows_are_compared_like_copies(
    variant: Variant, backend: str, scheme: str, documents: list[list[int]], data: st.DataObject
) -> None:
    family = variant.make(k=14, id_bits=32, backend=backend)
    sketches = family.sketch(*variant.batch(documents))
    rows = st.lists(st.integers(0, len(documents) - 1), min_size=5, max_size=5)
    left, right = np.array(data.draw(rows), np.int64), np.array(data.draw(rows), np.int64)
    banding = Banding(4, 3, scheme) if family.positional else Banding(8, 1)
    found = family.compare_rows(sketches, left, right, banding)
    keys = matrix_keys(family, sketches, banding).tolist()
    ends = list(zip(left.tolist(), right.tolist(), strict=True))
    assert found.shared.tolist() == [len(set(keys[one]) & set(keys[other])) for one, other in ends]
    copies = sketches[left], sketches[right]
    agreeing, compared = family.agreements(*copies)
    assert (found.agreeing.tolist(), found.compared.tolist()) == (agreeing.tolist(), compared.tolist())
    similarities = family.similarities(found.agreeing, found.compared)
    assert similarities.tolist() == family.estimate(*copies).tolist()


@every_variant
@every_backend
@examples(25)
@given(data=st.data(), documents=few_documents)
def test_early_exit_changes_no_result(
    variant: Variant, backend: str, data: st.DataObject, documents: list[list[int]]
) -> None:
    """Against full comparisons of one pair at a time."""
    threshold = Fraction(data.draw(st.integers(1, 20)), 20)
    family = variant.make(k=data.draw(st.sampled_from([1, 5, 12, 33])), id_bits=32, backend=backend)
    size = len(documents)
    present = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    decided = data.draw(st.dictionaries(st.integers(0, size**2 - 1), st.booleans(), max_size=4))
    sketches = family.sketch(*variant.batch(documents))
    first: list[int] = []
    for row in range(size):
        staying = [other for other in range(row) if first[other] < 0]
        estimates = family.estimate(np.repeat(sketches[[row]], row, axis=0), sketches[:row]).tolist()
        alike = [
            decided.get(
                row * size + other, present[row] and present[other] and estimates[other] >= float(threshold)
            )
            for other in range(row)
        ]
        first.append(next((other for other in staying if alike[other]), -1))
    pairs = sorted(decided)
    given_pairs = KnownPairs(np.array(pairs, np.int64), np.array([decided[pair] for pair in pairs], bool))
    assert family.first_similar(sketches, present, threshold, given_pairs).tolist() == first


@every_variant_of_sets
def test_raw_ids_of_32_bits_are_estimated_without_bias(variant: Variant) -> None:
    """CRC-32 values, and the least random ids, consecutive numbers; MinHash's linear functions are biased on these."""
    crc32 = [[zlib.crc32(f"word {450 * seed + at}".encode()) for at in range(450)] for seed in range(200)]
    for known in (crc32, *([] if variant.name == "minhash" else [[list(range(450))] * 200])):
        errors = []
        for seed, ids in enumerate(known):
            family = variant.make(seed=seed, id_bits=32)
            sketches = family.sketch(*ragged([ids[:350], ids[100:]]))
            errors.append(family.estimate(sketches[:1], sketches[1:])[0] - 250 / 450)
        assert abs(np.mean(errors)) < 4.5 * family.standard_error(250 / 450) / math.sqrt(200)
