"""The forecast of candidates against a full count."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db.similarity.amplification import and_, banding, or_
from nearsim_db.similarity.recipe_warnings import MANY_CANDIDATES, candidates_per_document, of_candidates


def in_bands(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hashes (n, bands) with the band in the top byte."""
    return hashes | (np.arange(hashes.shape[1], dtype=np.uint64) << np.uint64(56))


def count_all(keys: list[list[int]], minimum: int) -> float:
    """Candidate pairs per document by comparing every pair."""
    linked = sum(
        sum(a == b for a, b in zip(left, right, strict=True)) >= minimum
        for left, right in combinations(keys, 2)
    )
    return linked / len(keys)


@pytest.mark.parametrize("minimum", [1, 2, 3])
@pytest.mark.parametrize("buckets", [20, 3_000])  # with the latter most documents share none
@pytest.mark.parametrize("size", [2, 99, 250])
def test_sample_of_the_whole_corpus_is_counted_exactly(size: int, buckets: int, minimum: int) -> None:
    keys = in_bands(np.random.default_rng(size).integers(0, buckets, (size, 6), np.uint64))
    expected = count_all(keys.tolist(), minimum)
    assert candidates_per_document(keys, banding(keys.shape[1], 1, minimum), size) == pytest.approx(expected)


def test_forecast_of_a_two_step_construction() -> None:
    keys = in_bands(np.random.default_rng(3).integers(0, 4, (120, 6), np.uint64))
    linked = 0
    for left, right in combinations(keys.tolist(), 2):
        same = [a == b for a, b in zip(left, right, strict=True)]
        linked += any(same[:2]) and any(same[2:4]) and any(same[4:])
    assert candidates_per_document(keys, and_(3, or_(2)), 120) == pytest.approx(linked / 120)


def test_forecast_from_a_sample_is_close_to_the_corpus() -> None:
    keys = in_bands(np.random.default_rng(7).integers(0, 500, (4_000, 8), np.uint64))
    reported = candidates_per_document(keys[:1_000], or_(8), len(keys))
    assert reported == pytest.approx(count_all(keys[:1_000].tolist(), 1) * 4, rel=0.01)
    assert reported == pytest.approx(len(keys) * 8 / 500 / 2, rel=0.1)


def test_keys_of_one_band_are_shared_at_any_position() -> None:
    keys = np.array([[1, 2, 3], [3, 1, 9], [7, 2, 8]], np.uint64)
    for minimum, expected in ((1, 2 / 3), (2, 1 / 3)):
        assert candidates_per_document(keys, banding(3, 1, minimum), 3) == pytest.approx(expected)


def test_few_candidates_give_no_of_candidates() -> None:
    for size in (0, 1):
        assert candidates_per_document(np.zeros((size, 4), np.uint64), or_(4), 1_000) == 0
    assert of_candidates(MANY_CANDIDATES) is None
    assert "12,346" in (of_candidates(12_345.6) or "")
