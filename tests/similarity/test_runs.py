"""Runs that two sequences share, against a suffix automaton in plain Python."""

import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.similarity.runs import longest_runs, run_ids, share_runs
from tests.builders.plain_runs import longest_run as oracle
from tests.builders.selection import every_backend, examples


@every_backend
@examples(200)
@given(
    texts=st.lists(st.lists(st.integers(0, 3), max_size=40), min_size=2, max_size=5),
    length=st.integers(1, 30),
)
def test_texts_share_a_run_if_their_longest_common_one_is_as_long(
    backend: str, texts: list[list[int]], length: int
) -> None:
    sequences = [np.array(one, np.uint64) for one in texts]
    left, right = np.array(list(combinations(range(len(texts)), 2)), np.int64).T
    found = share_runs(sequences, left, right, length, backend)
    expected = [oracle(one, other) for one, other in combinations(texts, 2)]
    assert found.tolist() == [one >= length for one in expected]
    assert longest_runs(sequences, left, right, backend).tolist() == expected


_PAIR = np.array([0]), np.array([1])


@pytest.mark.slow("measures time")
@every_backend
def test_time_is_about_linear_in_repeated_words(backend: str) -> None:
    many = [np.full(size, 7, np.uint64) for size in (1_000_000, 999_999)]
    begun = time.process_time()
    assert share_runs(many, *_PAIR, 999_999, backend).all()
    assert not share_runs(many, *_PAIR, 1_000_000, backend).any()
    assert longest_runs(many, *_PAIR, backend) == 999_999
    periods = [np.arange(300_000, dtype=np.uint64) % period for period in (500, 501)]
    assert longest_runs(periods, *_PAIR, backend) == 500
    assert time.process_time() - begun < 20
    assert len(run_ids(many[0], 100_000)) == 900_001
