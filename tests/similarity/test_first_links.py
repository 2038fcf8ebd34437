"""The first link of a pair among the buckets that link it, against the definition in plain Python."""

import random
from itertools import combinations

import numpy as np
import pytest

from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.sketch.kernels import FullRows, sketch_kernels
from tests.builders.selection import every_backend

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
