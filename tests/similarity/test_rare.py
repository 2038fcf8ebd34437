"""The family rare and document frequencies, against their definitions."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import common_shingles
from nearsim_db.similarity.common_shingles import Frequencies
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, from_mapping, override, to_mapping
from nearsim_db.similarity.sketch.rare import Rare
from tests.builders import plain_sketches
from tests.builders.random_sets import ragged
from tests.builders.selection import every_backend, examples

weighted = st.dictionaries(
    st.integers(0, 2**64 - 1), st.sampled_from([0.5, 1.0, 2.5]), min_size=1, max_size=20
)


@every_backend
@examples(60)
@given(documents=st.lists(weighted, min_size=1, max_size=5), seed=st.integers(0, 3), data=st.data())
def test_sketches_have_the_largest_weights_that_a_pair_may_need(
    backend: str, documents: list[dict[int, float]], seed: int, data: st.DataObject
) -> None:
    k = 6
    least = data.draw(st.sampled_from([0.0, 0.4, 0.8]))
    ids, offsets = ragged([sorted(one) for one in documents])
    weights = np.array([one[key] for one in documents for key in sorted(one)])
    found = Rare(k, seed, backend=backend, min_cosine=least).sketch(ids, offsets, weights)
    for own, row in zip(documents, found.tolist(), strict=True):
        point = {key: plain_sketches.bottom_k([key], 1, seed, 64)[0] for key in own}
        rarest = sorted(own, key=lambda key: (-own[key], point[key]))
        squares = [own[key] ** 2 for key in rarest]
        rests = [sum(squares[at:]) >= least**2 * sum(squares) for at in range(len(rarest))]
        rarest = [key for key, needed in zip(rarest, rests, strict=True) if needed][:k]
        assert row == plain_sketches.bottom_k(rarest, k, seed, 64)


texts = st.lists(st.sets(st.integers(0, 30), min_size=1), min_size=1, max_size=30)


@examples(60)
@given(sets=texts, most=st.integers(0, 12))
def test_frequencies_are_of_the_most_frequent_features_of_distinct_texts(
    sets: list[set[int]], most: int
) -> None:
    distinct = {frozenset(one) for one in sets}
    counts = Counter(feature for one in distinct for feature in one)
    kept = sorted((-count, feature) for feature, count in counts.items() if count > 1)[:most]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common_shingles, "MAX_FREQUENT_FEATURES", most)
        found = Frequencies.of([[np.array(sorted(one), np.uint64)] for one in sets])
    assert dict(zip(found.ids.tolist(), found.counts.tolist(), strict=True)) == {
        feature: -count for count, feature in kept
    }
    restored = Frequencies.from_bytes(found.to_bytes())
    for one in (found, restored):
        weights = one.weights(np.arange(32, dtype=np.uint64)).tolist()
        df = {feature: -count for count, feature in kept}
        expected = [math.log(1 + len(distinct) / df.get(feature, 1)) for feature in range(32)]
        assert weights == pytest.approx(expected, rel=1e-7)


def test_without_frequencies_all_features_weigh_the_same() -> None:
    weights = Frequencies.from_bytes(None).weights(np.array([0, 5, 2**64 - 1], np.uint64))
    assert len(set(weights.tolist())) == 1 and weights[0] > 0


def test_all_ids_are_keys_and_sketch_k_may_change() -> None:
    recipe = override(Recipe(), ["sketch.family=rare"])
    profile = resolve(recipe)
    assert (recipe.sketch.k, profile.bands, profile.rows, recipe.match.threshold) == (10, 10, 1, 0.5)
    assert profile.expected_recall == pytest.approx(1 - 0.5**10)
    assert resolve(override(recipe, ["sketch.k=6"])).bands == 6
    assert from_mapping(to_mapping(recipe)) == recipe
    back = override(recipe, ["sketch.family=fast_similarity"])
    assert back == override(Recipe(), ["match.review=0.5"])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["match.verify=estimate"], "do not estimate"),
        (["bands.rows=2", "bands.count=3"], "one of the rarest ids"),
        (["bands.rule=pick_bands"], "is one id"),
        (["sketch.weights=count"], "choose one of idf"),
    ],
)
def test_what_contradicts_single_rare_keys_is_refused(settings: list[str], reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        resolve(override(Recipe(), ["sketch.family=rare", *settings]))
