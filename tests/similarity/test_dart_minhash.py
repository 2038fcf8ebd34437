"""Properties of dart_minhash with weights, beyond the conformance suite."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.similarity.sketch import DartMinHash
from tests.builders.random_sets import ragged
from tests.builders.selection import NEEDS_NUMBA, every_backend, examples

K = 64

Vectors = NDArray[np.float64]


def sketches_of(family: DartMinHash, vectors: Vectors) -> NDArray[np.uint32]:
    """The sketches of rows of weights, zeros left out; every row's ids are its own numbers, far apart."""
    held = vectors > 0
    ids = np.broadcast_to(np.arange(vectors.shape[1], dtype=np.uint64), vectors.shape)[held]
    return family.sketch(ids, np.concatenate(([0], held.sum(axis=1).cumsum())), vectors[held])


@every_backend
def test_unit_weights_equal_no_weights(backend: str) -> None:
    family = DartMinHash(K, backend=backend)
    ids, offsets = ragged([[1, 5, 2**40], [7]])
    assert np.array_equal(family.sketch(ids, offsets, np.ones(4)), family.sketch(ids, offsets))


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


@examples(50)
@given(own=st.lists(st.floats(0.001, 20), min_size=1, max_size=30), data=st.data())
def test_increased_weights_only_gain_positions(own: list[float], data: st.DataObject) -> None:
    """A position changes only to a dart of an id whose weight increased."""
    place = data.draw(st.integers(0, len(own) - 1))
    family = DartMinHash(K)
    grown = [weight * (3 if at == place else 1) for at, weight in enumerate(own)]
    before, after = sketches_of(family, np.array([own, grown]))
    (alone,) = sketches_of(family, np.array([[weight * (at == place) for at, weight in enumerate(grown)]]))
    changed = before != after
    assert np.array_equal(after[changed], alone[changed])
