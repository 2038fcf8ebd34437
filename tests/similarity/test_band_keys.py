"""Properties of band keys, for every scheme and kind of position."""

import importlib.util
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch import Banding, band_keys, matched_bands
from tests.builders.selection import examples

NEEDS_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
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


def test_order_of_rows_matters_except_for_xor() -> None:
    positions = np.array([[1, 2], [2, 1], [7, 7], [9, 9]], np.uint32)
    for scheme in ("mix64", "djb2a-joined"):
        assert len(set(band_keys(positions, Banding(1, 2, scheme))[:, 0].tolist())) == 4
    blind = band_keys(positions, Banding(1, 2, "xor"))[:, 0].tolist()
    assert blind[0] == blind[1]
    assert blind[2:] == [0, 0]


def test_equal_rows_in_different_bands_have_different_keys() -> None:
    for scheme in ("mix64", "xor", "djb2a-joined"):
        assert len(set(band_keys(np.full((1, 12), 5, np.uint32), Banding(3, 4, scheme))[0].tolist())) == 3


def test_seed_changes_the_seeded_schemes() -> None:
    positions = random_positions((4, 12), np.uint32)
    for scheme, changes in (("mix64", True), ("xor", True), ("djb2a-joined", False)):
        same = band_keys(positions, Banding(3, 4, scheme, 1)) == band_keys(
            positions, Banding(3, 4, scheme, 2)
        )
        assert not same.any() if changes else same.all()


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
    ("bands", "rows", "scheme", "reason"),
    [
        (257, 1, "mix64", "257 bands are out of range"),
        (0, 1, "mix64", "0 bands are out of range"),
        (10, 30, "mix64", "10 bands of 30 rows do not fit a sketch of 299"),
        (10, 0, "mix64", "do not fit"),
        (10, 2, "md5", "unknown band hash 'md5'"),
    ],
)
def test_invalid_arguments_are_refused(bands: int, rows: int, scheme: str, reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        band_keys(np.zeros((1, 299), np.uint32), Banding(bands, rows, scheme))
    with pytest.raises(RecipeError, match=reason):
        matched_bands(
            np.zeros((1, 299), np.uint32), np.zeros((1, 299), np.uint32), Banding(bands, rows, scheme)
        )
