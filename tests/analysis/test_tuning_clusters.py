"""Proposals judged by the clusters that they make of a sample, and labels weighted by the pairs of the corpus."""

import random
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from nearsim_db.analysis.tuning.corpus import SampledCorpus
from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct_sets, encoder_of
from nearsim_db.analysis.tuning.labels import PairLabels
from nearsim_db.analysis.tuning.pair_sample import WeightedPairs
from nearsim_db.analysis.tuning.proposal import TuningOptions
from nearsim_db.analysis.tuning.sample_clusters import PairsToCluster
from nearsim_db.analysis.tuning.sampling import Sample, draw
from nearsim_db.analysis.tuning.tuning import Tuning, tune
from nearsim_db.analysis.tuning.weighted_labels import WeightedLabels
from nearsim_db.records import Document, ReadDocument
from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import override
from tests.builders.companies import Companies, make_companies
from tests.builders.verses import make_verses

DEFAULT = presets.load(presets.DEFAULT)
ROWS = 3_000


@cache
def _companies() -> Companies:
    return make_companies(ROWS)


def _sample(texts: dict[str, str], wanted: set[str] | None = None, size: int = 10_000) -> Sample:
    records = (ReadDocument(Document(name, None, text), "rows", 0) for name, text in texts.items())
    return draw(records, Encoder(resolve(DEFAULT)).text_of, size, wanted=wanted or set())


@cache
def _tuned() -> Tuning:
    labels = PairLabels(_companies().labels(100))
    return tune(_sample(_companies().texts, labels.ids), DEFAULT, labelled=labels)


@pytest.mark.slow("tunes a recipe")
def test_labels_of_records_propose_average_linkage_and_a_threshold_that_keeps_companies_apart() -> None:
    tuning = _tuned()
    clusters = tuning.clusters_at_threshold
    companies = len(set(_companies().company_of.values()))
    assert clusters is not None and clusters.documents == ROWS
    assert clusters.removed == pytest.approx(1 - companies / ROWS, abs=0.04)
    assert clusters.largest_cluster < 0.01
    assert tuning.required().profile.recipe.cluster.linkage == "average"
    assert "chains of pairs" in tuning.required().reasons["cluster.linkage"]


@pytest.mark.slow("tunes a recipe")
def test_precision_of_a_threshold_is_near_that_of_all_pairs_of_the_corpus() -> None:
    tuning, companies = _tuned(), _companies()
    ids, texts = list(companies.texts), list(companies.texts.values())
    encoder = encoder_of(tuning.required().profile.recipe, texts)
    sets = distinct_sets(encoder, texts)
    left, right = np.triu_indices(ROWS, 1)
    similarity = sets.similarities(sets.set_of[left], sets.set_of[right])
    company = np.array([companies.company_of[row] for row in ids])

    for row in tuning.clusters:
        called = similarity >= row.threshold - 1e-12
        precision = float((company[left] == company[right])[called].mean())
        assert row.precision is not None
        assert row.precision == pytest.approx(precision, abs=0.25)


@pytest.mark.slow("tunes a recipe")
def test_linkage_that_is_set_is_kept() -> None:
    options = TuningOptions(kept=frozenset({"linkage"}))
    tuning = tune(_sample(make_companies(400).texts), DEFAULT, options)
    assert tuning.required().profile.recipe.cluster.linkage == "connected"


@pytest.mark.slow("tunes a recipe")
def test_threshold_that_removes_most_documents_is_reported() -> None:
    options = TuningOptions(threshold=0.3, kept=frozenset({"linkage"}))
    tuning = tune(_sample(_companies().texts), DEFAULT, options)
    (check,) = (check for check in tuning.checks if check.name == "clusters")
    assert tuning.threshold == 0.3
    assert check.verdict == "warning" and "would remove" in check.finding
    assert "cluster.linkage = average (now connected)" in check.advice


