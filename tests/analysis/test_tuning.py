"""Proposals for synthetic corpora of known structure."""

import random
from functools import cache

import numpy as np
import pytest

from nearsim_db.analysis.tuning.corpus import SampledCorpus
from nearsim_db.analysis.tuning.distinct_sets import distinct_sets
from nearsim_db.analysis.tuning.labels import PairLabels
from nearsim_db.analysis.tuning.pair_sample import WeightedPairs
from nearsim_db.analysis.tuning.proposal import TuningOptions, commented
from nearsim_db.analysis.tuning.sampling import Sample, draw
from nearsim_db.analysis.tuning.tuning import Tuning, tune
from nearsim_db.errors import InputError, RecipeError
from nearsim_db.records import Document, ReadDocument
from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override, parse

pytestmark = pytest.mark.slow("tunes recipes")

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


def test_valley_between_near_copies_and_unrelated_texts_is_found() -> None:
    found = _tuned()
    assert found.valley is not None
    # Random texts share next to nothing, a copy with four words changed more than 0.7 of its shingles.
    assert 0.1 < found.valley < 0.75
    assert 0.5 <= found.required().forecast.threshold < 0.75
    assert found.required().forecast.pairs == 60
    assert (found.twins, found.histogram.identical) == (10, 10)
    assert found.shingling.scheme == "word"
    assert found.required().forecast.recall_at >= 0.995
    assert found.required().promised_recall > 0.999
    assert [check.name for check in found.checks if check.verdict != "ok"] == []


def test_frequent_texts_do_not_inflate_the_estimate() -> None:
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
        corpus = SampledCorpus(sets, WeightedPairs(rows, rows, none, none, 0), 1_000, 333)
        estimates.append(corpus.grown.sum())
    assert np.mean(estimates) == pytest.approx(420, rel=0.03)


def test_proposed_recipe_has_reasons_and_can_be_parsed() -> None:
    found = _tuned()
    text = commented(found.required().profile.recipe, "Proposed for a test.", found.required().reasons)
    assert parse(text) == found.required().profile.recipe
    assert text.startswith("# Proposed for a test.\n")


def test_options_override_the_proposal() -> None:
    recipe = override(DEFAULT, ["shingle.scheme=char", "shingle.k=6", "bands.count=4", "bands.rows=30"])
    options = TuningOptions(recall=0.9, threshold=0.83, kept=frozenset({"scheme", "k"}))
    found = tune(_sample(synthetic_corpus(120, 20)), recipe, options)
    proposed = found.required().profile.recipe
    assert (proposed.shingle.scheme, proposed.shingle.k) == ("char", 6)
    assert (proposed.match.threshold, proposed.bands.recall, proposed.bands.count) == (0.83, 0.9, None)
    assert found.shinglings == [found.shingling]
    assert proposed.normalise == recipe.normalise


def test_threshold_is_kept_with_a_notice_without_near_pairs() -> None:
    found = tune(_sample(synthetic_corpus(300, 0)[:300]), override(DEFAULT, ["match.threshold=0.65"]))
    assert (found.valley, found.required().forecast.threshold) == (None, 0.65)


def test_texts_without_spaces_get_character_shingles() -> None:
    generator = random.Random(3)
    letters = [chr(code) for code in range(0x4E00, 0x4F00)]
    texts = [generator.choices(letters, k=60) for _ in range(200)]
    copies = [[*text[:30], generator.choice(letters), *text[31:]] for text in texts[:50]]
    corpus = [(str(number), "".join(text)) for number, text in enumerate(texts + copies)]
    found = tune(_sample(corpus), DEFAULT)
    assert found.shingling.scheme == "char"
    assert found.shingling.k <= 4


def test_labels_select_the_threshold_of_the_best_f1() -> None:
    pairs = [(f"single-{number}", f"copy-{number}", number % 4 < 2) for number in range(60)]
    pairs += [(f"single-{number}", f"single-{number + 1}", False) for number in range(0, 40, 2)]
    labels = PairLabels([*pairs, ("single-1", "nowhere", True)])
    found = tune(_sample(synthetic_corpus(), frozenset(labels.ids)), DEFAULT, labelled=labels)
    assert found.label_scores is not None
    assert (labels.unknown, found.label_scores.duplicates, found.label_scores.distinct) == (1, 30, 50)
    # One or two words changed are a duplicate, three or four are not: nearly parted by any similarity.
    assert found.label_scores.best.f1 > 0.9
    assert found.required().forecast.threshold == found.required().profile.recipe.match.threshold
    higher = [
        point for point in found.label_scores.points if point.threshold >= found.required().forecast.threshold
    ]
    assert higher[-1] == found.label_scores.best


def _hardly_alike() -> list[tuple[str, str]]:
    """Sixty pairs of texts of a hundred words that share a run of four."""
    generator = random.Random(1)
    found = []
    for number in range(60):
        left, right = generator.choices(_WORDS, k=100), generator.choices(_WORDS, k=100)
        right[10:14] = left[10:14]
        found += [(f"left-{number}", " ".join(left)), (f"right-{number}", " ".join(right))]
    return found


def _labelled() -> PairLabels:
    duplicates = [(f"left-{number}", f"right-{number}", True) for number in range(60)]
    return PairLabels(duplicates + [(f"left-{number}", f"left-{number + 1}", False) for number in range(20)])


_THREE_WORDS = frozenset({"scheme", "k"})


def test_labels_propose_no_threshold_below_a_tenth() -> None:
    labels = _labelled()
    sample = _sample(_hardly_alike(), frozenset(labels.ids))
    recipe = override(DEFAULT, ["shingle.scheme=word", "shingle.k=3"])
    found = tune(sample, recipe, TuningOptions(kept=_THREE_WORDS), labels)
    assert found.label_scores is not None
    # 2 runs of three words of 98 + 98 - 2 are shared.
    assert found.label_scores.best.threshold == pytest.approx(2 / 194)
    assert found.required().forecast.threshold == 0.1
    assert [check.verdict for check in found.checks if check.name == "labels"] == ["warning"]


