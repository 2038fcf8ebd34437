"""The cache of features, sketches and answers."""

import random

from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.similarity.cache import BoundedCache


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.integers(0, 50)), max_size=60))
def test_bounded_cache_keeps_the_most_recently_used(steps: list[tuple[bool, int, int]]) -> None:
    """Compare with a plain list of keys, the least recently used first."""
    cache = BoundedCache[int, int](100)
    kept: list[tuple[int, int]] = []
    for writes, key, size in steps:
        before = [one for one in kept if one[0] == key]
        if writes:
            cache.put(key, size, size)
            kept = [*(one for one in kept if one[0] != key), (key, size)]
            while sum(one[1] for one in kept) > 100:
                kept.pop(0)
        else:
            assert cache.get(key) == (before[0][1] if before else None)
            kept = [*(one for one in kept if one[0] != key), *before]
        assert len(cache) == len(kept)
    wanted = [*range(7)]
    random.Random(len(steps)).shuffle(wanted)
    assert cache.get_many(wanted) == [dict(kept).get(key) for key in wanted]


def test_a_value_larger_than_the_capacity_is_not_cached() -> None:
    cache = BoundedCache[str, str](10)
    cache.put("small", "kept", 5)
    cache.put("large", "never", 11)
    assert cache.get_many(["small", "large"]) == ["kept", None]
    cache.put("small", "again", 10)
    assert cache.get("small") == "again"