@pytest.mark.slow("tunes a recipe")
def test_threshold_is_raised_until_not_most_documents_are_removed() -> None:
    """A chain of texts of 120 words, each of which has 91 in common with the next: a similarity of 89 / 147."""
    generator = random.Random(4)
    words = [f"word{generator.randrange(10**6)}" for _ in range(9_000)]
    chain = {f"link-{at}": " ".join(words[29 * at : 29 * at + 120]) for at in range(300)}
    copies = {f"copy-{at}": f"{chain[f'link-{at}']} more" for at in range(0, 300, 10)}
    recipe = override(DEFAULT, ["match.threshold=0.55"])
    options = TuningOptions(kept=frozenset({"scheme", "k"}))
    tuning = tune(_sample(chain | copies), recipe, options)
    clusters = tuning.clusters_at_threshold
    assert tuning.threshold == 0.65
    assert clusters is not None and clusters.removed == pytest.approx(30 / 330)
    assert "would not remove most of the sample" in tuning.required().reasons["match.threshold"]


def test_clusters_are_formed_of_a_larger_sample_than_pairs() -> None:
    sample = _sample(_companies().texts, size=100)
    assert (len(sample.texts), len(sample.texts_to_cluster)) == (100, ROWS)
    assert set(sample.texts) <= set(sample.texts_to_cluster)


def _sets(generator: random.Random, count: int) -> DistinctSets:
    """Sets of twelve of forty ids, the first of which several documents have."""
    sets: list[list[int]] = []
    while len(sets) < count:
        ids = sorted(generator.sample(range(40), 12))
        if ids not in sets:
            sets.append(ids)
    offsets = np.arange(count + 1) * 12
    set_of = np.concatenate((np.arange(count), [0, 0, 1]))
    return DistinctSets(np.array(sets, np.uint64).ravel(), offsets, set_of, 64, "numpy")


@pytest.mark.parametrize("threshold", [0.4, 0.5, 0.6])
def test_connected_clusters_of_a_sample_equal_brute_force(threshold: float) -> None:
    sets = _sets(random.Random(3), 60)
    held = [set(sets.ids[begin : begin + 12].tolist()) for begin in sets.offsets[:-1].tolist()]
    cluster_of = list(range(60))
    for left, right in combinations(range(60), 2):
        if len(held[left] & held[right]) / len(held[left] | held[right]) >= threshold:
            joined = cluster_of[right]
            cluster_of = [cluster_of[left] if cluster == joined else cluster for cluster in cluster_of]
    members = [3, 2, *(1 for _ in range(58))]
    sizes = [
        sum(members[row] for row in range(60) if cluster_of[row] == cluster) for cluster in set(cluster_of)
    ]

    settings = [f"match.threshold={threshold}", "bands.count=128", "bands.rows=1", "match.bucket_limit=0"]
    clusters = PairsToCluster(sets, resolve(override(DEFAULT, settings)), 1).cluster(threshold)
    assert (clusters.documents, clusters.removed) == (63, 63 - len(sizes))
    assert clusters.largest == max(sizes)


def test_a_distinct_pair_counts_as_often_as_its_similarity_occurs() -> None:
    """Of the labels near 0.5 one half is distinct; the corpus has a thousand pairs there, and ten near 0.9."""
    sets = DistinctSets(np.zeros(2, np.uint64), np.arange(3), np.arange(2), 64, "numpy")
    rows = np.zeros(20, np.int64)
    similarity = np.repeat([0.52, 0.92], 10)
    pairs = WeightedPairs(rows, rows + 1, similarity, np.repeat([100.0, 1.0], 10), 1_010)
    labels = np.repeat([0.52, 0.92], [20, 20])
    duplicate = np.array([at % 2 == 0 for at in range(20)] + [True] * 20)

    weighted = WeightedLabels(labels, duplicate, SampledCorpus(sets, pairs, 2, 2))
    assert weighted.at(0.9).precision == pytest.approx(1.0)
    assert weighted.at(0.5).precision == pytest.approx((1_000 * 0.5 + 10) / 1_010)
    assert weighted.at(0.5).recall == 1.0
    assert weighted.at(0.9).recall == pytest.approx(20 / 30)


