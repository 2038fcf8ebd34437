"""Exact metrics against Python's sets, fractions, math.fsum and SciPy; both back ends to the last bit."""

import math
import random
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import distance

from nearsim_db.similarity import metrics
from nearsim_db.similarity.metrics import FEATURE, METRICS, Scores
from tests.builders.selection import NEEDS_NUMBA, every_backend, examples


def sorted_ids(ids: set[int]) -> NDArray[np.uint64]:
    return np.array(sorted(ids), np.uint64)


@every_backend
def test_a_document_with_many_partners(backend: str) -> None:
    sets = [set(range(start, start + start % 7)) for start in range(700)]
    ids = np.concatenate([sorted_ids(one) for one in sets])
    offsets = np.cumsum([0] + [len(one) for one in sets], dtype=np.int64)
    left, right = np.full(700, 13, np.int64), np.arange(700, dtype=np.int64)
    expected = [len(sets[13] & one) for one in sets]
    assert metrics.intersections(ids, offsets, left, right, backend).tolist() == expected


@given(
    intersection=st.integers(0, 10**6),
    rest=st.integers(0, 10**6),
    threshold=st.decimals("0.01", "1", allow_nan=False, places=17),
)
def test_a_threshold_is_decided_on_integers(intersection: int, rest: int, threshold: object) -> None:
    union = intersection + rest
    exact = Fraction(str(threshold))
    expected = union > 0 and Fraction(intersection, union or 1) >= exact
    for given_as in (str(threshold), exact):
        several = metrics.reach_mask(np.array([intersection, 0]), np.array([union, 0]), given_as)
        assert several.tolist() == [expected, False]


@pytest.mark.parametrize("hundredths", [*range(10, 101, 10), 55])
def test_a_decimal_threshold_is_reached_exactly(hundredths: int) -> None:
    # In binary 0.7 * 10 is below 7 and 0.55 * 100 above 55: floating point would need luck.
    intersections, unions = np.array([hundredths, hundredths * 10**14 - 1]), np.array([100, 10**16])
    assert metrics.reach_mask(intersections, unions, hundredths / 100).tolist() == [True, False]
    nothing = np.zeros(0, np.int64)
    assert metrics.reach_mask(nothing, nothing, hundredths / 100).tolist() == []


Weights = dict[int, float]

some_id = st.one_of(st.integers(0, 12), st.integers(2**64 - 3, 2**64 - 1))
counts = st.dictionaries(some_id, st.integers(1, 2**40).map(float), min_size=1, max_size=12)
above_zero = st.dictionaries(some_id, st.floats(1e-6, 1e6), min_size=1, max_size=12)
signed = st.dictionaries(
    some_id, st.one_of(st.floats(-1e6, -1e-6), st.floats(1e-6, 1e6)), min_size=1, max_size=12
)


def document(weights: Weights) -> NDArray[Any]:
    return np.array(sorted(weights.items()), FEATURE)


def scores(metric: str, left: Weights, right: Weights, backend: str = "numpy") -> Scores:
    rows = np.zeros(1, np.int64), np.ones(1, np.int64)
    return METRICS[metric].compare([document(left), document(right)], *rows, backend)


def similarity(metric: str, left: Weights, right: Weights, backend: str = "numpy") -> float:
    return float(scores(metric, left, right, backend).similarity[0])


def both(left: Weights, right: Weights) -> list[tuple[float, float]]:
    """The weights of each id that one or both have, by ascending id."""
    return [(left.get(one, 0.0), right.get(one, 0.0)) for one in sorted(left.keys() | right.keys())]


def dense(left: Weights, right: Weights) -> NDArray[np.float64]:
    return np.array(both(left, right)).T


@every_backend
@examples(50)
@given(left=above_zero, right=above_zero)
def test_weighted_jaccard_equals_exact_sums(backend: str, left: Weights, right: Weights) -> None:
    pairs = both(left, right)
    expected = math.fsum(map(min, pairs)) / math.fsum(map(max, pairs))
    assert similarity("weighted_jaccard", left, right, backend) == pytest.approx(expected, abs=2e-12)


@every_backend
@examples(50)
@given(left=signed, right=signed)
def test_cosine_and_euclidean_equal_scipy(backend: str, left: Weights, right: Weights) -> None:
    one, other = dense(left, right)
    assert similarity("cosine", left, right, backend) == pytest.approx(
        1 - distance.cosine(one, other), abs=1e-11
    )
    found = scores("euclidean", left, right, backend)
    assert found.distance is not None
    assert found.distance[0] == pytest.approx(distance.euclidean(one, other), rel=1e-12, abs=1e-12)
    assert found.similarity[0] == 1 / (1 + found.distance[0])


weights_of = {"weighted_jaccard": above_zero, "cosine": signed, "euclidean": signed}


