"""Shingles of many documents, counted and left out, against plain Python."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.similarity import common_shingles
from nearsim_db.similarity.common_shingles import CommonShingles, without
from tests.builders.random_sets import ragged
from tests.builders.selection import examples

TEXTS = st.lists(st.lists(st.integers(0, 15), max_size=12), min_size=1, max_size=60)


@examples(100)
@given(texts=TEXTS, percent=st.sampled_from([0.5, 5, 20, 50, 100]), step=st.integers(1, 20))
def test_distinct_texts_are_counted(texts: list[list[int]], percent: float, step: int) -> None:
    counter = CommonShingles()
    for at in range(0, len(texts), step):
        counter.add([np.array(one, np.uint64) for one in texts[at : at + step]])
    distinct = {tuple(one) for one in texts if one}
    expected = Counter(id for one in distinct for id in set(one))
    assert counter.documents == len(distinct)
    assert counter.counts_of(np.arange(20, dtype=np.uint64)).tolist() == [expected[id] for id in range(20)]
    ids, counts = counter.above(percent)
    assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == {
        id: count for id, count in expected.items() if count * 100 > percent * len(distinct) and count >= 20
    }


@examples(100)
@given(texts=TEXTS, ignored=st.sets(st.integers(0, 15)))
def test_ids_are_left_out_in_order(texts: list[list[int]], ignored: set[int]) -> None:
    ids, offsets = without(np.array(sorted(ignored), np.uint64), *ragged(texts))
    found = [own.tolist() for own in np.split(ids, offsets[1:-1])]
    assert found == [[id for id in one if id not in ignored] for one in texts]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_shingles, "_MOST_COUNTED", 1_000)
    counter = CommonShingles()
    for at in range(300):
        counter.add([np.array([7, *range(1_000 * (at + 1), 1_000 * (at + 1) + 100)], np.uint64)])
        assert len(counter.counts_of(np.array([7], np.uint64))) == 1
    assert counter.above(5)[0].tolist() == [7]
    assert counter.counts_of(np.array([7, 1_000], np.uint64)).tolist() == [300, 0]