def test_few_pairs_at_high_similarities_bound_the_duplicates_among_many_at_low_ones() -> None:
    """No distinct pair near 0.5 is labelled, where the corpus has 100,000 pairs; half of the duplicates are above 0.9,
    where it has 100."""
    sets = DistinctSets(np.zeros(2, np.uint64), np.arange(3), np.arange(2), 64, "numpy")
    rows = np.zeros(200, np.int64)
    pairs = WeightedPairs(
        rows, rows + 1, np.repeat([0.52, 0.92], 100), np.repeat([1_000.0, 1.0], 100), 100_100
    )
    labels = np.repeat([0.1, 0.52, 0.92], [100, 50, 50])
    weighted = WeightedLabels(labels, labels > 0.5, SampledCorpus(sets, pairs, 2, 2))
    assert 200 / 100_100 <= weighted.at(0.5).precision < 400 / 100_100
    assert weighted.at(0.9).precision == 1.0


@pytest.mark.slow("tunes a recipe")
def test_threshold_of_verses_is_judged_by_its_clusters() -> None:
    """Chains of pairs connect different verses at a threshold that is right for most pairs."""
    verses = make_verses(1_000)
    labels = PairLabels(verses.labels(100))
    recipe = override(DEFAULT, ["shingle.k=1"])
    options = TuningOptions(kept=frozenset({"scheme", "k", "linkage"}))
    tuning = tune(_sample(verses.texts, labels.ids), recipe, options, labelled=labels)

    clusters = tuning.clusters_at_threshold
    assert clusters is not None and clusters.f1 is not None
    assert verses.different <= clusters.remaining < 1.5 * verses.different
    assert clusters.f1 > max(row.f1 or 0.0 for row in tuning.clusters if row.threshold < tuning.threshold)
    assert "F1 of the pairs within clusters" in tuning.required().reasons["match.threshold"]


def test_clusters_with_more_pairs_than_duplicates_have_a_low_precision() -> None:
    """The corpus has 100 pairs from 0.9 on, and as many duplicates; the clusters there join 1,000 pairs."""
    sets = DistinctSets(np.zeros(2, np.uint64), np.arange(3), np.arange(2), 64, "numpy")
    rows = np.zeros(100, np.int64)
    pairs = WeightedPairs(rows, rows + 1, np.repeat(0.92, 100), np.ones(100), 100)
    similarity, duplicate = np.repeat([0.1, 0.92], 100), np.repeat([False, True], 100)
    weighted = WeightedLabels(similarity, duplicate, SampledCorpus(sets, pairs, 2, 2))
    assert weighted.of_clusters(0.9, 100).precision > 0.95
    assert weighted.of_clusters(0.9, 1_000).precision == pytest.approx(0.1, abs=0.02)
    assert weighted.of_clusters(0.9, 1_000).recall == 1.0


@pytest.mark.slow("tunes a recipe")
def test_record_linkage_gets_the_threshold_that_labels_show() -> None:
    labels = PairLabels(_companies().labels(100))
    options = TuningOptions(kept=frozenset({"scheme", "k"}))
    sample, recipe = _sample(_companies().texts, labels.ids), presets.load("record-linkage")
    tuning = tune(sample, recipe, options, labelled=labels)
    clusters, proposal = tuning.clusters_at_threshold, tuning.required()
    assert clusters is not None and clusters.f1 is not None
    assert (proposal.profile.recipe.sketch.family, proposal.profile.recipe.shingle.scheme) == ("rare", "bag")
    assert 0.45 < tuning.threshold < 0.55 and clusters.f1 > 0.9
    assert proposal.promised_recall > 0.99

    # Without labels nothing shows a better one.
    assert tune(sample, recipe).threshold == recipe.match.threshold
