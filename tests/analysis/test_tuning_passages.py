"""Passage length, gap and threshold of winnow, proposed from samples with planted phrases and copies."""

import random

import pytest

from nearsim_db.analysis.tuning.labels import Labels
from nearsim_db.analysis.tuning.passages import PassageTuning, tune_passages
from nearsim_db.analysis.tuning.proposal import TuningOptions
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.errors import InputError
from nearsim_db.similarity.recipe import Recipe, override

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


def tuned(sample: Sample, labelled: Labels | None = None, **options: object) -> PassageTuning:
    return tune_passages(sample, RECIPE, TuningOptions(**options), labelled)  # type: ignore[arg-type]


def test_the_length_is_beyond_phrases_and_the_gap_spans_what_copies_change(sample: Sample) -> None:
    found = tuned(sample)
    by_length = {one.passage: one for one in found.lengths}
    assert by_length[10].documents == 1 and by_length[13].documents == 60 / 120
    assert by_length[10].continued is not None and by_length[10].continued < 0.5
    assert by_length[13].continued == 1
    assert (found.recipe.match.passage, found.recipe.match.passage_gap) == (13, 5)
    assert found.gaps[0][1] < 0.5 and [share for _, share in found.gaps[1:]] == [1.0] * 6
    assert found.recipe.match.threshold == 0.5 and "no clear valley" in found.reasons["match.threshold"]
    assert by_length[20].fingerprints == pytest.approx(2 * 210 / 17, rel=0.02)


def test_labels_and_given_keys_decide(sample: Sample) -> None:
    pairs = [(f"story{number}", f"copy{number}", True) for number in range(0, 90, 3)]
    pairs += [(f"story{number}", f"story{number + 1}", False) for number in range(60)]
    found = tuned(sample, Labels(pairs))
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
