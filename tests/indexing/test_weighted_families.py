"""Weighted families, from texts and vectors to pairs, lookups and result sets, against brute force."""

import math
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from nearsim_db import Deduper, Document, Index, Recipe
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import from_mapping
from nearsim_db.similarity.sketch import FAMILIES
from tests.builders.selection import some, some_combinations

THRESHOLDS = {"dart_minhash": 0.7, "hyperplane": 0.9, "projection": 3.5}
VECTOR_THRESHOLDS = {"dart_minhash": 0.8, "hyperplane": 0.99, "projection": 1.25}
WEIGHTED = [name for name, family in FAMILIES.items() if "input" in family.options]
every_family = pytest.mark.parametrize("family", WEIGHTED)

VOCABULARY = [f"word{number}" for number in range(60)]

Weights = dict[Any, float]
Named = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Alike:
    """The similarity of two documents, and for projection their distance."""

    similarity: float
    distance: float | None = None

    def reaches(self, threshold: float) -> bool:
        if self.distance is not None:
            return round(self.distance, 12) <= threshold
        return round(self.similarity, 12) >= threshold


def alike(family: str, left: Weights, right: Weights) -> Alike:
    """By the definition of the family's metric, in plain Python."""
    both = [(left.get(one, 0.0), right.get(one, 0.0)) for one in left.keys() | right.keys()]
    if family == "dart_minhash":
        least, most = (sum((Fraction(of(pair)) for pair in both), Fraction(0)) for of in (min, max))
        return Alike(float(least / most))
    if family == "hyperplane":
        lengths = math.hypot(*left.values()) * math.hypot(*right.values())
        return Alike(math.fsum(one * other for one, other in both) / lengths)
    distance = math.dist(*zip(*both, strict=True))
    return Alike(1 / (1 + distance), distance)


def term_weights(text: str, weights: str) -> Weights:
    counts = Counter(text.split())
    if weights == "count":
        return {word: float(count) for word, count in counts.items()}
    return {word: float(np.float32(1 + math.log(count))) for word, count in counts.items()}


