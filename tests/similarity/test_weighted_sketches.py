"""Properties of the weighted families beyond the conformance suite."""

import math
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch import DartMinHash, Hyperplane, Projection, make_family, same_bucket
from tests.builders.random_sets import Batch, ragged
from tests.builders.selection import NEEDS_NUMBA, every_backend, examples

every_kind = pytest.mark.parametrize("vectors", ["gaussian", "sign"])
every_family = pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hyperplane", {"vectors": "gaussian"}),
        ("hyperplane", {"vectors": "sign"}),
        ("projection", {"width": 4.0}),
    ],
    ids=["gaussian", "sign", "projection"],
)


def vectors_of(rows: NDArray[np.float64]) -> Batch:
    """Dense vectors as a batch: dimensions from 0 on."""
    count, size = rows.shape
    ids = np.tile(np.arange(size, dtype=np.uint64), count)
    return Batch(ids, np.arange(count + 1, dtype=np.int64) * size, rows.ravel())


def normal_rows(count: int, size: int, seed: int = 4) -> NDArray[np.float64]:
    drawn = random.Random(seed)
    return np.array([[drawn.gauss(0, 1) for _ in range(size)] for _ in range(count)])


@every_family
@every_backend
@examples(25)
@given(data=st.data())
def test_vectors_have_the_sketches_of_equal_terms(
    name: str, options: dict[str, Any], backend: str, data: st.DataObject
) -> None:
    numbers = st.floats(-1e6, 1e6).filter(lambda one: abs(one) > 1e-30)
    vector = st.dictionaries(st.sampled_from([0, 1, 2, 63, 64, 200, 5000, 2**40]), numbers, max_size=6)
    documents = data.draw(st.lists(vector, min_size=1, max_size=5))
    ids, offsets = ragged([sorted(one) for one in documents])
    weights = np.array([one[dimension] for one in documents for dimension in sorted(one)], np.float64)
    k = data.draw(st.sampled_from([1, 65, 300]))
    sketches = [
        make_family(name, k, 3, 64, {**options, "input": given}, backend).sketch(ids, offsets, weights)
        for given in ("terms", "vector")
    ]
    assert np.array_equal(sketches[0], sketches[1])


@every_family
def test_documents_beyond_one_matrix_product(name: str, options: dict[str, Any]) -> None:
    rows = normal_rows(1_100, 5)
    family = make_family(name, 300, 1, 64, {**options, "input": "vector"})
    together = family.sketch(*vectors_of(rows))
    assert np.array_equal(family.sketch(*vectors_of(rows[1_020:1_030])), together[1_020:1_030])
    assert np.array_equal(make_family(name, 300, 1, 64, options).sketch(*vectors_of(rows)), together)


def test_threads_with_growing_dimensions_share_a_family() -> None:
    family = make_family("hyperplane", 64, 1, 64, {"input": "vector"})
    batches = [vectors_of(normal_rows(3, size)) for size in range(60, 900, 60)]
    expected = [make_family("hyperplane", 64, 1).sketch(*batch) for batch in batches]

    def are_right(places: list[int]) -> bool:
        return all(np.array_equal(family.sketch(*batches[place]), expected[place]) for place in places)

    places = list(range(len(batches)))
    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(are_right, (places, places[::-1], places[5:])))


@every_kind
@every_backend
def test_only_the_direction_counts(vectors: str, backend: str) -> None:
    family = Hyperplane(256, vectors=vectors, backend=backend)
    rows = normal_rows(20, 40)
    ids, offsets, _ = vectors_of(rows)
    weights = rows.ravel()
    sketches = family.sketch(ids, offsets, weights)
    for factor in (2.0, 2.0**-1000, 2.0**1000):
        assert np.array_equal(family.sketch(ids, offsets, weights * factor), sketches)
    # Other multiples are rounded otherwise: hardly ever does a side change.
    assert np.mean(family.sketch(ids, offsets, weights * 3) != sketches) < 1e-3
    opposite = family.sketch(ids, offsets, -weights)
    assert np.array_equal(opposite, 1 - sketches)
    assert family.estimate(sketches, opposite).tolist() == [-1.0] * 20
    assert family.estimate(sketches, sketches).tolist() == [1.0] * 20


