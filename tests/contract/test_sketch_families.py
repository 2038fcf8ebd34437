"""The laws that every sketch family keeps, whatever its functions and its back end."""

import importlib.util
import math
import random
import subprocess
import sys
import threading
import zlib
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.lsh import match_probability
from nearsim_db.sketch import FAMILIES, UNDECIDED, Decided, Family, make_family
from tests.contract.random_sets import flatten, ragged, random_pairs, sketch_sets

HAS_NUMBA = importlib.util.find_spec("numba") is not None
NEEDS_NUMBA = pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")


@dataclass(frozen=True)
class Variant:
    """A family with its options."""

    name: str
    options: dict[str, str] = field(default_factory=dict)

    def make(self, k: int = 128, seed: int = 1, id_bits: int = 64, backend: str | None = None) -> Family:
        return make_family(self.name, k, seed, id_bits, self.options, backend)

    def __str__(self) -> str:
        return "-".join([self.name, *self.options.values()])


VARIANTS = [
    Variant("fast_similarity"),
    Variant("minhash", {"functions": "prime32"}),
    Variant("minhash", {"functions": "java32"}),
    Variant("bottom_k"),
]
POSITIONAL = [variant for variant in VARIANTS if variant.make().positional]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)
every_positional = pytest.mark.parametrize("variant", POSITIONAL, ids=str)
every_backend = pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=NEEDS_NUMBA)])
every_width = pytest.mark.parametrize("id_bits", [32, 64])

# (union, intersection) of sets of about 8, 60 and 600 ids.
COUNTS = [(10, 5), (10, 7), (80, 20), (86, 60), (66, 60), (1000, 200), (800, 560), (640, 576)]
SEEDS, PAIRS = 16, 250


def test_the_variants_cover_every_family() -> None:
    assert {variant.name for variant in VARIANTS} == set(FAMILIES)


@every_variant
@every_backend
def test_the_same_parameters_give_the_same_sketches(variant: Variant, backend: str) -> None:
    sets, _ = random_pairs(20, 60, 30, seed=1)
    first = sketch_sets(variant.make(backend=backend), sets)
    again = sketch_sets(variant.make(backend=backend), sets)
    other_seed = sketch_sets(variant.make(seed=2, backend=backend), sets)
    assert first.shape == (20, 128)
    assert first.dtype == variant.make(backend=backend).dtype
    assert np.array_equal(first, again)
    assert np.count_nonzero(first == other_seed) <= 1


@every_variant
@every_backend
@every_width
def test_order_repeats_and_company_do_not_matter(variant: Variant, backend: str, id_bits: int) -> None:
    shuffler = random.Random(5)
    sets = [[shuffler.getrandbits(id_bits) for _ in range(size)] for size in (1, 2, 7, 40, 500)]
    scrambled = [shuffler.sample(3 * ids, 3 * len(ids)) for ids in sets]
    family = variant.make(k=50, id_bits=id_bits, backend=backend)
    together = family.sketch(*ragged(sets))
    assert np.array_equal(family.sketch(*ragged(scrambled)), together)
    alone = [family.sketch(*ragged([ids]))[0] for ids in sets]
    assert np.array_equal(np.array(alone), together)
    assert family.estimate(together, family.sketch(*ragged(scrambled))).tolist() == [1.0] * len(sets)


@every_variant
@every_backend
def test_documents_without_ids_are_zeros_and_touch_no_other(variant: Variant, backend: str) -> None:
    family = variant.make(k=20, backend=backend)
    sketches = family.sketch(*ragged([[], [5, 6], [], [], [7], []]))
    assert not sketches[[0, 2, 3, 5]].any()
    assert np.array_equal(sketches[[1, 4]], family.sketch(*ragged([[5, 6], [7]])))
    assert family.sketch(np.zeros(0, np.uint64), np.zeros(1, np.int64)).shape == (0, 20)
    assert not family.sketch(*ragged([[], []])).any()


@every_variant
@every_backend
def test_a_window_of_a_batch_is_sketched_alike(variant: Variant, backend: str) -> None:
    family = variant.make(k=30, backend=backend)
    ids, offsets = flatten(random_pairs(12, 50, 50, seed=3)[0])
    assert np.array_equal(family.sketch(ids, offsets[4:9]), family.sketch(ids, offsets)[4:8])


