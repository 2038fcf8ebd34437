"""The benchmark scripts against brute force in plain Python, on tiny inputs."""

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks import accuracy, in_memory, measure, presets, scale
from benchmarks.corpus import Corpus
from benchmarks.exact import exact_pairs
from benchmarks.truth import Truth, read_documents, read_truth, wilson_interval
from nearsim_db.records import Document
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, load, override

pytestmark = pytest.mark.slow("a benchmark")

RECIPES = Path(accuracy.__file__).parent / "recipes"
DOCUMENTS = 400

Pairs = dict[tuple[int, int], tuple[int, int]]


def word_shingles(document: Document) -> frozenset[tuple[str, ...]]:
    """The sets of w3.toml, written apart from the product; the corpus has no rare spaces."""
    text = "\n".join(part for part in (document.title, document.body) if part)
    words = text.lower().split()
    return (
        frozenset(tuple(words[at : at + 3]) for at in range(max(1, len(words) - 2))) if words else frozenset()
    )


def alike(sets: Sequence[frozenset[tuple[str, ...]]], threshold: str) -> Pairs:
    """Every pair of rows at the threshold with its intersection and union."""
    found = {}
    for left, right in combinations(range(len(sets)), 2):
        intersection = len(sets[left] & sets[right])
        union = len(sets[left] | sets[right])
        if union and Fraction(intersection, union) >= Fraction(threshold):
            found[left, right] = intersection, union
    return found


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [Document(one.external_id, one.title, one.text) for one in Corpus(DOCUMENTS, seed=5).documents()]


@pytest.fixture(scope="module")
def true_pairs(documents: list[Document]) -> Pairs:
    return alike([word_shingles(one) for one in documents], "0.3")


@pytest.fixture(scope="module")
def truth(true_pairs: Pairs) -> Truth:
    rows = np.array([(*pair, *sizes) for pair, sizes in sorted(true_pairs.items())], np.int64)
    return Truth(*rows.T)


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load(RECIPES / "w3.toml")


def random_keys(seed: int, rows: int, bands: int, kinds: int) -> npt.NDArray[np.uint64]:
    rng = np.random.Generator(np.random.PCG64(seed))
    return rng.integers(0, kinds, (rows, bands)).astype(np.uint64)


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_linked_pairs_follow_the_candidate_definition(limit: int) -> None:
    keys = random_keys(seed=limit, rows=40, bands=3, kinds=6)
    expected = set()
    for band in range(3):
        for key in set(keys[:, band].tolist()):
            bucket = [row for row in range(40) if keys[row, band] == key]
            anchors = bucket[:limit] if limit else bucket
            expected |= {
                (min(one, other), max(one, other)) for one in anchors for other in bucket if one != other
            }
    assert [tuple(pair) for pair in in_memory.linked_pairs(keys, limit).tolist()] == sorted(expected)


@pytest.mark.parametrize("at_once", [1, 7, 1_000])
def test_blocks_of_bucket_pairs_add_up(at_once: int) -> None:
    keys = random_keys(seed=9, rows=60, bands=1, kinds=5)[:, 0]
    blocks = list(in_memory.bucket_pairs(keys, np.arange(60), 0, at_once))
    pairs = [pair for left, right in blocks for pair in zip(left.tolist(), right.tolist(), strict=True)]
    assert sorted(pairs) == [(i, j) for i, j in combinations(range(60), 2) if keys[i] == keys[j]]


def test_empty_corpus_has_no_pairs() -> None:
    assert in_memory.linked_pairs(np.zeros((0, 4), np.uint64), 64).shape == (0, 2)


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


