"""Proposals for synthetic corpora of known structure."""

import random
from functools import cache

import numpy as np
import pytest

from nearsim_db import presets
from nearsim_db.encode import Encoder
from nearsim_db.errors import InputError, RecipeError
from nearsim_db.profile import resolve
from nearsim_db.recipe import Recipe, override, parse
from nearsim_db.records import Document, ReadDocument, Reject
from nearsim_db.tune import Labels, Sample, Tuning, Wishes, commented, draw, tune
from nearsim_db.tune.banding import Corpus
from nearsim_db.tune.distinct import distinct_sets
from nearsim_db.tune.pair_sample import PairSample

_WORDS = [
    a + b + c
    for a in "bdfgklmnprst"
    for b in ("aran", "etel", "ivor", "ohim", "udas")
    for c in "abcdefghijklmnop"
]
DEFAULT = presets.load(presets.DEFAULT)


def synthetic_corpus(singles: int = 260, copies: int = 60, words: int = 90) -> list[tuple[str, str]]:
    """Random texts, of which the first have a copy with one to four words changed; and ten identical ones."""
    generator = random.Random(5)
    texts = [generator.choices(_WORDS, k=words) for _ in range(singles)]
    found = [(f"single-{number}", " ".join(text)) for number, text in enumerate(texts)]
    for number in range(copies):
        text = list(texts[number])
        for _ in range(1 + number % 4):
            text[generator.randrange(words)] = f"changed{number}"
        found.append((f"copy-{number}", " ".join(text)))
    return found + [(f"twin-{number}", found[number][1]) for number in range(min(10, singles))]


def _sample(
    corpus: list[tuple[str, str]], wanted: frozenset[str] = frozenset(), size: int = 10_000
) -> Sample:
    records = (ReadDocument(Document(name, None, text), "corpus", 0) for name, text in corpus)
    return draw(records, Encoder(resolve(DEFAULT)).text_of, size, wanted=wanted)


@cache
def _tuned() -> Tuning:
    return tune(_sample(synthetic_corpus()), DEFAULT)


def test_the_valley_between_copies_and_others_is_found() -> None:
    found = _tuned()
    assert found.valley is not None
    # Random texts share next to nothing, a copy with four words changed more than 0.7 of its shingles.
    assert 0.1 < found.valley < 0.75
    assert 0.5 <= found.forecast.threshold < 0.75
    assert found.forecast.pairs == 60
    assert (found.twins, found.histogram.identical) == (10, 10)
    assert found.shingling.scheme == "word"
    assert found.forecast.recall_at >= 0.99
    assert found.promised_recall > 0.999
    assert [check.name for check in found.checks if check.verdict != "ok"] == []


def test_a_forecast_scales_to_the_corpus_behind_the_sample() -> None:
    found = tune(_sample(synthetic_corpus(600, 200), size=405), DEFAULT, Wishes(threshold=0.6))
    assert len(found.sample.texts) == 405
    assert found.forecast.pairs == pytest.approx(200, rel=0.25)
    assert found.forecast.candidates == pytest.approx(2 * 200 / 800, rel=0.3)


def test_texts_that_come_often_are_not_multiplied_by_the_sampling() -> None:
    # 400 texts stand there once and 20 of them 30 times each: 420 different ones, of which a third is looked at.
    texts = [f"text number {number}" for number in range(400)] + [
        f"often {number}" for number in range(20) for _ in range(30)
    ]
    estimates = []
    for seed in range(30):
        chosen = random.Random(seed).sample(texts, 333)
        sets = distinct_sets(Encoder(resolve(DEFAULT)), chosen)
        none = np.zeros(0)
        rows = np.zeros(0, np.int64)
        corpus = Corpus(sets, PairSample(rows, rows, none, none, 0), 1_000, 333)
        estimates.append(corpus.grown.sum())
    assert np.mean(estimates) == pytest.approx(420, rel=0.03)


def test_the_recipe_says_why_and_reads_back() -> None:
    found = _tuned()
    text = commented(found.profile.recipe, "Proposed for a test.", found.reasons)
    assert parse(text) == found.profile.recipe
    assert text.startswith("# Proposed for a test.\n")
    above = text.splitlines()[: text.splitlines().index(f"threshold = {found.forecast.threshold}")]
    assert above[-1].startswith("# ")
    assert "near and random pairs part at" in above[-2]


def test_what_wishes_fix_stays() -> None:
    recipe = override(DEFAULT, ["shingle.scheme=char", "shingle.k=6", "bands.count=4", "bands.rows=30"])
    wishes = Wishes(recall=0.9, threshold=0.83, kept=frozenset({"scheme", "k"}))
    found = tune(_sample(synthetic_corpus(120, 20)), recipe, wishes)
    proposed = found.profile.recipe
    assert (proposed.shingle.scheme, proposed.shingle.k) == ("char", 6)
    assert (proposed.match.threshold, proposed.bands.recall, proposed.bands.count) == (0.83, 0.9, None)
    assert found.shinglings == [found.shingling]
    assert proposed.normalise == recipe.normalise