@every_backend
def test_missing_weights_are_1(backend: str) -> None:
    ids, offsets = ragged([[5, 6, 2**40], [8]])
    for family in (
        Hyperplane(64, backend=backend),
        Projection(64, backend=backend),
        DartMinHash(64, backend=backend),
    ):
        assert np.array_equal(family.sketch(ids, offsets), family.sketch(ids, offsets, np.ones(4)))


@every_backend
@pytest.mark.parametrize("given_as", ["terms", "vector"])
@pytest.mark.parametrize("size", [2.0**31, 2.0**33, 1e15, 1e38])
def test_huge_vectors_are_similar_only_to_near_ones(backend: str, given_as: str, size: float) -> None:
    family = Projection(512, width=2.0, input=given_as, backend=backend)
    rows = np.full((4, 50), size)
    rows[:, :10] = normal_rows(1, 10)
    rows[1, 0] += 0.5
    rows[2, 30] *= 2
    rows[3] = -rows[3]
    one, near, further, opposite = family.sketch(*vectors_of(rows))
    expected = family.collision_probability(1 / 1.5)
    assert abs(np.mean(one == near) - expected) < 4.5 * math.sqrt(expected * (1 - expected) / 512)
    assert np.count_nonzero(one == further) <= 2
    assert np.count_nonzero(one == opposite) <= 2


@examples(50)
@given(distance=st.floats(1e-6, 1e9), width=st.floats(1e-3, 1e3))
def test_bucket_probability_is_the_integral_over_the_lines(distance: float, width: float) -> None:
    """Of 1 - |t| / width over the normally distributed distance t on a line."""
    reach = width / distance
    expected = 2 * quad(lambda t: (1 - t / reach) * norm.pdf(t), 0, min(reach, 40))[0]
    assert same_bucket(distance, width) == pytest.approx(expected, rel=1e-7, abs=1e-12)
    similarity = 1 / (1 + distance)
    assert Projection(8, width=width).collision_probability(similarity) == pytest.approx(expected, rel=1e-6)


def test_bucket_probability_at_the_ends() -> None:
    assert same_bucket(0, 4) == 1
    assert same_bucket(math.inf, 4) == 0
    assert same_bucket(1e200, 1e-200) == 0
    assert same_bucket(1e-200, 1e200) == 1
    assert [Projection(8).collision_probability(one) for one in (-0.1, 0.0, 1.0)] == [0, 0, 1]
    with pytest.raises(RecipeError, match="a distance of -1 is out of range"):
        same_bucket(-1, 4)


@pytest.mark.parametrize("width", [1e-30, 0.02, 1.0, 4.0, 1e30])
def test_estimates_increase_with_agreements_from_0_to_1(width: float) -> None:
    family = Projection(400, width=width)
    similarities = [family.similarity_of(agreeing) for agreeing in range(401)]
    assert (similarities[0], similarities[400]) == (0.0, 1.0)
    assert similarities == sorted(similarities)
    for agreeing in (1, 50, 399):
        if 1e-3 < similarities[agreeing] < 0.999:
            share = family.collision_probability(similarities[agreeing])
            assert share == pytest.approx(agreeing / 400, rel=1e-6)


scales = st.sampled_from([2.0**-100, 1e-9, 1.0, 3.7, 1e6, 2.0**100])
weights = st.lists(st.floats(0.001, 20), min_size=0, max_size=30)


@NEEDS_NUMBA
@examples(40)
@given(
    documents=st.lists(st.tuples(weights, scales), min_size=1, max_size=6),
    k=st.sampled_from([1, 2, 16, 100, 300]),
    seed=st.integers(0, 2**63 - 1),
)
def test_back_ends_agree_to_the_last_bit(
    documents: list[tuple[list[float], float]], k: int, seed: int
) -> None:
    """At any scale, and independently of the rest of the batch."""
    ids, offsets = ragged([list(range(len(one))) for one, _ in documents])
    flat = np.array([weight * scale for one, scale in documents for weight in one])
    compiled, plain = (DartMinHash(k, seed, backend=backend) for backend in ("numba", "numpy"))
    together = compiled.sketch(ids, offsets, flat)
    assert np.array_equal(plain.sketch(ids, offsets, flat), together)
    for row in range(len(documents)):
        assert np.array_equal(plain.sketch(ids, offsets[row : row + 2], flat)[0], together[row])
