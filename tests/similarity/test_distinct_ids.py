"""Distinct ids of documents, sorted and counted, against plain Python."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from nearsim_db.similarity.text.kernels import Ids, text_kernels
from tests.builders.selection import every_backend

DISTRIBUTIONS: dict[str, Callable[[Ids], Ids]] = {
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
