"""The conformance suite: properties of every sketch family, with all options and back ends."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch import FAMILIES, NO_KNOWN_PAIRS, make_family
from tests.builders.random_sets import ragged
from tests.builders.selection import NEEDS_NUMBA, every_backend, examples
from tests.builders.sketch_variants import (
    VARIANTS,
    Variant,
    every_variant,
    every_variant_of_sets,
    every_width,
)


def test_the_variants_cover_every_family() -> None:
    """All but winnow and rare, of which no positions are compared: test_winnow.py and test_rare.py have their laws."""
    assert {variant.name for variant in VARIANTS} | {"winnow", "rare"} == set(FAMILIES)


@every_variant
@every_backend
def test_the_same_parameters_give_the_same_sketches(variant: Variant, backend: str) -> None:
    batch = variant.batch(random_documents([60] * 20))
    first = variant.make(backend=backend).sketch(*batch)
    again = variant.make(backend=backend).sketch(*batch)
    other_seed = variant.make(seed=2, backend=backend).sketch(*batch)
    assert first.shape == (20, 128)
    assert first.dtype == variant.make(backend=backend).dtype
    assert np.array_equal(first, again)
    # Of two values, or a few, half or some are the same by chance.
    assert np.mean(first == other_seed) < {"cosine": 0.55, "euclidean": 0.2}.get(variant.metric, 0.0005)


@every_variant
@every_backend
@every_width
def test_a_sketch_does_not_depend_on_the_batch(variant: Variant, backend: str, id_bits: int) -> None:
    documents = random_documents([1, 2, 7, 40, 500], id_bits)
    family = variant.make(k=50, id_bits=id_bits, backend=backend)
    together = family.sketch(*variant.batch(documents))
    alone = [family.sketch(*variant.batch([ids]))[0] for ids in documents]
    assert np.array_equal(np.array(alone), together)
    assert family.estimate(together, np.array(alone)).tolist() == [1.0] * len(documents)


@every_variant_of_sets
@every_backend
@every_width
def test_order_and_repetition_are_ignored(variant: Variant, backend: str, id_bits: int) -> None:
    sets = random_documents([1, 2, 7, 40, 500], id_bits)
    scrambled = [random.Random(5).sample(3 * ids, 3 * len(ids)) for ids in sets]
    family = variant.make(k=50, id_bits=id_bits, backend=backend)
    assert np.array_equal(family.sketch(*ragged(scrambled)), family.sketch(*ragged(sets)))


@every_variant
@every_backend
def test_empty_documents_have_zero_sketches_and_do_not_affect_others(variant: Variant, backend: str) -> None:
    family = variant.make(k=20, backend=backend)
    sketches = family.sketch(*variant.batch([[], [5, 6], [], [], [7], []]))
    assert not sketches[[0, 2, 3, 5]].any()
    assert np.array_equal(sketches[[1, 4]], family.sketch(*variant.batch([[5, 6], [7]])))
    for documents in (0, 2):
        none = family.sketch(*variant.batch([[]] * documents))
        assert none.shape == (documents, 20)
        assert not none.any()


@every_variant
@every_backend
def test_part_of_a_batch_gives_the_same_sketches(variant: Variant, backend: str) -> None:
    family = variant.make(k=30, backend=backend)
    ids, offsets, weights = variant.batch(random_documents([50] * 12))
    whole = family.sketch(ids, offsets, weights)
    assert np.array_equal(family.sketch(ids, offsets[4:9], weights), whole[4:8])


@every_variant
@every_backend
def test_huge_documents_do_not_depend_on_the_batch(variant: Variant, backend: str) -> None:
    """More ids than a back end processes at once, in one document and around its boundaries."""
    family = variant.make(k=16, backend=backend)
    documents = random_documents([3, 0, 40_000, 7, 9_990])
    together = family.sketch(*variant.batch(documents))
    for place in (0, 2, 3, 4):
        assert np.array_equal(family.sketch(*variant.batch([documents[place]]))[0], together[place])


@every_variant
@every_backend
def test_empty_batches_are_compared(variant: Variant, backend: str) -> None:
    family = variant.make(k=12, backend=backend)
    sketches, none = np.zeros((0, 12), family.dtype), np.zeros(0, bool)
    assert family.first_similar(sketches, none, Fraction(1, 2), NO_KNOWN_PAIRS).tolist() == []
    assert family.estimate(sketches, sketches).tolist() == []


@NEEDS_NUMBA
@every_variant
@examples(30)
@given(data=st.data())
def test_back_ends_agree_to_the_last_bit(variant: Variant, data: st.DataObject) -> None:
    id_bits = data.draw(st.sampled_from([32, 64]))
    k = data.draw(st.sampled_from([1, 2, 3, 16, 100, 128, 700]))
    seed = data.draw(st.integers(0, 2**63 - 1))
    near_ends = st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**id_bits - 1])
    one_id = st.one_of(st.integers(0, 2**id_bits - 1), near_ends)
    batch = variant.batch(data.draw(st.lists(st.lists(one_id, max_size=80), max_size=8)))
    compiled, plain = (variant.make(k, seed, id_bits, backend) for backend in ("numba", "numpy"))
    assert np.array_equal(compiled.sketch(*batch), plain.sketch(*batch))


@every_variant
@every_backend
def test_threads_may_share_a_family(variant: Variant, backend: str) -> None:
    family = variant.make(k=64, backend=backend)
    batches = [variant.batch(random_documents([100] * 60, seed=seed)) for seed in (1, 2)]
    expected = [family.sketch(*batch) for batch in batches]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda batch: [family.sketch(*batch) for _ in range(6)], batches)
        for own, sketches in zip(expected, found, strict=True):
            assert all(np.array_equal(one, own) for one in sketches)


@every_variant
@pytest.mark.parametrize(("k", "id_bits"), [(0, 64), (65537, 64), (128, 48)])
def test_parameters_out_of_range_are_refused(variant: Variant, k: int, id_bits: int) -> None:
    with pytest.raises(RecipeError, match=str(k if id_bits == 64 else id_bits)):
        variant.make(k=k, id_bits=id_bits)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("simhash", {}),
        ("fast_similarity", {"functions": "prime32"}),
        ("minhash", {"width": "3"}),
        ("minhash", {"functions": "md5"}),
        ("hyperplane", {"width": 3.0}),
        ("hyperplane", {"vectors": "cauchy"}),
        ("dart_minhash", {"functions": "prime32"}),
        ("projection", {"input": "image"}),
        *(("projection", {"width": width}) for width in (0.0, -1.0, 1e31, float("nan"), float("inf"))),
    ],
)
def test_unknown_names_and_options_are_refused(name: str, options: dict[str, str | float]) -> None:
    with pytest.raises(RecipeError):
        make_family(name, 128, 1, 64, options)


@every_variant
def test_a_sketch_may_have_any_size(variant: Variant) -> None:
    batch = variant.batch(random_documents([40, 40]))
    for k in (1, 127, 65536):
        assert variant.make(k=k).sketch(*batch).shape == (2, k)


def test_numba_is_neither_imported_early_nor_needed() -> None:
    script = """
import sys
import numpy as np
from nearsim_db.similarity.sketch import make_family
family = make_family("fast_similarity", 128, 1)
assert "numba" not in sys.modules
sys.modules["numba"] = None
ids, offsets = np.arange(5, dtype=np.uint64), np.array([0, 5])
print(make_family("fast_similarity", 128, 1).sketch(ids, offsets).shape)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 128)"


def random_documents(sizes: list[int], id_bits: int = 64, seed: int = 8) -> list[list[int]]:
    """Documents of so many random ids."""
    drawn = random.Random(seed)
    return [[drawn.getrandbits(id_bits) for _ in range(size)] for size in sizes]
