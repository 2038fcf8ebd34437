"""The benchmark of families against plain Python and SciPy, on tiny inputs."""

import math
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import distance

from benchmarks import accuracy, all_pairs, tfidf
from benchmarks.in_memory import FeatureSets, read_features
from nearsim_db.records import Document
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, load, override

pytestmark = pytest.mark.slow("a benchmark")

RECIPES = Path(accuracy.__file__).parent / "recipes"
TEXTS = [
    "the cat sat on the mat",
    "the cat sat on a mat",
    "A dog sat, and the cat sat",
    "the cat sat on the mat",
    "",
    "nothing of all this",
    "the mat of the cat sat on the cat",
]


@pytest.fixture
def documents() -> list[Document]:
    given = [Document(f"d{place}", body=text) for place, text in enumerate(TEXTS)]
    return tfidf.with_vectors(given, 8)


def recipe(name: str, threshold: float) -> Recipe:
    return override(load(RECIPES / f"{name}.toml"), [f"match.threshold={threshold}"])


def found(rules: Recipe, documents: list[Document]) -> dict[tuple[int, int], float]:
    encoder = Encoder(resolve(rules))
    features = read_features(encoder, documents)
    true = accuracy.expand(features, all_pairs.true_pairs(encoder, features.sets))
    pairs = zip(true.left.tolist(), true.right.tolist(), strict=True)
    return dict(zip(pairs, true.similarity.tolist(), strict=True))


def test_vectors_weigh_frequent_words_of_few_documents() -> None:
    given = [Document("a", "x", "x y"), Document("b", body="Y z"), Document("c", body="z w")]
    rows = tfidf.vectors(given, 3, normalised=False)
    x, y, z = math.log(3), math.log(3 / 2), math.log(3 / 2)
    assert rows == pytest.approx(np.array([[2 * x, y, 0], [0, y, z], [0, 0, z]]))
    lengths = np.linalg.norm(tfidf.vectors(given, 3), axis=1)
    assert lengths == pytest.approx(np.ones(3))


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_true_pairs_of_vectors_equal_scipy(documents: list[Document], threshold: float) -> None:
    cosines, similarities = {}, {}
    for one, other in combinations(range(len(documents)), 2):
        left, right = documents[one].vector, documents[other].vector
        if left is None or right is None or not any(left) or not any(right):
            continue
        if (cosine := 1 - distance.cosine(left, right)) >= threshold:
            cosines[one, other] = cosine
        if (apart := distance.euclidean(left, right)) <= threshold:
            similarities[one, other] = 1 / (1 + apart)
    assert (0, 3) in cosines
    assert found(recipe("hyperplane", threshold), documents) == pytest.approx(cosines)
    assert found(recipe("projection", threshold), documents) == pytest.approx(similarities)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.7])
def test_true_pairs_of_terms_equal_python_counters(documents: list[Document], threshold: float) -> None:
    expected = {}
    for one, other in combinations(range(len(TEXTS)), 2):
        left, right = (Counter(TEXTS[row].lower().replace(",", "").split()) for row in (one, other))
        share = (left & right).total() / ((left | right).total() or 1)
        if share >= threshold:
            expected[one, other] = share
    assert len(expected) > 2
    assert found(recipe("dart_minhash", threshold), documents) == pytest.approx(expected)


def test_pairs_are_counted() -> None:
    """Five documents: 0 and 1 are twins; 0-2, 1-2 and 3-4 are the other true pairs."""
    features = FeatureSets(np.array([0, 0, 2, 3, 4]), np.array([0, 2, 3, 4]), [])
    heads = all_pairs.TruePairs(np.array([0, 2]), np.array([1, 3]), np.array([0.9, 0.8]))
    true = accuracy.expand(features, heads)
    assert sorted(zip(true.left.tolist(), true.right.tolist(), strict=True)) == [
        (0, 1), (0, 2), (1, 2), (3, 4),
    ]  # fmt: skip
    judged = accuracy.Judged("minhash", 0.7, 4, 4, 5, 1.0, 1.0)
    accuracy.add_seed(judged, features, true, np.array([1, 2, 24, 9]) - np.array([0, 0, 5, 0]))
    assert (judged.found, judged.wanted, judged.found_twins, judged.wanted_twins) == (2, 3, 1, 1)
    assert (judged.right, judged.reported, judged.recall, judged.precision) == (3, 4, 2 / 3, 0.75)


def test_recall_and_precision_of_an_index(database_url: str, documents: list[Document]) -> None:
    judged = accuracy.measure(database_url, documents, recipe("hyperplane", 0.5), seeds=2)
    assert judged.seeds == 2
    assert judged.wanted_twins == judged.found_twins == 2
    assert judged.wanted > 0
    assert judged.precision == 1
    assert judged.expected <= judged.expected_over_all <= 1