@pytest.mark.slow("a benchmark")
def test_all_pairs_are_found_and_correct(
    documents: list[Document], truth: Truth, true_pairs: Pairs, recipe: Recipe
) -> None:
    (score,) = accuracy.measure(documents, truth, recipe, thresholds=[0.7], limits=[0], seeds=2)
    wanted = [sizes for sizes in true_pairs.values() if sizes[0] * 10 >= sizes[1] * 7]
    twins = sum(intersection == union for intersection, union in wanted)
    assert (score.wanted_twins, score.wanted) == (2 * twins, 2 * (len(wanted) - twins))
    assert score.wanted > 50
    assert score.found_twins == score.wanted_twins > 0
    assert 0.97 <= score.lowest_recall <= score.recall <= 1
    assert score.precision == 1
    assert score.reported == score.found + score.found_twins


def test_wide_bands_miss_pairs(documents: list[Document], truth: Truth, recipe: Recipe) -> None:
    wide = override(recipe, ["bands.count=1", "bands.rows=20"])
    (score,) = accuracy.measure(documents, truth, wide, thresholds=[0.7], limits=[0], seeds=1)
    assert 0 < score.recall < 0.9
    assert score.precision == score.found_twins / score.wanted_twins == 1


def test_a_pair_that_differs_from_the_truth_costs_precision(
    documents: list[Document], truth: Truth, recipe: Recipe
) -> None:
    shifted = Truth(truth.left, truth.right, truth.intersection, truth.union.copy())
    changed = int(
        np.flatnonzero((truth.intersection < truth.union) & (truth.intersection * 10 >= truth.union * 9))[0]
    )
    shifted.union[changed] += 1
    (score,) = accuracy.measure(documents, shifted, recipe, thresholds=[0.7], limits=[0], seeds=1)
    assert score.reported - score.right == 1


def test_thresholds_below_the_truth_are_refused(
    documents: list[Document], truth: Truth, recipe: Recipe
) -> None:
    with pytest.raises(ValueError, match=r"0\.2 cannot be judged"):
        accuracy.measure(documents, truth, recipe, thresholds=[0.2], limits=[0], seeds=1)


def test_twins_are_expanded(documents: list[Document], true_pairs: Pairs, recipe: Recipe) -> None:
    encoder = Encoder(resolve(recipe))
    features = in_memory.read_features(encoder, documents)
    overlaps = in_memory.Overlaps(features, encoder.backend)
    found = in_memory.find_pairs(encoder, features, in_memory.sketch_heads(encoder, features), overlaps)
    expanded = in_memory.expand_twins(features, found)
    assert expanded <= {(*pair, *sizes) for pair, sizes in true_pairs.items()}
    twins = {(*pair, *sizes) for pair, sizes in true_pairs.items() if sizes[0] == sizes[1]}
    assert twins <= expanded


def test_files_are_read_as_rows(tmp_path: Path) -> None:
    texts, pairs = tmp_path / "texts.jsonl.gz", tmp_path / "truth.csv.gz"
    with gzip.open(texts, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"id": name, "text": "a b c"}) + "\n" for name in ("x", "y", "z"))
    with gzip.open(pairs, "wt", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows([("id_a", "id_b", "jaccard", "inter", "union"), ("z", "x", "0.5", 1, 2)])
    known = read_documents(texts)
    assert [one.external_id for one in known] == ["x", "y", "z"]
    found = read_truth(pairs, known)
    assert (found.left[0], found.right[0], found.intersection[0], found.union[0]) == (0, 2, 1, 2)


def test_recipes_are_valid_and_the_stop_words_complete() -> None:
    recipes = {path.stem: load(path) for path in RECIPES.glob("*.toml")}
    sets = {"w3", "c5", "c3", "a3", "hbag"}
    assert set(recipes) == sets | {"hyperplane", "projection", "dart_minhash", "bottom_k"}
    assert len(set(recipes["hbag"].shingle.stopwords)) == 127


def test_runs_alternate() -> None:
    order: list[str] = []
    seconds = measure.take_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 3
    assert {name: len(values) for name, values in seconds.items()} == {"a": 3, "b": 3}


def test_ratios_are_of_the_same_round() -> None:
    assert measure.ratio([4.0, 9.0, 8.0], [2.0, 3.0, 8.0]) == measure.Spread(2.0, 1.0, 3.0)


def test_steps_end_at_their_last_call(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 3.0, 6.0, 10.0])
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: next(clock))
    steps = measure.StepTimes()
    steps("read", 1, None)
    steps("read", 2, None)
    steps("sign", 1, None)
    steps.finish()
    assert steps.seconds == {"read": 3.0, "sign": 7.0}


