"""The weighted sample of pairs against brute force, its histogram, and passages proposed for winnow."""

import random
from dataclasses import replace

import numpy as np
import pytest

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct_sets, encoder_of
from nearsim_db.analysis.tuning.labels import PairLabels
from nearsim_db.analysis.tuning.pair_sample import Histogram, WeightedPairs, histogram, sample_pairs, valley
from nearsim_db.analysis.tuning.passages import PassageTuning, tune_passages
from nearsim_db.analysis.tuning.proposal import TuningOptions
from nearsim_db.analysis.tuning.sampling import Reservoir, Sample
from nearsim_db.errors import InputError
from nearsim_db.similarity import presets
from nearsim_db.similarity.arrays import Ints
from nearsim_db.similarity.recipe import Recipe, override

_EDGES = (0.0, 0.1, 0.3, 0.6, 1.01)


def _sets(families: list[int], singles: int, shared: int, own: int) -> DistinctSets:
    """Families of sets with `shared` ids of all and `own` ids of their own each; singles share a few with anyone."""
    generator = np.random.default_rng(7)
    sets = []
    for members in families:
        core = generator.integers(0, 2**63, shared, np.uint64)
        sets += [np.concatenate((core, generator.integers(0, 2**63, own, np.uint64))) for _ in range(members)]
    common = generator.integers(0, 2**63, 60, np.uint64)
    for _ in range(singles):
        some = generator.choice(common, 12, replace=False)
        sets.append(np.concatenate((some, generator.integers(0, 2**63, 30, np.uint64))))
    ordered = [np.sort(one) for one in sets]
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in ordered]))).astype(np.int64)
    return DistinctSets(np.concatenate(ordered), offsets, np.arange(len(ordered)), 64, "numpy")


def _true_counts(sets: DistinctSets) -> Ints:
    """Pairs by similarity, counted with Python's sets."""
    bounds = list(zip(sets.offsets[:-1].tolist(), sets.offsets[1:].tolist(), strict=True))
    held = [set(sets.ids[begin:end].tolist()) for begin, end in bounds]
    similarities = [
        len(held[i] & held[j]) / len(held[i] | held[j]) for j in range(len(held)) for i in range(j)
    ]
    return np.histogram(similarities, _EDGES)[0]


def _estimate(pairs: WeightedPairs) -> list[float]:
    return [float(one) for one in np.histogram(pairs.similarity, _EDGES, weights=pairs.weight)[0]]


def test_few_sets_are_compared_completely() -> None:
    sets = _sets([4, 3], 20, 20, 10)
    pairs = sample_pairs(sets, 1)
    assert len(pairs.left) == pairs.total == 27 * 26 // 2
    assert _estimate(pairs) == _true_counts(sets).tolist()


@pytest.mark.slow("statistics")
def test_the_weighted_sample_is_unbiased() -> None:
    sets = _sets([25, 10, 4, 2, 2, 2], 60, 30, 12)
    true = _true_counts(sets)
    estimates = np.array([_estimate(sample_pairs(sets, seed, 800, 400)) for seed in range(60)])
    error = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - true) <= 4 * error + 1e-9).all(), (estimates.mean(axis=0), true)


def test_very_large_bucket_is_bounded_but_counted() -> None:
    sets = _sets([540], 60, 40, 10)
    pairs = sample_pairs(sets, 3, 5_000, 10_000)
    assert len(pairs.left) <= 15_500
    family = 540 * 539 // 2
    assert float(pairs.weight[pairs.similarity >= 0.6].sum()) == pytest.approx(family, rel=0.05)


def test_ids_of_32_bits_are_distinguished() -> None:
    wide = _sets([30, 5], 100, 30, 12)
    sets = replace(wide, ids=wide.ids >> np.uint64(31), bits=32)
    pairs = sample_pairs(sets, 2, 1_000, 2_000)
    assert len(pairs.left) < 3_000
    assert float(pairs.weight[pairs.similarity >= 0.3].sum()) == pytest.approx(30 * 29 / 2 + 10, rel=0.15)


