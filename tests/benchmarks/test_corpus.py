"""The corpus generators guarantee the properties that benchmark figures rely on."""

import csv
import gzip
import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np
import pytest

from benchmarks.background import describe
from benchmarks.corpus import Corpus, CorpusDocument, generator, write_corpus
from benchmarks.edits import Editor, Story
from benchmarks.language import Language
from benchmarks.plan import Shares, make_plan
from benchmarks.repeated import repeated
from benchmarks.templates import least_similarity, with_family
from tests.builders.selection import some

pytestmark = pytest.mark.slow("a benchmark")

DOCUMENTS = 2_000


def shingles(title: str, text: str) -> frozenset[tuple[str, ...]]:
    """Word 3-shingles, written apart from the benchmarks' own."""
    words = (title + "\n" + text).lower().split()
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def similarity(left: CorpusDocument, right: CorpusDocument) -> float:
    one, other = shingles(left.title, left.text), shingles(right.title, right.text)
    return len(one & other) / len(one | other)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(DOCUMENTS, seed=3)


@pytest.fixture(scope="module")
def documents(corpus: Corpus) -> list[CorpusDocument]:
    return list(corpus.documents())


def test_shares_are_as_configured(documents: list[CorpusDocument]) -> None:
    kinds = Counter(document.kind for document in documents)
    assert len(documents) == DOCUMENTS
    assert kinds["near"] == DOCUMENTS // 4
    assert kinds["exact"] == DOCUMENTS // 50 - 1  # and their original
    assert kinds["block"] == DOCUMENTS // 100
    assert kinds["tiny"] == DOCUMENTS // 200


def test_ids_are_distinct_and_shuffled(documents: list[CorpusDocument]) -> None:
    numbers = [int(document.external_id[1:]) for document in documents]
    assert sorted(numbers) == list(range(DOCUMENTS))
    assert numbers != sorted(numbers)


def test_mean_length_is_near_the_requested_one(documents: list[CorpusDocument]) -> None:
    assert 185 < fmean(len(item.text.split()) for item in documents if item.kind == "single") < 215


def test_exact_copies_are_identical(documents: list[CorpusDocument]) -> None:
    group = [item for item in documents if item.cluster == 0]
    assert len(group) == DOCUMENTS // 50
    assert len({(item.title, item.text) for item in group}) == 1


def test_near_copies_resemble_their_original(documents: list[CorpusDocument]) -> None:
    originals = {item.cluster: item for item in documents if item.kind == "original"}
    copies = [item for item in documents if item.kind == "near"]
    scores = [similarity(item, originals[item.cluster]) for item in copies]
    assert {item.cluster for item in copies} == originals.keys() - {0}
    assert all(item.edits for item in copies)
    assert 0.5 < sum(score >= 0.7 for score in scores) / len(scores) < 0.9
    assert min(scores) < 0.6 and max(scores) == 1.0


def test_block_carriers_share_a_long_passage(documents: list[CorpusDocument]) -> None:
    carriers = [shingles("", item.text) for item in documents if item.kind == "block"]
    assert len(frozenset.intersection(*carriers)) > 200


def test_unrelated_documents_overlap_as_newswire_does(documents: list[CorpusDocument]) -> None:
    sets = [
        frozenset(" ".join(words) for words in shingles(item.title, item.text))
        for item in documents
        if item.kind == "single"
    ]
    figures = describe(sets, pairs=20_000, seed=1)
    assert 0.2 < figures["share_found_elsewhere"] < 0.6
    assert 0.0003 < figures["pair_mean"] < 0.003
    assert 0.02 < figures["pair_quantile_0.9999"] < 0.3


def test_documents_can_be_read_twice(corpus: Corpus, documents: list[CorpusDocument]) -> None:
    assert list(corpus.documents()) == documents


@pytest.mark.slow("three corpora")
def test_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for name, seed in (("first", 5), ("again", 5), ("other", 6)):
        output, clusters = tmp_path / f"{name}.jsonl.gz", tmp_path / f"{name}.csv.gz"
        write_corpus(Corpus(300, seed).documents(), output, clusters)
        written.append((output.read_bytes(), clusters.read_bytes()))
    assert written[0] == written[1]
    assert written[0] != written[2]