@NEEDS_NUMBA
@pytest.mark.parametrize("metric", list(weights_of))
@examples(60)
@given(data=st.data())
def test_scores_do_not_depend_on_the_batch(metric: str, data: st.DataObject) -> None:
    """Equal to the last bit in both back ends, in either order, alone and in a batch."""
    documents = [document(one) for one in data.draw(st.lists(weights_of[metric], min_size=1, max_size=5))]
    row = st.integers(0, len(documents) - 1)
    pairs = data.draw(st.lists(st.tuples(row, row), min_size=1, max_size=8))
    left, right = np.array(pairs, np.int64).T
    compare = METRICS[metric].compare
    together = compare(documents, left, right, "numba").similarity.tolist()
    assert compare(documents, left, right, "numpy").similarity.tolist() == together
    assert compare(documents, right, left, "numpy").similarity.tolist() == together
    for place, (one, other) in enumerate(pairs):
        alone = compare([documents[one], documents[other]], np.zeros(1, np.int64), np.ones(1, np.int64), None)
        assert alone.similarity.tolist() == [together[place]]
        if one == other:
            assert together[place] == 1.0


@NEEDS_NUMBA
def test_back_ends_agree_on_a_large_batch() -> None:
    """Many long documents, so that features are processed in parts and the order of a sum matters."""
    rng = np.random.default_rng(4)
    documents = []
    for size in rng.integers(0, 900, 300):
        one = np.empty(size, FEATURE)
        one["id"] = np.sort(rng.choice(1_200, size, replace=False))
        one["weight"] = rng.standard_normal(size)
        documents.append(one)
    left, right = rng.integers(0, 300, (2, 700))
    for metric in ("cosine", "euclidean"):
        with np.errstate(invalid="ignore"):
            found, expected = (
                METRICS[metric].compare(documents, left, right, backend) for backend in ("numba", "numpy")
            )
        assert np.array_equal(found.similarity, expected.similarity, equal_nan=True)


@pytest.mark.parametrize("tenths", range(1, 11))
def test_decimal_thresholds_are_reached_exactly(tenths: int) -> None:
    threshold = tenths / 10
    metric = METRICS["weighted_jaccard"]
    found = scores("weighted_jaccard", {1: tenths * 3.0}, {1: 30.0})
    assert metric.reaches(found, threshold).tolist() == [True]
    below = scores("weighted_jaccard", {1: tenths * 3e9 - 1}, {1: 3e10})
    assert metric.reaches(below, threshold).tolist() == [False]
    parallel = scores("cosine", {1: 0.1 * tenths, 2: 0.7}, {1: 0.3 * tenths, 2: 2.1})
    assert METRICS["cosine"].reaches(parallel, 1.0).tolist() == [True]
    apart = scores("euclidean", {1: 0.3, 7: 5.0}, {1: 0.3 + threshold, 7: 5.0})
    metric = METRICS["euclidean"]
    assert metric.reaches(apart, threshold).tolist() == [True]
    assert metric.reaches(apart, threshold - 1e-11).tolist() == [False]
    assert metric.reaches(Scores(apart.similarity), threshold).tolist() == [True]


@examples(50)
@given(left=st.sets(some_id, min_size=1), right=st.sets(some_id, min_size=1))
def test_containment_equals_python_sets(left: set[int], right: set[int]) -> None:
    found = metrics.containment(np.array(sorted(left), np.uint64), np.array(sorted(right), np.uint64))
    assert found == (len(left & right) / len(left), len(left & right) / len(right))


@every_backend
@examples(50)
@given(seed=st.integers(0, 2**32), threshold=st.sampled_from([0.1, 0.5, 0.7, 1.0]))
def test_no_containment_at_the_threshold_is_excluded(backend: str, seed: int, threshold: float) -> None:
    rng = random.Random(seed)
    known = [rng.getrandbits(rng.choice((8, 64))) for _ in range(rng.choice((20, 400)))]
    texts = [rng.choices(known, k=rng.randrange(1, rng.choice((4, 300)))) for _ in range(12)]
    texts += [texts[at] + [rng.getrandbits(64) for _ in range(rng.randrange(50))] for at in range(4)]
    left, right = np.array(list(combinations(range(16), 2)), np.int64).T
    features = [np.array(text, np.uint64) for text in texts]
    found = METRICS["containment"].may_reach(features, left, right, threshold, backend)
    for one, other, may in zip(left.tolist(), right.tolist(), found.tolist(), strict=True):
        shared = len(set(texts[one]) & set(texts[other]))
        smaller = min(len(set(texts[one])), len(set(texts[other])))
        assert may or shared < threshold * smaller
    assert found.tolist() == METRICS["containment"].may_reach(features, left, right, threshold, None).tolist()


def test_texts_that_have_little_in_common_are_excluded() -> None:
    rng = random.Random(1)
    texts = [[rng.getrandbits(64) for _ in range(300)] for _ in range(40)]
    features = [np.array(text[:290] + texts[0][:10], np.uint64) for text in texts]
    left, right = np.array(list(combinations(range(1, 40), 2)), np.int64).T
    assert not METRICS["containment"].may_reach(features, left, right, 0.5, None).any()


def test_empty_sets_and_batches() -> None:
    nothing = np.zeros(0, np.uint64)
    assert math.isnan(metrics.containment(nothing, np.ones(1, np.uint64))[0])
    assert metrics.containment(nothing, np.ones(1, np.uint64))[1] == 0
    none = np.zeros(0, np.int64)
    for metric in ("weighted_jaccard", "cosine", "euclidean"):
        assert METRICS[metric].compare([], none, none, None).similarity.tolist() == []