@every_variant
@every_backend
def test_a_huge_document_is_the_sum_of_its_parts(variant: Variant, backend: str) -> None:
    """More ids than a back end takes at a time, in one document and around its ends."""
    family = variant.make(k=16, backend=backend)
    drawn = np.frombuffer(random.Random(8).randbytes(8 * 90_000), np.uint64)
    offsets = np.array([0, 3, 3, 80_003, 80_010, 90_000], np.int64)
    together = family.sketch(drawn, offsets)
    for document in (0, 2, 3, 4):
        ids = drawn[offsets[document] : offsets[document + 1]]
        reordered = np.sort(ids)[::-1].copy()
        assert np.array_equal(family.sketch(*flatten(reordered[None, :]))[0], together[document])


@every_variant
@pytest.mark.parametrize(("union", "intersection"), COUNTS)
def test_estimates_are_unbiased_and_vary_no_more_than_binomially(
    variant: Variant, union: int, intersection: int
) -> None:
    similarity = intersection / union
    pairs = [_sketch_pair(variant, union, intersection, seed) for seed in range(SEEDS)]
    errors = np.concatenate([variant.make().estimate(*pair) for pair in pairs]) - similarity
    deviation = variant.make().standard_error(similarity)
    assert deviation == pytest.approx(math.sqrt(similarity * (1 - similarity) / 128))
    assert abs(errors.mean()) < 4.5 * deviation / math.sqrt(len(errors))
    assert np.mean(errors**2) < 1.1 * deviation**2


@every_positional
@pytest.mark.parametrize(("union", "intersection"), [(10, 7), (86, 60), (800, 560)])
def test_each_position_agrees_with_the_collision_probability(
    variant: Variant, union: int, intersection: int
) -> None:
    probability = variant.make().collision_probability(intersection / union)
    agreements = _agreements(variant, union, intersection)
    deviation = math.sqrt(probability * (1 - probability) / len(agreements))
    assert np.abs(agreements.mean(axis=0) - probability).max() < 4.5 * deviation


@every_positional
@pytest.mark.parametrize("minimum", [1, 3])
@pytest.mark.parametrize(("union", "intersection"), [(1000, 500), (800, 560)])
def test_bands_are_shared_as_the_curve_says(
    variant: Variant, minimum: int, union: int, intersection: int
) -> None:
    bands, rows, similarity = 32, 4, intersection / union
    shared = np.concatenate(
        [
            variant.make().count_shared_bands(
                *_sketch_pair(variant, union, intersection, seed), bands, rows, "mix64", 1
            )
            for seed in range(SEEDS)
        ]
    )
    one_band = similarity**rows
    deviation = math.sqrt(one_band * (1 - one_band) / (bands * len(shared)))
    assert abs(shared.mean() / bands - one_band) < 4.5 * deviation
    expected = match_probability(similarity, bands, rows, minimum)
    tolerance = 4.5 * math.sqrt(expected * (1 - expected) / len(shared))
    assert abs(np.mean(shared >= minimum) - expected) < tolerance + 0.01


small_sets = st.lists(st.lists(st.integers(0, 25), min_size=1, max_size=20), min_size=1, max_size=9)


@every_variant
@settings(max_examples=60, deadline=None)
@given(sets=small_sets, minimum=st.integers(1, 4))
def test_shared_bands_are_the_keys_in_common(variant: Variant, sets: list[list[int]], minimum: int) -> None:
    family = variant.make(k=12, id_bits=32)
    sketches = family.sketch(*ragged(sets))
    bands, rows = (4, 3) if family.positional else (8, 1)
    keys = family.band_keys(sketches, bands, rows, "mix64", 1).tolist()
    assert all(len(set(own)) == bands for own in keys)
    for row in range(len(sets)):
        others = np.broadcast_to(sketches[row], sketches.shape)
        counts = family.count_shared_bands(others, sketches, bands, rows, "mix64", 1)
        assert counts.tolist() == [len(set(keys[row]) & set(other)) for other in keys]