def test_recipe_with_a_threshold_below_the_floor_lowers_it() -> None:
    sample = _sample(synthetic_corpus())
    assert _tuned().valley == pytest.approx(0.3, abs=0.15)
    assert _tuned().threshold == 0.5
    recipe = override(DEFAULT, ["match.threshold=0.2"])
    found = tune(sample, recipe, TuningOptions(kept=_THREE_WORDS))
    assert found.valley is not None
    assert found.threshold == pytest.approx(found.valley, abs=0.026)
    recipe = override(DEFAULT, ["match.threshold=0.48"])
    found = tune(sample, recipe, TuningOptions(kept=_THREE_WORDS))
    assert found.threshold == 0.48


def test_bucket_limit_that_loses_pairs_is_reported_and_lowers_the_recall() -> None:
    generator = random.Random(9)
    base = generator.choices(_WORDS, k=120)
    family = []
    for number in range(60):
        text = list(base)
        text[generator.randrange(120)] = f"own{number}"
        family.append((f"member-{number}", " ".join(text)))
    recipe = override(DEFAULT, ["match.bucket_limit=2"])
    found = tune(_sample(synthetic_corpus(100, 0)[:100] + family), recipe, TuningOptions(threshold=0.6))
    assert found.required().kept_by_limit < 0.5
    assert found.required().promised_recall == pytest.approx(
        found.required().forecast.recall * found.required().kept_by_limit
    )
    assert [check.verdict for check in found.checks if check.name == "large buckets"] == ["warning"]


def test_degenerate_corpora_get_a_proposal() -> None:
    for texts in (["one", "two"], ["same"] * 5, ["", "word", "a b c d e f g h"]):
        found = tune(_sample([(str(number), text) for number, text in enumerate(texts)]), DEFAULT)
        assert (found.required().forecast.threshold, found.sample.documents) == (0.7, len(texts))


def test_unsuitable_samples_are_refused() -> None:
    for texts in (["text"], [""] * 20, ["", "word", "  "]):
        with pytest.raises(InputError):
            tune(_sample([(str(number), text) for number, text in enumerate(texts)]), DEFAULT)
    for settings in (["sketch.family=projection", "sketch.k=256"], ["match.amplification=or(8, and(4))"]):
        with pytest.raises(RecipeError):
            tune(_sample(synthetic_corpus(5, 0)), override(DEFAULT, settings))
    labels = PairLabels([("single-1", "copy-1", True)])
    with pytest.raises(InputError, match="needs both"):
        tune(_sample(synthetic_corpus(50, 5), frozenset(labels.ids)), DEFAULT, labelled=labels)


def test_larger_sketch_is_proposed_if_needed_for_the_recall() -> None:
    recipe: Recipe = override(DEFAULT, ["sketch.k=5"])
    found = tune(_sample(synthetic_corpus(100, 10)), recipe, TuningOptions(threshold=0.5))
    assert found.required().profile.recipe.sketch.k == 128


def _records(shuffled: int) -> list[Document]:
    """Records whose titles recur with their words in another order, beside unrelated bodies."""
    generator = random.Random(7)
    found = []
    for number in range(shuffled):
        title = generator.sample(_WORDS, 8)
        for copy in "ab":
            generator.shuffle(title)
            body = " ".join(generator.choices(_WORDS, k=8))
            found.append(Document(f"{copy}{number}", " ".join(title), body))
    return found


def _sample_of(documents: list[Document]) -> Sample:
    read = (ReadDocument(one, "records", 0) for one in documents)
    ids = {one.external_id for one in documents}
    return draw(read, Encoder(resolve(DEFAULT)).text_of, wanted=ids)


def test_records_get_the_preset_for_them() -> None:
    sample = _sample_of(_records(150))
    found = tune(sample, DEFAULT)
    assert (found.shingling.scheme, found.shingling.k, found.threshold) == ("bag", 1, 0.5)
    assert "preset record-linkage" in found.required().reasons["shingle.scheme"]
    chosen = tune(sample, DEFAULT, TuningOptions(kept=frozenset({"scheme"}), threshold=0.8))
    assert (chosen.shingling.scheme, chosen.threshold) == ("word", 0.8)
    assert tune(_sample(synthetic_corpus()), DEFAULT).shingling.scheme == "word"


def test_labels_try_bags_of_words_and_single_fields() -> None:
    documents = _records(60)
    labels = [(f"a{number}", f"b{number}", True) for number in range(60)]
    labels += [(f"a{number}", f"b{(number + 1) % 60}", False) for number in range(60)]
    found = tune(_sample_of(documents), DEFAULT, labelled=PairLabels(labels))
    assert [one.best_f1 for one in found.shinglings if one.scheme == "bag"] == [1.0]
    assert found.shingling.scheme in ("bag", "char")
    (fields,) = (one for one in found.checks if one.name == "fields")
    assert fields.verdict == "ok" and "title alone" in fields.finding
    crossed = [
        Document(one.external_id, one.title, documents[-at - 1].title) for at, one in enumerate(documents)
    ]
    crossed_labels = PairLabels([*labels, *((f"a{at}", f"b{59 - at}", False) for at in range(30))])
    (fields,) = (
        one
        for one in tune(_sample_of(crossed), DEFAULT, labelled=crossed_labels).checks
        if one.name == "fields"
    )
    assert fields.verdict == "warning" and "title alone" in fields.finding
    assert fields.advice == "to compare that field only: --set 'fields=[\"title\"]'"
