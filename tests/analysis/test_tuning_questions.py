"""Questions that labels answer: recipes, and the nearest record of the other source."""

import random
from collections.abc import Mapping
from functools import cache

import pytest

from nearsim_db.analysis.tuning.labels import PairLabels
from nearsim_db.analysis.tuning.proposal import TuningOptions
from nearsim_db.analysis.tuning.questions import LabelledCorpus, Question, are_across, best_of, refusal
from nearsim_db.analysis.tuning.sampling import Sample, draw
from nearsim_db.analysis.tuning.tuning import Tuning, tune
from nearsim_db.records import Document, ReadDocument
from nearsim_db.search.nearest import NearestQuery, NearestSearch, Record
from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import override
from tests.builders.companies import make_companies
from tests.builders.two_shops import TwoShops, make_two_shops

DEFAULT = presets.load(presets.DEFAULT)


def _sample(texts: Mapping[str, str], labels: PairLabels, size: int = 10_000) -> Sample:
    """Return a sample whose sources are the part of the ids before the number."""
    records = (
        ReadDocument(Document(name, None, text, name.partition("-")[0]), "rows", 0)
        for name, text in texts.items()
    )
    return draw(records, Encoder(resolve(DEFAULT)).text_of, size, wanted=labels.ids)


@cache
def _shops() -> TwoShops:
    return make_two_shops(700)


@cache
def _tuned_shops() -> Tuning:
    labels = PairLabels(_shops().labels(100))
    return tune(_sample(_shops().texts, labels), DEFAULT, labelled=labels)


def _by_name(tuning: Tuning) -> dict[str, Question]:
    return {question.name: question for question in tuning.questions}


@pytest.mark.slow("tunes a recipe")
def test_nearest_records_of_two_shops_are_better_than_clusters() -> None:
    questions = _by_name(_tuned_shops())
    assert set(questions) == {"proposal", "preset record-linkage", "starting recipe", "nearest"}
    assert [name for name, question in questions.items() if question.is_best] == ["nearest"]
    assert _tuned_shops().required().profile.recipe.sketch.family == "rare"
    assert "those of 3 characters" in _tuned_shops().required().reasons["sketch.family"]


@pytest.mark.slow("tunes a recipe")
def test_expected_f1_of_nearest_records_is_near_the_f1_of_all_pairs() -> None:
    query = NearestQuery(1, 0.1, mutual=True, across="source", margin=0.03)
    records = (Record(name, None, text, (name[0],)) for name, text in _shops().texts.items())
    pairs = {tuple(sorted((match.id, match.nearest))) for match in NearestSearch(query).find(records, None)}
    matches = set(_shops().matches)
    nearest = _by_name(_tuned_shops())["nearest"]
    assert nearest.pairs == len(pairs)
    assert nearest.f1 == pytest.approx(2 * len(pairs & matches) / (len(pairs) + len(matches)), abs=0.08)


@pytest.mark.slow("tunes a recipe")
def test_record_linkage_is_proposed_for_records_of_companies() -> None:
    companies = make_companies(1_500)
    labels = PairLabels(companies.labels(100))
    tuning = tune(_sample(companies.texts, labels), DEFAULT, labelled=labels)
    questions = _by_name(tuning)
    assert "nearest" not in questions
    assert questions["preset record-linkage"].is_best
    assert tuning.required().profile.recipe.sketch.family == "rare"
    assert 0.4 <= tuning.threshold <= 0.6


@pytest.mark.slow("tunes a recipe")
def test_what_is_set_is_not_questioned() -> None:
    labels = PairLabels(_shops().labels(100))
    tuning = tune(_sample(_shops().texts, labels), DEFAULT, TuningOptions(threshold=0.6), labels)
    assert set(_by_name(tuning)) == {"proposal", "nearest"}
    assert tuning.threshold == 0.6


def _articles() -> tuple[dict[str, str], PairLabels]:
    """Articles of 80 words of a small vocabulary, half of them with a copy in which three words are changed."""
    generator = random.Random(3)
    texts = {}
    for number in range(120):
        words = [f"w{generator.randrange(60)}" for _ in range(80)]
        texts[f"article-{number}"] = " ".join(words)
        if number % 2 == 0:
            for _ in range(3):
                words[generator.randrange(80)] = "changed"
            texts[f"copy-{number}"] = " ".join(words)
    labels = [(f"article-{number}", f"copy-{number}", True) for number in range(0, 120, 2)]
    labels += [(f"article-{number}", f"article-{number + 1}", False) for number in range(0, 120, 2)]
    return texts, PairLabels(labels)


def test_starting_recipe_is_the_best_where_its_clusters_are() -> None:
    texts, labels = _articles()
    corpus = LabelledCorpus(_sample(texts, labels), labels, False, 1)
    proposal, start = corpus.ask({"proposal": presets.load("records"), "starting recipe": DEFAULT})
    assert (start.pairs, start.precision, start.recall, start.f1) == (60, 1.0, 1.0, 1.0)
    assert start.is_best and not proposal.is_best
    # All texts share their runs of 3 characters.
    assert proposal.pairs > 1_000 and proposal.precision < 0.1


def test_a_question_that_is_hardly_better_leaves_the_proposal() -> None:
    proposal, better = (
        Question(name, 100, f1, f1, f1) for name, f1 in (("proposal", 0.8), ("nearest", 0.81))
    )
    assert best_of([proposal, better]) is proposal
    assert best_of([]) is None


def test_two_sources_are_known_by_their_labels() -> None:
    texts = {"left-1": "one", "left-2": "two", "right-1": "one more", "right-2": "two more"}
    across = PairLabels([("left-1", "right-1", True), ("left-2", "right-1", False)])
    assert are_across(_sample(texts, across), across)
    within = PairLabels([*across.pairs, ("left-1", "left-2", False)])
    assert not are_across(_sample(texts, within), within)
    third = {**texts, "other-1": "three"}
    assert not are_across(_sample(third, across), across)


def test_questions_need_a_whole_corpus_without_rules_about_fields() -> None:
    texts, labels = _articles()
    sample = _sample(texts, labels)
    assert [sample.texts_to_cluster[sample.rows[name]] for name in texts] == list(texts.values())
    assert refusal(sample, DEFAULT) is None
    assert "match.within" in (refusal(sample, override(DEFAULT, ["match.within=source"])) or "")
    sample.documents += 1
    assert "only a sample" in (refusal(sample, DEFAULT) or "")