@every_variant
@settings(max_examples=60, deadline=None)
@given(sets=small_sets)
def test_the_estimate_is_the_ratio_of_the_agreements(variant: Variant, sets: list[list[int]]) -> None:
    family = variant.make(k=12, id_bits=32)
    sketches = family.sketch(*ragged(sets))
    for other in sketches:
        against = np.broadcast_to(other, sketches.shape)
        agreeing, compared = family.agreements(sketches, against)
        assert family.estimate(sketches, against).tolist() == (agreeing / compared).tolist()


@every_variant
@every_backend
@settings(max_examples=60, deadline=None)
@given(data=st.data(), sets=small_sets)
def test_stopping_early_changes_no_answer(
    variant: Variant, backend: str, data: st.DataObject, sets: list[list[int]]
) -> None:
    """Against comparing wholly, one pair after the other."""
    threshold = Fraction(data.draw(st.integers(1, 20)), 20)
    family = variant.make(k=data.draw(st.sampled_from([1, 5, 12, 33])), id_bits=32, backend=backend)
    present = np.array(data.draw(st.lists(st.booleans(), min_size=len(sets), max_size=len(sets))))
    decided = data.draw(st.dictionaries(st.integers(0, len(sets) ** 2 - 1), st.booleans(), max_size=4))
    sketches = family.sketch(*ragged(sets))
    first: list[int] = []
    for row in range(len(sets)):
        staying = [other for other in range(row) if first[other] < 0]
        agreeing, compared = family.agreements(np.repeat(sketches[[row]], row, axis=0), sketches[:row])
        alike = [
            decided.get(
                row * len(sets) + other,
                present[row] and present[other] and agreeing[other] >= threshold * int(compared[other]),
            )
            for other in range(row)
        ]
        first.append(next((other for other in staying if alike[other]), -1))
    pairs = sorted(decided)
    given_pairs = Decided(np.array(pairs, np.int64), np.array([decided[pair] for pair in pairs], bool))
    assert family.first_alike(sketches, present, threshold, given_pairs).tolist() == first


@every_variant
@every_backend
def test_nothing_is_compared_with_nothing(variant: Variant, backend: str) -> None:
    family = variant.make(k=12, backend=backend)
    sketches, none = np.zeros((0, 12), family.dtype), np.zeros(0, bool)
    assert family.first_alike(sketches, none, Fraction(1, 2), UNDECIDED).tolist() == []
    assert family.estimate(sketches, sketches).tolist() == []


@every_variant
def test_raw_crc32_values_are_estimated_without_bias(variant: Variant) -> None:
    def words(begin: int) -> list[int]:
        return [zlib.crc32(f"word {number}".encode()) for number in range(begin, begin + 350)]

    errors = [
        _error_of_shifted(variant, seed, words(450 * seed), words(450 * seed + 100)) for seed in range(200)
    ]
    assert abs(np.mean(errors)) < 4.5 * variant.make().standard_error(250 / 450) / math.sqrt(200)


@pytest.mark.parametrize("variant", [Variant("fast_similarity"), Variant("bottom_k")], ids=str)
def test_ids_of_32_bits_are_mixed_first(variant: Variant) -> None:
    """Consecutive numbers are the least random ids there could be; MinHash's linear functions are biased on them."""
    errors = [
        _error_of_shifted(variant, seed, list(range(350)), list(range(100, 450))) for seed in range(200)
    ]
    assert abs(np.mean(errors)) < 4.5 * variant.make().standard_error(250 / 450) / math.sqrt(200)


@NEEDS_NUMBA
@every_variant
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_back_ends_agree_to_the_last_bit(variant: Variant, data: st.DataObject) -> None:
    id_bits = data.draw(st.sampled_from([32, 64]))
    k = data.draw(st.sampled_from([1, 2, 3, 16, 100, 128, 700]))
    seed = data.draw(st.integers(0, 2**63 - 1))
    near_ends = st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**id_bits - 1])
    one_id = st.one_of(st.integers(0, 2**id_bits - 1), near_ends)
    ids, offsets = ragged(data.draw(st.lists(st.lists(one_id, max_size=80), max_size=8)))
    compiled, plain = (variant.make(k, seed, id_bits, backend) for backend in ("numba", "numpy"))
    assert np.array_equal(compiled.sketch(ids, offsets), plain.sketch(ids, offsets))


