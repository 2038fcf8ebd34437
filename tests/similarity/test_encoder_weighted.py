"""From texts and vectors to the sketches of weighted families, against exact measures in plain Python."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import WIDTH_PER_THRESHOLD, make_family, resolve
from nearsim_db.similarity.recipe import from_mapping
from nearsim_db.similarity.sketch import same_bucket
from tests.builders.selection import NEEDS_NUMBA

ROYAL = "the king and the queen of the north met the king of the south at the old mill by the river"
REPUBLISHED = "the king and the queen of the north met the king of the south near the old mill by the sea"
OTHER = "prices of copper fell again while zinc and tin rose a little in slow trade before the long holiday"


def encoder(threshold: float, backend: str | None = None, **sketch: Any) -> Encoder:
    recipe = {
        "shingle": {"scheme": "bag"},
        "sketch": {"k": 2048, **sketch},
        "match": {"threshold": threshold},
    }
    return Encoder(resolve(from_mapping(recipe)), backend)


def weighed(text: str, weights: str) -> dict[str, float]:
    counts = Counter(text.split())
    return {word: 1 + math.log(count) if weights == "log" else count for word, count in counts.items()}


def cosine(left: dict[str, float], right: dict[str, float]) -> float:
    product = sum(weight * right.get(word, 0) for word, weight in left.items())
    return product / math.hypot(*left.values()) / math.hypot(*right.values())


def closeness(left: dict[str, float], right: dict[str, float]) -> float:
    return 1 / (1 + math.hypot(*(left.get(word, 0) - right.get(word, 0) for word in {*left, *right})))


@pytest.mark.parametrize("weights", ["count", "log"])
@pytest.mark.parametrize(
    ("family", "truth"),
    [
        ({"family": "hyperplane"}, cosine),
        ({"family": "hyperplane", "vectors": "sign"}, cosine),
        ({"family": "projection"}, closeness),
    ],
    ids=["gaussian", "sign", "projection"],
)
def test_similarity_of_texts_equals_that_of_weighted_words(
    family: dict[str, Any], truth: Any, weights: str
) -> None:
    made = encoder(0.9 if "hyperplane" in family.values() else 2.5, weights=weights, **family)
    sketches = made.encode([ROYAL, REPUBLISHED, OTHER]).sketches
    for left, right, texts in ((0, 1, (ROYAL, REPUBLISHED)), (0, 2, (ROYAL, OTHER))):
        exact = truth(*(weighed(text, weights) for text in texts))
        found = made.family.estimate(sketches[[left]], sketches[[right]])[0]
        assert abs(found - exact) < 4.5 * made.family.standard_error(exact) + 0.01


@NEEDS_NUMBA
@pytest.mark.parametrize("family", ["hyperplane", "projection"])
def test_back_ends_agree_on_texts(family: str) -> None:
    compiled, plain = (
        encoder(0.9, one, family=family).encode([ROYAL, "", OTHER]).sketches for one in ("numba", "numpy")
    )
    assert np.array_equal(compiled, plain)


@pytest.mark.parametrize("family", ["hyperplane", "projection"])
def test_similarity_of_vectors_equals_that_of_their_numbers(family: str) -> None:
    made = encoder(0.9, family=family, input="vector")
    vectors = [[0.5, -0.5, 0.25, 0.0], [0.5, -0.5, 0.25], [0.5, -0.4, 0.25], [0.0, 0.0], None, [math.nan]]
    encoded = made.encode(vectors)
    assert encoded.counts.tolist() == [3, 3, 3, 0, 0, 0]
    estimates = made.family.estimate(encoded.sketches[[0, 0]], encoded.sketches[[1, 2]])
    assert estimates[0] == 1
    exact = 1 / 1.1 if family == "projection" else 0.5125 / math.sqrt(0.5625 * 0.4725)
    assert abs(estimates[1] - exact) < 4.5 * made.family.standard_error(exact)


def test_the_default_width_depends_on_the_threshold() -> None:
    for threshold, width, expected in (
        (2.0, 0.0, WIDTH_PER_THRESHOLD * 2),
        (8.0, 0.0, WIDTH_PER_THRESHOLD * 8),
        (2.0, 3.0, 3.0),
    ):
        profile = encoder(threshold, family="projection", width=width).profile
        chance = same_bucket(threshold, expected)
        similarity = 1 / (1 + threshold)
        assert make_family(profile.recipe).collision_probability(similarity) == pytest.approx(chance)
        recall = 1 - (1 - chance**profile.rows) ** profile.bands
        assert profile.expected_recall == pytest.approx(recall)
        assert recall >= 0.99
