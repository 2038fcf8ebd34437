"""The corpus generators guarantee the properties that benchmark figures rely on."""

from collections import Counter
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from benchmarks.corpus import Corpus, CorpusDocument, generator, write_corpus
from benchmarks.templates import with_family
from tests.builders.selection import some
from tests.builders.word_sets import shingles, similarity

pytestmark = pytest.mark.slow("a benchmark")

DOCUMENTS = 2_000


def whole(item: CorpusDocument) -> str:
    return f"{item.title}\n{item.text}"


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


def test_near_copies_resemble_their_original(documents: list[CorpusDocument]) -> None:
    originals = {item.cluster: item for item in documents if item.kind == "original"}
    copies = [item for item in documents if item.kind == "near"]
    scores = [similarity(whole(item), whole(originals[item.cluster])) for item in copies]
    assert {item.cluster for item in copies} == originals.keys() - {0}
    assert all(item.edits for item in copies)
    assert 0.5 < sum(score >= 0.7 for score in scores) / len(scores) < 0.9
    assert min(scores) < 0.6 and max(scores) == 1.0


@pytest.mark.slow("three corpora")
def test_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for name, seed in (("first", 5), ("again", 5), ("other", 6)):
        output, clusters = tmp_path / f"{name}.jsonl.gz", tmp_path / f"{name}.csv.gz"
        write_corpus(Corpus(300, seed).documents(), output, clusters)
        written.append((output.read_bytes(), clusters.read_bytes()))
    assert written[0] == written[1]
    assert written[0] != written[2]


@pytest.mark.slow("builds a language each")
@pytest.mark.parametrize("seed", some([1, 2, 3], "every seed"))
def test_family_members_are_distinct_and_at_least_80_percent_similar(seed: int) -> None:
    corpus = Corpus(100, seed)
    mixed = list(with_family(corpus, 60, generator(np.random.SeedSequence([seed, 60]))))
    family = [item for item in mixed if item.external_id.startswith("t")]
    assert len(mixed) == 160 and len({item.external_id for item in mixed}) == 160
    assert len({shingles(one) for one in map(whole, family)}) == 60
    assert min(similarity(left, right) for left, right in combinations(map(whole, family), 2)) >= 0.8
    others = [item for item in mixed if item.kind == "single"]
    chosen = Random(seed).sample(others, 20)
    assert max(similarity(whole(family[0]), whole(other)) for other in chosen) < 0.1