@NEEDS_NUMBA
@every_variant
@every_width
def test_the_back_ends_agree_on_a_large_batch(variant: Variant, id_bits: int) -> None:
    sizes = [random.Random(2).choice([0, 1, 5, 30, 100, 900, 40_000]) for _ in range(60)]
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    drawn = np.frombuffer(random.Random(3).randbytes(8 * int(offsets[-1])), np.uint64)
    ids = drawn >> np.uint64(64 - id_bits)
    compiled, plain = (variant.make(24, 9, id_bits, backend) for backend in ("numba", "numpy"))
    assert np.array_equal(compiled.sketch(ids, offsets), plain.sketch(ids, offsets))


@every_variant
@every_backend
def test_threads_may_share_a_family(variant: Variant, backend: str) -> None:
    family = variant.make(k=64, backend=backend)
    batches = [flatten(random_pairs(200, 300, 300, seed)[0]) for seed in (1, 2)]
    expected = [family.sketch(*batch) for batch in batches]
    found: list[list[NDArray[np.generic]]] = [[], []]

    def work(which: int) -> None:
        for _ in range(10):
            found[which].append(family.sketch(*batches[which]))

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for which in (0, 1):
        assert len(found[which]) == 10
        assert all(np.array_equal(one, expected[which]) for one in found[which])


@every_variant
@pytest.mark.parametrize(("k", "id_bits"), [(0, 64), (65537, 64), (128, 48)])
def test_impossible_parameters_are_refused(variant: Variant, k: int, id_bits: int) -> None:
    with pytest.raises(RecipeError, match=str(k if id_bits == 64 else id_bits)):
        variant.make(k=k, id_bits=id_bits)


def test_unknown_names_are_refused_with_the_choices() -> None:
    with pytest.raises(RecipeError, match="fast_similarity, minhash, bottom_k"):
        make_family("simhash", 128, 1)
    with pytest.raises(RecipeError, match="functions"):
        make_family("fast_similarity", 128, 1, 64, {"functions": "prime32"})
    with pytest.raises(RecipeError, match="width"):
        make_family("minhash", 128, 1, 64, {"width": "3"})
    with pytest.raises(RecipeError, match="functions"):
        make_family("bottom_k", 128, 1, 64, {"functions": "prime32"})
    with pytest.raises(RecipeError, match="prime32, java32"):
        make_family("minhash", 128, 1, 64, {"functions": "md5"})


@every_variant
def test_a_sketch_may_have_any_size(variant: Variant) -> None:
    ids, offsets = flatten(random_pairs(2, 40, 40, seed=6)[0])
    for k in (1, 127, 65536):
        assert variant.make(k=k).sketch(ids, offsets).shape == (2, k)


def test_numba_is_neither_imported_early_nor_needed() -> None:
    script = """
import sys
import numpy as np
from nearsim_db.sketch import make_family
family = make_family("fast_similarity", 128, 1)
assert "numba" not in sys.modules
sys.modules["numba"] = None
ids, offsets = np.arange(5, dtype=np.uint64), np.array([0, 5])
print(make_family("fast_similarity", 128, 1).sketch(ids, offsets).shape)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 128)"


def _sketch_pair(
    variant: Variant, union: int, intersection: int, seed: int
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    family = variant.make(seed=seed)
    left, right = random_pairs(PAIRS, union, intersection, seed=1000 * union + seed)
    return sketch_sets(family, left), sketch_sets(family, right)


def _error_of_shifted(variant: Variant, seed: int, left: list[int], right: list[int]) -> float:
    """Estimate minus truth of two sets of 350 ids of 32 bits that have 250 in common."""
    family = variant.make(seed=seed, id_bits=32)
    sketches = family.sketch(*ragged([left, right]))
    return float(family.estimate(sketches[:1], sketches[1:])[0]) - 250 / 450


def _agreements(variant: Variant, union: int, intersection: int) -> NDArray[np.bool_]:
    """Whether the positions agree: (SEEDS * PAIRS, 128), over several seeds of the family."""
    pairs = [_sketch_pair(variant, union, intersection, seed) for seed in range(SEEDS)]
    return np.concatenate([np.equal(left, right) for left, right in pairs])
