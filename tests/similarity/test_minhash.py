"""Properties of MinHash beyond the conformance suite."""

import numpy as np
import pytest

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch import MinHash
from tests.builders.random_sets import ragged

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


def test_only_the_upper_half_of_64_bit_ids_is_hashed() -> None:
    wide, narrow = MinHash(32, id_bits=64), MinHash(32, id_bits=32)
    assert np.array_equal(wide.sketch(*ragged([[5 << 32, 6 << 32 | 1]])), narrow.sketch(*ragged([[5, 6]])))


@pytest.mark.parametrize("multiplier", [0, 2**32, -1])
def test_multipliers_that_overflow_or_are_zero_are_refused(multiplier: int) -> None:
    with pytest.raises(RecipeError, match=str(multiplier)):
        MinHash(coefficients=[(multiplier, 1)])
