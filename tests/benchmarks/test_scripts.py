"""The benchmark scripts against brute force in plain Python, on tiny inputs."""

import random
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks import accuracy, labels, partial_copies
from benchmarks.exact import exact_pairs
from benchmarks.truth import wilson_interval
from nearsim_db.similarity.recipe import load
from tests.builders.plain_runs import longest_run

pytestmark = pytest.mark.slow("a benchmark")

RECIPES = Path(accuracy.__file__).parent / "recipes"


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.75, 1.0])
def test_exact_pairs_are_complete_and_exact(threshold: float) -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    sets = [frozenset(rng.integers(0, 14, size).tolist()) for size in rng.integers(1, 12, 80)]
    arrays = [np.array(sorted(one), np.uint64) for one in sets]
    found = exact_pairs(arrays, threshold)
    columns = (found.left, found.right, found.intersection, found.union)
    expected = [
        (i, j, len(sets[i] & sets[j]), len(sets[i] | sets[j]))
        for i, j in combinations(range(80), 2)
        if Fraction(len(sets[i] & sets[j]), len(sets[i] | sets[j])) >= Fraction(str(threshold))
    ]
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (990, 1000, 0.9817, 0.9946), (0, 0, 0.0, 1.0)],
)
def test_wilson_intervals_equal_published_ones(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_pairs_of_partial_copies_are_those_of_brute_force() -> None:
    rng = random.Random(1)
    stories = [[f"w{rng.randrange(300)}" for _ in range(rng.randrange(60, 120))] for _ in range(10)]
    texts = dict(partial_copies.make_copies(stories, seed=1))
    assert texts == dict(partial_copies.make_copies(stories, seed=1)) and len(texts) == 20
    sets = {name: {tuple(own[at : at + 5]) for at in range(len(own) - 4)} for name, own in texts.items()}
    assert partial_copies.containments(texts) == {
        (one, other): len(sets[one] & sets[other]) / min(len(sets[one]), len(sets[other]))
        for one, other in combinations(sorted(texts), 2)
        if sets[one] & sets[other]
    }
    expected = {
        pair for pair in combinations(sorted(texts), 2) if longest_run(*(texts[name] for name in pair)) >= 20
    }
    assert partial_copies.pairs_with_runs(texts, 20) == expected and len(expected) >= 10


def test_recipes_are_valid_and_the_stop_words_complete() -> None:
    recipes = {path.stem: load(path) for path in RECIPES.glob("*.toml")}
    sets = {"w3", "c5", "c3", "a3", "hbag"}
    assert set(recipes) == sets | {"hyperplane", "projection", "dart_minhash", "bottom_k"}
    assert len(set(recipes["hbag"].shingle.stopwords)) == 127


def test_labels_are_scored_by_part_and_with_intervals(tmp_path: Path) -> None:
    text = " ".join(f"word{at}" for at in range(40))
    folder = tmp_path / "sample"
    for part, name, other, label in (
        *(("news", "a_vs_b", f"{text} more", "1"), ("news", "c_vs_d", "another text altogether here", "0")),
        *(("web", "e_vs_f", "missed by shingles of words", "2"), ("web", "g_vs_h", text, "")),
    ):
        pair = folder / part / name
        pair.mkdir(parents=True)
        left, right = name.split("_vs_")
        (pair / f"full-text-{left}").write_text(text)
        (pair / f"full-text-{right}").write_text(other)
        (pair / "label").write_text(label)
    halves = labels.main(folder, halves=2).splitlines()[2:]
    assert halves == [
        "| default, news | 2 | 0.700 | 1.000 | 1.000 |",
        "| default, web | 2 | 0.700 | 0.000 | 0.000 |",
    ]
    shown = labels.main(folder, threshold=[0.7]).splitlines()[2:]
    assert [row.split(" | ")[0] for row in shown] == ["| default, all", "| default, news", "| default, web"]
    assert shown[0].endswith("| 1.000 (0.207 to 1.000) | 0.500 (0.095 to 0.905) | 0.667 |")
    corpus, judged = tmp_path / "corpus.jsonl", tmp_path / "labels.csv"
    corpus.write_text(f'{{"id": "a", "text": "{text}"}}\n{{"id": "b", "text": "{text} more"}}\n')
    judged.write_text("id_a,id_b,label\na,b,1\na,unknown,0\n")
    (row,) = labels.main(corpus, judged, threshold=[0.7]).splitlines()[2:]
    assert row.startswith("| default, all | 0.7 | 1 | 1.000")