def recipe(family: str, **sections: Any) -> Recipe:
    """Enough bands to miss no pair at the threshold."""
    given = {
        "shingle": {"scheme": "bag"},
        "sketch": {"family": family, "k": 256, **sections.pop("sketch", {})},
        "bands": {"count": 64, "rows": 3 if family == "hyperplane" else 2},
        "match": {"threshold": THRESHOLDS[family], **sections.pop("match", {})},
    }
    return from_mapping(given | sections)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Groups of texts whose words repeat, each a few words from its original; the last of a group is a twin."""
    rng = random.Random(1)
    found = {}
    for group in range(8):
        original = rng.choices(VOCABULARY, range(60, 0, -1), k=40)
        for member in range(6):
            words = list(original)
            for place in rng.sample(range(40), member % 5 * 2):
                words[place] = rng.choice(VOCABULARY)
            found[f"g{group}-{member}"] = " ".join(words)
    return found


@pytest.fixture(scope="module")
def vectors() -> dict[str, list[float]]:
    """Groups of vectors above 0, each a little off its original; a twin, a vector of zeros, and none that is finite."""
    rng = random.Random(2)
    found = {}
    for group in range(8):
        original = [rng.expovariate(1) for _ in range(24)]
        for member in range(6):
            found[f"g{group}-{member}"] = [one * rng.uniform(1 - member / 8, 1) for one in original]
        found[f"g{group}-twin"] = found[f"g{group}-0"]
    return found | {"zeros": [0.0] * 24, "odd": [math.nan, *[1.0] * 23]}


def true_pairs(family: str, threshold: float, documents: dict[str, Weights]) -> Named:
    """All pairs that reach the threshold, with their similarity."""
    found = {}
    for (one, left), (other, right) in combinations(sorted(documents.items()), 2):
        known = alike(family, left, right)
        if known.reaches(threshold):
            found[one, other] = known.similarity
    return found


def stored_pairs(index: Index) -> Named:
    """The pairs of an index with their similarity; features are not counted, and only projection has distances."""
    pairs = list(index.pairs())
    measured = index.profiles()[0].recipe.sketch.family == "projection"
    for one in pairs:
        assert (one.intersection, one.union) == (None, None)
        assert one.distance == pytest.approx(1 / one.similarity - 1 if measured else None, abs=1e-9)
    found = {(min(one.left, one.right), max(one.left, one.right)): one.similarity for one in pairs}
    assert len(found) == len(pairs)
    return found


def dimensions(vector: list[float]) -> Weights:
    """A vector as the index holds it: 32-bit numbers."""
    return {place: float(np.float32(one)) for place, one in enumerate(vector) if one}


@some_combinations(("family", WEIGHTED), ("weights", ["count", "log"]))
def test_pairs_and_lookups_equal_brute_force(
    index: Index, texts: dict[str, str], family: str, weights: str
) -> None:
    threshold = THRESHOLDS[family] - (0.6 if (family, weights) == ("projection", "log") else 0)
    index.create_profile("p", recipe(family, sketch={"weights": weights}, match={"threshold": threshold}))
    index.add(Document(name, body=text) for name, text in texts.items())
    weighed = {name: term_weights(text, weights) for name, text in texts.items()}
    expected = true_pairs(family, threshold, weighed)
    assert stored_pairs(index) == pytest.approx(expected, abs=1e-9)
    assert 30 < len(expected) < 119
    assert min(expected.values()) < 1
    for name in ("g0-0", "g3-4", "g5-2"):
        asked = texts[name] + " word3 other"
        matches = index.similar_to_text(asked)
        reported = {one.external_id: one.similarity for one in matches}
        alike_to_asked = {
            other: alike(family, term_weights(asked, weights), known) for other, known in weighed.items()
        }
        assert reported == pytest.approx(
            {other: known.similarity for other, known in alike_to_asked.items() if known.reaches(threshold)}
        )
        for one in matches:
            assert one.distance == pytest.approx(alike_to_asked[one.external_id].distance, abs=1e-9)
        named = {one.external_id for one in index.similar(name)}
        assert named == {other for pair in expected if name in pair for other in pair} - {name}


@pytest.mark.parametrize("family", some(["dart_minhash", "hyperplane", "projection"], "every family"))
def test_vectors_give_the_same_results_as_texts(
    index: Index, vectors: dict[str, list[float]], family: str
) -> None:
    threshold = VECTOR_THRESHOLDS[family]
    index.create_profile("p", recipe(family, sketch={"input": "vector"}, match={"threshold": threshold}))
    summary = index.add(Document(name, vector=vector) for name, vector in vectors.items())
    assert summary.rejected == 1
    usable = {name: dimensions(one) for name, one in vectors.items() if name not in ("zeros", "odd")}
    expected = true_pairs(family, threshold, usable)
    assert stored_pairs(index) == pytest.approx(expected, abs=1e-9)
    assert 20 < len(expected) < 160
    assert index.stats()["no_features"] == 1
    asked = [1.01 * one for one in vectors["g2-1"]]
    reported = {one.external_id: one.similarity for one in index.check(Document("new", vector=asked))}
    known = {name: alike(family, dimensions(asked), one) for name, one in usable.items()}
    assert reported == pytest.approx(
        {name: one.similarity for name, one in known.items() if one.reaches(threshold)}
    )
    assert index.check(Document("new", vector=vectors["zeros"])) == []


@every_family
def test_estimates_are_used_if_the_recipe_says_so(index: Index, texts: dict[str, str], family: str) -> None:
    rules = recipe(family, sketch={"weights": "log"}, match={"verify": "estimate"})
    index.create_profile("p", rules)
    index.add(Document(name, body=text) for name, text in texts.items())
    guessed = estimates(rules, texts)
    least = alike_at_threshold(family)
    distinct = {pair for pair in guessed if texts[pair[0]] != texts[pair[1]]}
    found = stored_pairs(index)
    assert {pair for pair in found if pair in distinct} == {
        pair for pair in distinct if round(guessed[pair], 12) >= least
    }
    assert found == pytest.approx({pair: guessed[pair] for pair in found}, abs=1e-6)
    reported = index.check(Document("new", body=texts["g1-0"]))
    assert {one.external_id for one in reported} == {"g1-0", "g1-5"} | {
        one.external_id for one in index.similar("g1-0")
    }


def alike_at_threshold(family: str) -> float:
    return round(1 / (1 + THRESHOLDS[family]) if family == "projection" else THRESHOLDS[family], 12)


def estimates(rules: Recipe, texts: dict[str, str]) -> Named:
    """The estimate of every pair, the later name second."""
    encoder = Encoder(resolve(rules))
    names = sorted(texts)
    sketches = encoder.encode([texts[name] for name in names]).sketches
    pairs = list(combinations(range(len(names)), 2))
    left, right = np.array(pairs).T
    guessed = encoder.family.estimate(sketches[left], sketches[right]).tolist()
    return {(names[one], names[other]): guess for (one, other), guess in zip(pairs, guessed, strict=True)}


@pytest.mark.slow("several builds")
@pytest.mark.parametrize("family", some(WEIGHTED, "every family"))
def test_dedupe_uses_the_scale_of_the_metric(index: Index, texts: dict[str, str], family: str) -> None:
    rules = recipe(family)
    index.create_profile("p", rules)
    index.add(Document(name, body=text) for name, text in texts.items())
    guessed = estimates(rules, texts)
    for least in (alike_at_threshold(family), 0.98, 1.0):
        first: dict[str, str | None] = {}
        for name in texts:
            staying = [other for other, of in first.items() if of is None]
            first[name] = next(
                (one for one in staying if guessed[min(one, name), max(one, name)] >= least), None
            )
        judged = Deduper(index, least).dedupe_external(list(texts))
        assert {one.id: one.duplicate_of for one in judged} == first
        assert 8 <= sum(one.keep for one in judged) < 48


def test_negative_numbers_have_no_features_in_weighted_jaccard(index: Index) -> None:
    index.create_profile("p", recipe("dart_minhash", sketch={"input": "vector"}))
    index.add([Document("a", vector=[1.0, -1.0]), Document("b", vector=[1.0, 1.0])])
    assert index.stats()["no_features"] == 1