def test_without_near_pairs_the_recipes_threshold_is_kept_and_said_so() -> None:
    found = tune(_sample(synthetic_corpus(300, 0)[:300]), override(DEFAULT, ["match.threshold=0.65"]))
    assert (found.valley, found.forecast.threshold) == (None, 0.65)
    assert "no clear valley" in found.reasons["match.threshold"]
    assert "too few near pairs" in found.reasons["shingle.scheme"]


def test_texts_without_spaces_are_cut_into_characters() -> None:
    generator = random.Random(3)
    letters = [chr(code) for code in range(0x4E00, 0x4F00)]
    texts = [generator.choices(letters, k=60) for _ in range(200)]
    copies = [[*text[:30], generator.choice(letters), *text[31:]] for text in texts[:50]]
    corpus = [(str(number), "".join(text)) for number, text in enumerate(texts + copies)]
    found = tune(_sample(corpus), DEFAULT)
    assert found.shingling.scheme == "char"
    assert found.shingling.k <= 4
    assert "no spaces" in found.reasons["shingle.scheme"]


def test_labels_choose_the_threshold_of_the_best_f1() -> None:
    pairs = [(f"single-{number}", f"copy-{number}", number % 4 < 2) for number in range(60)]
    pairs += [(f"single-{number}", f"single-{number + 1}", False) for number in range(0, 40, 2)]
    labels = Labels([*pairs, ("single-1", "nowhere", True)])
    found = tune(_sample(synthetic_corpus(), frozenset(labels.ids)), DEFAULT, given=labels)
    assert found.told is not None
    assert (labels.unknown, found.told.duplicates, found.told.distinct) == (1, 30, 50)
    # One or two words changed are a duplicate, three or four are not: nearly parted by any similarity.
    assert found.told.best.f1 > 0.9
    assert found.forecast.threshold == found.profile.recipe.match.threshold
    higher = [point for point in found.told.points if point.threshold >= found.forecast.threshold]
    assert higher[-1] == found.told.best
    assert "best F1" in found.reasons["match.threshold"]


def test_labels_of_one_kind_only_are_refused() -> None:
    labels = Labels([("single-1", "copy-1", True)])
    with pytest.raises(InputError, match="needs both"):
        tune(_sample(synthetic_corpus(50, 5), frozenset(labels.ids)), DEFAULT, given=labels)


def test_a_bucket_limit_that_loses_pairs_is_told_and_lowers_the_promise() -> None:
    generator = random.Random(9)
    base = generator.choices(_WORDS, k=120)
    family = []
    for number in range(60):
        text = list(base)
        text[generator.randrange(120)] = f"own{number}"
        family.append((f"member-{number}", " ".join(text)))
    recipe = override(DEFAULT, ["match.bucket_limit=2"])
    found = tune(_sample(synthetic_corpus(100, 0)[:100] + family), recipe, Wishes(threshold=0.6))
    assert found.kept_by_limit < 0.5
    assert found.promised_recall == pytest.approx(found.forecast.recall * found.kept_by_limit)
    assert [check.verdict for check in found.checks if check.name == "large buckets"] == ["warning"]


@pytest.mark.parametrize(
    "texts",
    [["one", "two"], ["same"] * 5, ["", "  ", "..."], ["", "word", "a b c d e f g h"]],
    ids=["tiny", "identical", "empty", "mixed"],
)
def test_degenerate_corpora_get_a_proposal(texts: list[str]) -> None:
    found = tune(_sample([(str(number), text) for number, text in enumerate(texts)]), DEFAULT)
    assert found.forecast.threshold == 0.7
    assert found.sample.documents == len(texts)


def test_too_little_to_compare_is_refused() -> None:
    with pytest.raises(InputError, match="at least two"):
        tune(_sample([("only", "text")]), DEFAULT)
    cosine = override(DEFAULT, ["sketch.family=hyperplane", "sketch.k=256"])
    with pytest.raises(RecipeError, match="Jaccard"):
        tune(_sample(synthetic_corpus(5, 0)), cosine)


def test_records_that_cannot_be_used_are_counted() -> None:
    records: list[ReadDocument | Reject] = [
        Reject("f", 1, "broken"),
        ReadDocument(Document("a", None, "text"), "f", 2),
    ]
    sample = draw(records, lambda title, body: body or "")
    assert (sample.documents, sample.rejected, sample.first_rejects[0].reason) == (1, 1, "broken")


def test_a_larger_sketch_is_taken_where_the_recipes_own_cannot_reach_the_recall() -> None:
    recipe: Recipe = override(DEFAULT, ["sketch.k=4"])
    found = tune(_sample(synthetic_corpus(100, 10)), recipe, Wishes(threshold=0.5))
    assert found.profile.recipe.sketch.k == 128
    assert "not reach the recall" in found.reasons["sketch.k"]