def test_each_pair_occurs_once_with_its_exact_similarity() -> None:
    sets = _sets([30, 5], 100, 30, 12)
    pairs = sample_pairs(sets, 2, 1_000, 500)
    assert (pairs.left < pairs.right).all()
    assert len(np.unique(pairs.left * len(sets) + pairs.right)) == len(pairs.left)
    assert (pairs.similarity == sets.similarities(pairs.left, pairs.right)).all()


def _histogram(counts: list[float]) -> Histogram:
    held = np.array(counts, np.float64)
    return Histogram(held, held, 0.0)


def test_the_valley_is_between_random_and_near_pairs() -> None:
    counts = [1e6, 5e4, 3e3, 400, 90, 40, 30, 22, 20, 12, 8, 7, 9, 14, 30, 44, 50, 52, 41, 30]
    assert valley(_histogram(counts)) == pytest.approx(11.5 / 20)


def test_valley_is_the_middle_of_an_empty_range() -> None:
    counts = [1e6, 5e4, *[0.0] * 12, 10, 44, 50, 52, 41, 30]
    assert valley(_histogram(counts)) == pytest.approx(8.5 / 20, abs=0.026)


def test_without_a_rise_there_is_no_valley() -> None:
    for counts in (
        [1e6 * 0.5**at for at in range(20)],
        [1e6, 1e3, 10, *[0.0] * 17],
        [1e6, 1e3, *[4.0, 3, 5, 4, 3, 4] * 3],
        # Random pairs that share a lot.
        [0.0, 10, 1e3, 1e5, 4e5, 1e5, 1e3, 10, *[0.0] * 12],
    ):
        assert valley(_histogram(counts)) is None


def test_multiples_of_a_twentieth_belong_to_the_bin_above() -> None:
    similarity = np.array([0.7, 0.6999, 0.15, 3 / 5])
    pairs = WeightedPairs(np.arange(4), np.arange(4) + 1, similarity, np.array([1.0, 2.0, 4.0, 8.0]), 6)
    found = histogram(pairs, 10 * pairs.weight, 30.0)
    expected = np.zeros(20)
    expected[[14, 13, 3, 12]] = 10, 20, 40, 80
    assert found.pairs.tolist() == expected.tolist()
    assert (found.sampled * 10).tolist() == expected.tolist()


def test_every_text_is_equally_likely_to_be_sampled() -> None:
    from scipy.stats import chisquare

    drawn = np.zeros(12)
    for seed in range(3_000):
        reservoir = Reservoir(4, 10_000, seed)
        for number in range(12):
            reservoir.offer(str(number))
        chosen = [int(text) for text in reservoir.texts()]
        assert chosen == sorted(set(chosen))
        assert len(chosen) == 4
        drawn[chosen] += 1
    assert chisquare(drawn).pvalue > 0.001


def test_a_sample_is_bounded_in_characters() -> None:
    reservoir = Reservoir(1_000, 5_000, 1)
    for _ in range(400):
        reservoir.offer("x" * 100)
    assert sum(map(len, reservoir.texts())) <= 5_000
    assert len(reservoir.texts()) == 50


RECIPE = override(Recipe(), ["sketch.family=winnow"])
PHRASE = "as was said before by all of those who had"  # 10 words


@pytest.fixture(scope="module")
def sample() -> Sample:
    """Stories that share a phrase; of each third one a copy, changed after 60 words in 4 words of each 12."""
    rng = random.Random(1)
    texts = {}
    for number in range(90):
        words = [f"w{rng.randrange(5_000)}" for _ in range(200)]
        words[20:20] = PHRASE.split()
        texts[f"story{number}"] = " ".join(words)
        if number % 3 == 0:
            changed = [
                f"x{at}_{number}" if at >= 60 and at % 12 > 7 else word for at, word in enumerate(words)
            ]
            texts[f"copy{number}"] = " ".join(changed)
    return Sample(list(texts.values()), 1_000, wanted={name: (None, text) for name, text in texts.items()})


def tuned(sample: Sample, labelled: PairLabels | None = None, **options: object) -> PassageTuning:
    return tune_passages(sample, RECIPE, TuningOptions(**options), labelled)  # type: ignore[arg-type]


