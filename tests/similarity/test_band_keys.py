"""Band keys, for every scheme and kind of position, and links between documents that share them."""

import random
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Hashes
from nearsim_db.similarity.backend import Backend, sketch_kernels, text_kernels
from nearsim_db.similarity.sketch import Banding, band_keys, matched_bands
from nearsim_db.similarity.sketch.kernels import FullRows
from tests.builders.selection import NEEDS_NUMBA, every_backend, examples

every_scheme = pytest.mark.parametrize("scheme", ["mix64", "xor", "djb2a-joined"])
every_dtype = pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int32, np.uint64])


def random_positions(shape: tuple[int, int], dtype: Any, seed: int = 1) -> NDArray[Any]:
    drawn = np.frombuffer(random.Random(seed).randbytes(8 * shape[0] * shape[1]), np.uint64).reshape(shape)
    if dtype is np.uint64:
        return drawn % np.uint64(4294967311)
    if dtype is np.uint8:
        return (drawn >> np.uint64(56)).astype(np.uint8)
    return (drawn >> np.uint64(32)).astype(np.uint32).view(dtype)


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


DISTRIBUTIONS: dict[str, Callable[[Hashes], Hashes]] = {
    "uniform": lambda ids: ids,
    "32 bits": lambda ids: ids >> np.uint64(32),
    "repeated": lambda ids: ids[np.arange(len(ids)) % max(1, len(ids) // 3)],
    "crowded": lambda ids: ids % np.uint64(300) | np.uint64(1 << 63),
    "zeros": np.zeros_like,
    "largest": lambda ids: ids | np.uint64(2**64 - 4),
}


@every_backend
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_ids_of_each_document_are_sorted_and_counted(backend: str, distribution: str) -> None:
    lengths = [0, 1, 2, 3, 0, 200, 64, 65, 1_000, 40_000, 7, 0]
    offsets = np.cumsum([0, *lengths])
    ids = np.random.default_rng(1).integers(0, 2**64, offsets[-1], dtype=np.uint64)
    ids = DISTRIBUTIONS[distribution](ids)
    kernels = text_kernels("numba" if backend == "numba" else "numpy")
    found, out, counts = kernels.distinct(ids, offsets)
    assert [array.dtype for array in (found, out, counts)] == [np.dtype(np.uint64), *[np.dtype(np.int64)] * 2]
    assert (out[0], out[-1], len(counts)) == (0, len(found), len(found))
    for document in range(len(lengths)):
        expected = Counter(ids[offsets[document] : offsets[document + 1]].tolist())
        own = slice(out[document], out[document + 1])
        assert list(zip(found[own].tolist(), counts[own].tolist(), strict=True)) == sorted(expected.items())


@every_backend
def test_no_documents(backend: str) -> None:
    kernels = text_kernels("numba" if backend == "numba" else "numpy")
    found, out, counts = kernels.distinct(np.zeros(0, np.uint64), np.zeros(1, np.int64))
    assert (len(found), out.tolist(), len(counts)) == (0, [0], 0)


DOCUMENTS, BANDS = 60, 6


def draw_keys(rng: random.Random, *, by_band: bool) -> list[list[int]]:
    """Keys of documents that share many buckets, a column each or in ascending order; some are negative as bigint."""
    if by_band:
        return [[(band - 2 << 56) + rng.randrange(8) for band in range(BANDS)] for _ in range(DOCUMENTS)]
    return [sorted(rng.sample(range(40), BANDS)) for _ in range(DOCUMENTS)]


@every_backend
@pytest.mark.parametrize("by_band", [True, False])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_each_linked_pair_has_one_first_link(backend: Backend, by_band: bool, limit: int) -> None:
    keys = draw_keys(random.Random(f"first links {limit}"), by_band=by_band)
    members: dict[int, list[int]] = {}
    for row, own in enumerate(keys):
        for key in own:
            members.setdefault(key, []).append(row)
    links = [
        (key, left, right)
        for key, rows in members.items()
        for left, right in combinations(rows, 2)
        if limit == 0 or rows.index(left) < limit
    ]
    full = sorted((key, rows[limit - 1] + 1) for key, rows in members.items() if 0 < limit < len(rows))
    first: dict[tuple[int, int], int] = {}
    for key, left, right in sorted(links, key=lambda link: link[0] * 0x9E3779B97F4A7C15 % 2**64):
        first.setdefault((left, right), key)
    buckets, lefts, rights = np.array(links, np.int64).T
    full_rows = np.array(full, np.int64).reshape(-1, 2)
    found = sketch_kernels(backend).first_links(
        np.array(keys, np.int64), by_band, buckets, lefts, rights, FullRows(full_rows[:, 0], full_rows[:, 1])
    )
    assert found.tolist() == [first[left, right] == key for key, left, right in links]
    assert 0 < len(first) < len(links)
