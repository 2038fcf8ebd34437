"""Shingles of many documents, counted and left out, against plain Python."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.similarity import common_shingles
from nearsim_db.similarity.common_shingles import ShingleCounts, find_common, without
from nearsim_db.similarity.recipe import from_mapping
from tests.builders.random_sets import ragged
from tests.builders.selection import examples

K, PASSAGE = 5, 12
TEXTS = st.lists(st.lists(st.integers(0, 15), max_size=12), min_size=1, max_size=60)


@examples(100)
@given(texts=TEXTS, percent=st.sampled_from([0.5, 5, 20, 50, 100]), step=st.integers(1, 20))
def test_distinct_texts_are_counted(texts: list[list[int]], percent: float, step: int) -> None:
    counter = ShingleCounts()
    for at in range(0, len(texts), step):
        counter.add([np.array(one, np.uint64) for one in texts[at : at + step]])
    distinct = {tuple(one) for one in texts if one}
    expected = Counter(id for one in distinct for id in set(one))
    assert counter.documents == len(distinct)
    assert counter.counts_of(np.arange(20, dtype=np.uint64)).tolist() == [expected[id] for id in range(20)]
    assert counter.above(percent).tolist() == [
        id for id, count in sorted(expected.items()) if count * 100 > percent * len(distinct) and count >= 20
    ]


def stretch(own: int) -> int:
    """How many of its own shingles in a row a text must have for itself."""
    return max(min(PASSAGE + K - 1, max(own // 2, 2 * K)), own // 10)


def expected_common(texts: list[list[int]], percent: float) -> dict[int, int]:
    distinct = {tuple(one) for one in texts if one}
    counts = Counter(id for one in distinct for id in set(one))
    holders = Counter[int]()
    for one in distinct:
        length = stretch(len(one))
        windows = [one[at : at + length] for at in range(len(one) - length + 1)]
        holders.update(
            id
            for id in set(one)
            if any(all(2 * counts[own] <= counts[id] for own in each) for each in windows)
        )
    return {
        id: counts[id]
        for id, count in holders.items()
        if count * 100 > percent * len(distinct) and count >= 20
    }


@pytest.mark.slow("many texts")
@examples(25)
@given(seed=st.integers(0, 2**32), percent=st.sampled_from([0.5, 5, 40]), step=st.integers(1, 20))
def test_what_texts_share_that_differ_elsewhere_is_common(seed: int, percent: float, step: int) -> None:
    rng = random.Random(seed)
    texts = [
        [rng.randrange(1_000_000) if rng.random() < rng.choice((0.1, 0.9)) else id for id in range(length)]
        + [rng.randrange(1_000_000) for _ in range(rng.randrange(60))]
        + list(range(500, 500 + rng.randrange(30)))
        for length in (rng.randrange(120) for _ in range(60))
    ]
    batches = [[np.array(one, np.uint64) for one in texts[at : at + step]] for at in range(0, 60, step)]
    recipe = from_mapping(
        {"sketch": {"family": "winnow"}, "match": {"ignore_common": percent, "passage": PASSAGE}}
    )
    found = find_common(lambda: batches, recipe)
    assert dict(zip(found.ids.tolist(), found.counts.tolist(), strict=True)) == expected_common(
        texts, percent
    )
    assert found.documents == len({tuple(one) for one in texts if one})


@examples(100)
@given(texts=TEXTS, ignored=st.sets(st.integers(0, 15)))
def test_ids_are_left_out_in_order(texts: list[list[int]], ignored: set[int]) -> None:
    ids, offsets = without(np.array(sorted(ignored), np.uint64), *ragged(texts))
    found = [own.tolist() for own in np.split(ids, offsets[1:-1])]
    assert found == [[id for id in one if id not in ignored] for one in texts]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_shingles, "_MAX_COUNTED_IDS", 1_000)
    monkeypatch.setattr(common_shingles, "_MIN_MERGED_IDS", 50)
    counter = ShingleCounts()
    for at in range(300):
        counter.add([np.array([7, *range(1_000 * (at + 1), 1_000 * (at + 1) + 100)], np.uint64)])
        assert len(counter.counts_of(np.array([7], np.uint64))) == 1
    assert counter.above(5).tolist() == [7]
    assert counter.counts_of(np.array([7, 1_000], np.uint64)).tolist() == [300, 0]
