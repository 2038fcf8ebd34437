"""Properties of band keys, for every scheme and kind of position."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch import Banding, band_keys, matched_bands
from tests.builders.selection import NEEDS_NUMBA, examples

every_scheme = pytest.mark.parametrize("scheme", ["mix64", "xor", "djb2a-joined"])
every_dtype = pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int32, np.uint64])


def random_positions(shape: tuple[int, int], dtype: Any, seed: int = 1) -> NDArray[Any]:
    drawn = np.frombuffer(random.Random(seed).randbytes(8 * shape[0] * shape[1]), np.uint64).reshape(shape)
    if dtype is np.uint64:
        return drawn % np.uint64(4294967311)
    if dtype is np.uint8:
        return (drawn >> np.uint64(56)).astype(np.uint8)
    return (drawn >> np.uint64(32)).astype(np.uint32).view(dtype)


@every_scheme
@every_dtype
def test_top_byte_is_the_band_number(scheme: str, dtype: Any) -> None:
    keys = band_keys(random_positions((3, 520), dtype), Banding(256, 2, scheme))
    assert keys.dtype == np.uint64
    assert (keys >> np.uint64(56)).tolist() == [list(range(256))] * 3


@every_scheme
@every_dtype
def test_keys_depend_only_on_the_rows_of_their_band(scheme: str, dtype: Any) -> None:
    positions = random_positions((1, 43), dtype)
    keys = band_keys(positions, Banding(10, 4, scheme))
    for row in range(43):
        changed = positions.copy()
        changed[0, row] = positions[0, row] ^ 1
        differing = np.flatnonzero(band_keys(changed, Banding(10, 4, scheme))[0] != keys[0])
        assert differing.tolist() == ([row // 4] if row < 40 else [])


def test_keys_spread_evenly_over_their_bits() -> None:
    keys = band_keys(np.arange(40_000, dtype=np.uint32).reshape(20_000, 2), Banding(1, 2))[:, 0]
    for bit in range(56):
        ones = int(((keys >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - 10_000) < 4.5 * 70.7
    assert len(np.unique(keys)) == 20_000


@NEEDS_NUMBA
@every_dtype
@examples(30)
@given(
    rows=st.integers(1, 9), bands=st.integers(1, 12), count=st.integers(0, 5), seed=st.integers(0, 2**63 - 1)
)
def test_back_ends_agree_to_the_last_bit(dtype: Any, rows: int, bands: int, count: int, seed: int) -> None:
    positions = random_positions((count, rows * bands + 2), dtype, seed)
    plain = band_keys(positions, Banding(bands, rows, seed=seed), backend="numpy")
    assert np.array_equal(band_keys(positions, Banding(bands, rows, seed=seed), backend="numba"), plain)


@every_scheme
@every_dtype
@examples(30)
@given(data=st.data())
def test_shared_bands_are_counted_from_keys_and_from_sketches(
    scheme: str, dtype: Any, data: st.DataObject
) -> None:
    few = st.lists(st.integers(0, 1), min_size=14, max_size=14)
    left, right = (np.array([data.draw(few) for _ in range(3)], dtype) for _ in range(2))
    brute = [
        sum(_band(one, band, scheme) == _band(other, band, scheme) for band in range(4))
        for one, other in zip(left.tolist(), right.tolist(), strict=True)
    ]
    keys = [band_keys(side, Banding(4, 3, scheme)) for side in (left, right)]
    matched = matched_bands(left, right, Banding(4, 3, scheme))
    assert matched.tolist() == (keys[0] == keys[1]).tolist()
    assert matched.sum(axis=1).tolist() == brute


def _band(sketch: list[int], band: int, scheme: str) -> tuple[int, ...]:
    """The part of three rows of 0 or 1 that a scheme uses: for xor, only their parity."""
    rows = sketch[3 * band : 3 * band + 3]
    return (sum(rows) % 2,) if scheme == "xor" else tuple(rows)


@pytest.mark.parametrize(
    ("bands", "rows", "scheme"),
    [(257, 1, "mix64"), (0, 1, "mix64"), (10, 30, "mix64"), (10, 0, "mix64"), (10, 2, "md5")],
)
def test_invalid_arguments_are_refused(bands: int, rows: int, scheme: str) -> None:
    sketches = np.zeros((1, 299), np.uint32)
    with pytest.raises(RecipeError):
        band_keys(sketches, Banding(bands, rows, scheme))
    with pytest.raises(RecipeError):
        matched_bands(sketches, sketches, Banding(bands, rows, scheme))