def test_files_record_the_planted_clusters(tmp_path: Path, documents: list[CorpusDocument]) -> None:
    output, clusters = tmp_path / "corpus.jsonl.gz", tmp_path / "clusters.csv.gz"
    words = write_corpus(documents, output, clusters)
    with gzip.open(output, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    with gzip.open(clusters, "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(r["id"], r["title"], r["text"]) for r in records] == [
        (item.external_id, item.title, item.text) for item in documents
    ]
    planted = [(i.external_id, i.kind) for i in documents if i.kind != "single"]
    assert [(row["id"], row["kind"]) for row in rows] == planted
    assert words > 150 * DOCUMENTS


@pytest.mark.parametrize("documents", some([10, 0, 1, 99, 150], "every size"))
def test_small_corpora_have_the_requested_size(documents: int) -> None:
    plan = make_plan(documents, Shares(), generator(np.random.SeedSequence(1)))
    assert sorted(plan.name.tolist()) == list(range(documents))
    assert len(set(plan.cluster.tolist()) - {-1}) == plan.clusters
    assert sum(plan.role == 1) == plan.clusters
    assert len(list(Corpus(documents, seed=1).documents())) == documents


def test_impossible_shares_are_refused() -> None:
    with pytest.raises(ValueError, match="make them smaller"):
        make_plan(100, Shares(near=0.9, tiny=0.5), generator(np.random.SeedSequence(1)))


@pytest.fixture(scope="module")
def editor(corpus: Corpus) -> tuple[Editor, Language, Story]:
    rng = np.random.Generator(np.random.PCG64(9))
    language = corpus.language
    headline, body = language.sample(rng, np.array([8, 200]), np.array([0, 0]))
    return Editor(language, rng), language, Story(headline, body)


def test_every_kind_of_edit_occurs(editor: tuple[Editor, Language, Story]) -> None:
    rng = np.random.Generator(np.random.PCG64(2))
    names = {name for _ in range(200) for name in editor[0].republish(editor[2], rng)[2].split("+")}
    assert names == {
        "typography",
        "boilerplate",
        "numbers",
        "truncate",
        "reorder",
        "substitute-lightly",
        "substitute",
    }


def test_republishing_does_not_change_the_original(editor: tuple[Editor, Language, Story]) -> None:
    rng = np.random.Generator(np.random.PCG64(2))
    before = editor[0].render(editor[2])
    republished = [editor[0].republish(editor[2], rng)[:2] for _ in range(50)]
    assert editor[0].render(editor[2]) == before
    assert any(copy != before for copy in republished)


def test_similarity_bound_of_a_template() -> None:
    words = ["a", "b", "c", "d", "e", "f", "SLOT", "h", "i", "j", "k", "l", "m"]
    # 11 windows, of which 3 touch the slot: 8 / (8 + 2 * 3).
    assert least_similarity(words, [6]) == pytest.approx(8 / 14)
    assert least_similarity(["x"] * 10, []) == 1.0


@pytest.mark.slow("builds a language each")
@pytest.mark.parametrize("seed", some([1, 2, 3], "every seed"))
def test_family_members_are_distinct_and_at_least_80_percent_similar(seed: int) -> None:
    corpus = Corpus(100, seed)
    mixed = list(with_family(corpus, 60, generator(np.random.SeedSequence([seed, 60]))))
    family = [item for item in mixed if item.external_id.startswith("t")]
    assert len(mixed) == 160 and len({item.external_id for item in mixed}) == 160
    assert len({shingles(item.title, item.text) for item in family}) == 60
    assert min(similarity(left, right) for left, right in combinations(family, 2)) >= 0.8
    others = [item for item in mixed if item.kind == "single"]
    chosen = Random(seed).sample(others, 20)
    assert max(similarity(family[0], other) for other in chosen) < 0.1


@pytest.mark.slow("a large corpus")
def test_a_repeated_corpus_has_the_pairs_of_its_block_in_every_repetition() -> None:
    block = list(Corpus(60, seed=3, shares=Shares(near=0.5, exact=0, block=0, tiny=0)).documents())
    found = list(repeated(block, 150))
    assert len({one.external_id for one in found}) == len(found) == 150
    assert [(one.title, one.text) for one in found[:60]] == [(one.title, one.text) for one in block]
    for first in (60, 120):
        again = found[first : first + 60]
        expected = [similarity(*two) for two in combinations(block[: len(again)], 2)]
        assert [similarity(*two) for two in combinations(again, 2)] == expected
        assert max(similarity(one, two) for one in block for two in again) < 0.1
    assert list(repeated(block, 70)) == found[:70]