def test_the_machine_is_described() -> None:
    facts = measure.machine()
    assert facts["numpy"] == np.__version__
    assert f"numpy {np.__version__}" in measure.describe_machine(facts)


def test_merges_are_counted() -> None:
    truth = np.array([0, 0, 0, 3, 3, 5])
    assert scale.merge_recall(truth, truth) == 1
    assert scale.merge_recall(truth, np.array([0, 0, 2, 3, 3, 5])) == pytest.approx(2 / 3)
    assert scale.merge_recall(truth, np.arange(6)) == 0


def test_reference_has_the_true_pairs(
    documents: list[Document], true_pairs: Pairs, recipe: Recipe, tmp_path: Path
) -> None:
    path = tmp_path / "corpus.jsonl"
    lines = [{"id": one.external_id, "title": one.title, "text": one.body} for one in documents]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    reference = scale.make_reference(path, override(recipe, ["match.threshold=0.7"]))
    wanted = [pair for pair, sizes in true_pairs.items() if sizes[0] * 10 >= sizes[1] * 7]
    head_of = reference.features.head_of
    heads = [(i, j) for i, j in wanted if head_of[i] == i and head_of[j] == j and i != j]
    assert reference.codes().tolist() == sorted(i * DOCUMENTS + j for i, j in heads)
    assert all(reference.clusters[i] == reference.clusters[j] for i, j in wanted)
    joined = {row for pair in wanted for row in pair}
    assert all(reference.clusters[row] == row for row in range(DOCUMENTS) if row not in joined)


def test_signing_is_measured_for_all() -> None:
    pytest.importorskip("datasketch")
    pytest.importorskip("xxhash")
    from benchmarks import signing

    texts = [signing.with_curly_quotes(text) for text in signing.make_stories(20)]
    assert 300 < len(texts[0].split()) < 500
    seconds = signing.measure(texts, rounds=1)
    assert all(value > 0 for values in seconds.values() for value in values)
    assert set(signing.compare(seconds)) == {
        f"nearsim {backend} vs datasketch {hash_function}"
        for backend in ("numba", "numpy")
        for hash_function in ("sha1", "xxhash")
    }
    assert list(signing.measure_stages(texts, "numpy")) == [
        "fold", "encode", "squeeze", "shingle ids", "sketch", "band keys",
    ]  # fmt: skip
    assert np.array_equal(
        signing.make_encoder("numba").band_keys_of(texts), signing.make_encoder("numpy").band_keys_of(texts)
    )


def test_agreement_counts_different_texts_with_equal_values(
    documents: list[Document], true_pairs: Pairs
) -> None:
    given = [
        replace(one, attributes={"page": row % 3} if row % 7 else {}) for row, one in enumerate(documents)
    ]
    sets = [word_shingles(one) for one in documents]
    heads = [row for row, one in enumerate(sets) if one and one not in sets[:row] and row % 7]
    pairs = {pair: sizes for pair, sizes in true_pairs.items() if {*pair} <= {*heads}}
    wanted = sum(left % 3 == right % 3 for left, right in combinations(heads, 2))
    rules = ("shingle.tokens=whitespace", "normalise.case=lower")
    for one in presets.agreements(given, "articles", "page", rules, (0.3, 0.5)):
        reached = [pair for pair, (shared, union) in pairs.items() if shared / union >= one.threshold]
        same = sum(left % 3 == right % 3 for left, right in reached)
        assert (one.pairs, one.same, one.wanted) == (len(reached), same, wanted) and one.same