@pytest.mark.slow("tunes a recipe")
def test_the_length_is_beyond_phrases_and_the_gap_spans_what_copies_change(sample: Sample) -> None:
    found = tuned(sample)
    by_length = {one.passage: one for one in found.lengths}
    assert by_length[10].documents == 1 and by_length[13].documents == 60 / 120
    assert by_length[10].continued is not None and by_length[10].continued < 0.5
    assert by_length[13].continued == 1
    assert (found.recipe.match.passage, found.recipe.match.passage_gap) == (13, 5)
    assert found.gaps[0][1] < 0.5 and [share for _, share in found.gaps[1:]] == [1.0] * 6
    assert found.recipe.match.threshold == 0.5 and "no clear valley" in found.reasons["match.threshold"]
    # Of 206 shingles windows of 16 would give 24 fingerprints; match.min_fingerprints asks for 64.
    assert found.recipe.match.min_fingerprints == 64
    assert by_length[20].fingerprints == pytest.approx(2 * 206 / 6, rel=0.1)


@pytest.mark.slow("tunes a recipe")
def test_labels_and_given_keys_decide(sample: Sample) -> None:
    pairs = [(f"story{number}", f"copy{number}", True) for number in range(0, 90, 3)]
    pairs += [(f"story{number}", f"story{number + 1}", False) for number in range(60)]
    found = tuned(sample, PairLabels(pairs))
    assert 0.03 < found.recipe.match.threshold < 0.75
    assert "best F1 of the labelled pairs, 1.000" in found.reasons["match.threshold"]
    given = tuned(sample, threshold=0.9, kept=frozenset({"passage", "passage_gap"})).recipe.match
    assert (given.passage, given.passage_gap, given.threshold) == (20, 30, 0.9)


def test_samples_without_passages_keep_the_recipe() -> None:
    alone = tuned(Sample(["one two three", "four five six"], 2))
    assert alone.recipe == RECIPE and {reason[:16] for reason in alone.reasons.values()} == {
        "the recipe's own"
    }
    with pytest.raises(InputError, match="give at least two"):
        tuned(Sample(["one two three", ""], 2))


def test_a_gap_that_was_given_is_said_to_be_given() -> None:
    given = tuned(Sample(["one two three", "four five six"], 2), kept=frozenset({"passage_gap"}))
    assert given.reasons["match.passage_gap"] == "set by the user"


@pytest.mark.slow("statistics")
def test_weighted_pairs_that_share_a_rare_feature_are_complete_and_others_unbiased() -> None:
    generator = random.Random(5)
    names = [f"name{number}" for number in range(80)]
    texts = [" ".join(["common", "words", *generator.sample(names, 3)]) for _ in range(300)]
    recipe = presets.load("record-linkage")
    sets = distinct_sets(encoder_of(recipe, texts), texts)
    left, right = np.triu_indices(len(sets), 1)
    true = np.histogram(sets.similarities(left, right), _EDGES)[0]

    estimates = np.array([_estimate(sample_pairs(sets, seed, 2_000)) for seed in range(40)])
    error = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - true) <= 4 * error + 1e-9).all(), (estimates.mean(axis=0), true)
    # All pairs that share more than common words share a rare one.
    assert error[2:].tolist() == [0.0, 0.0]


def test_similarity_of_weighted_sets_is_the_metric_of_the_recipe() -> None:
    texts = ["old mill road", "old mill lane", "new mill road", "harbour view"]
    for settings in (
        ["sketch.family=rare"],
        ["sketch.family=dart_minhash"],
        ["sketch.family=hyperplane", "sketch.k=1024"],
    ):
        encoder = encoder_of(override(Recipe(), ["shingle.scheme=bag", "shingle.k=1", *settings]), texts)
        sets, features = distinct_sets(encoder, texts), encoder.features(texts)
        left, right = np.triu_indices(4, 1)
        expected = encoder.compare([features.of(row) for row in range(4)], left, right).similarity
        assert sets.similarities(left, right) == pytest.approx(expected)
