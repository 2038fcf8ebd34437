"""Weights by document frequencies: counted by the build, kept by its generation, the same in files and in an index."""

import math
import random
from collections import Counter
from itertools import combinations

import pytest

from nearsim_db import Deduper, Document, Index, dedupe
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, override

NAMES = [f"name{number}" for number in range(150)]
STREETS = ["street", "avenue", "north", "center", "school"]
THRESHOLD = 0.6
RARE = override(
    Recipe(),
    [*("shingle.scheme=bag", "shingle.k=1", "sketch.family=rare"), f"match.threshold={THRESHOLD}"],
)
HYPERPLANE = override(
    Recipe(),
    [
        *("shingle.scheme=bag", "shingle.k=1", "sketch.family=hyperplane", "sketch.weights=idf"),
        *("sketch.k=512", f"match.threshold={THRESHOLD}", "bands.recall=0.9999"),
    ],
)

Pairs = dict[tuple[str, str], float]


def records(count: int, seed: int) -> dict[str, str]:
    """Records of three names and some frequent words, every third of which repeats the one before with changes."""
    rng = random.Random(seed)
    found: dict[str, str] = {}
    names: list[str] = []
    for at in range(count):
        if at % 3 or not names:
            names = rng.sample(NAMES, 3)
        words = [*names[: rng.choice([2, 3])], *rng.sample(STREETS, 3)]
        rng.shuffle(words)
        found[f"r{seed}-{at}"] = " ".join(words)
    return found


def counted(texts: dict[str, str]) -> tuple[Counter[str], int]:
    distinct = {frozenset(text.split()) for text in texts.values()}
    return Counter(word for one in distinct for word in one), len(distinct)


def true_pairs(texts: dict[str, str], counts: Counter[str], documents: int) -> Pairs:
    """The pairs from THRESHOLD on by the cosine of ln(1 + n / df), of equal and other texts."""

    def squares(words: set[str]) -> float:
        return sum(math.log(1 + documents / max(counts[word], 1)) ** 2 for word in words)

    sets = {name: set(text.split()) for name, text in texts.items()}
    cosines = {
        (one, other): squares(sets[one] & sets[other]) / math.sqrt(squares(sets[one]) * squares(sets[other]))
        for one, other in combinations(sorted(sets), 2)
    }
    return {pair: cosine for pair, cosine in cosines.items() if cosine >= THRESHOLD}


def stored_pairs(index: Index) -> Pairs:
    return {(min(one.left, one.right), max(one.left, one.right)): one.similarity for one in index.pairs()}


def add(index: Index, texts: dict[str, str]) -> None:
    index.add(Document(name, None, text) for name, text in texts.items())


@pytest.mark.usefixtures("either_tables")
@pytest.mark.parametrize("recipe", [RARE, HYPERPLANE], ids=["rare", "hyperplane"])
def test_an_index_weights_all_documents_by_the_counts_of_its_build(index: Index, recipe: Recipe) -> None:
    first, later = records(120, 1), records(60, 2)
    index.create_profile("default", recipe)
    add(index, first)
    counts, documents = counted(first)
    assert index.stats()["frequencies_counted_in"] == documents
    expected = true_pairs(first, counts, documents)
    assert len(expected) > 30
    assert stored_pairs(index) == pytest.approx(expected, abs=1e-6)
    add(index, later)
    both = first | later
    expected = true_pairs(both, counts, documents)
    assert stored_pairs(index) == pytest.approx(expected, abs=1e-6)
    assert verify_index(index.database, sample=None).is_sound
    text = later["r2-0"]
    partners = {one.external_id for one in index.similar_to_text(text)}
    assert partners == {name for pair in expected if "r2-0" in pair for name in pair} | {"r2-0"}


def test_equal_texts_need_no_frequencies() -> None:
    rows = ["a b", "b a", "A  b", "c", "c"]
    assert dedupe(rows, exact=True, recipe=RARE).kept == (0, 1, 3)
    assert dedupe(rows, recipe=RARE).kept == (0, 3)


def test_result_sets_are_refused_as_keys_estimate_no_similarity(index: Index) -> None:
    texts = records(9, 6)
    index.create_profile("default", RARE)
    add(index, texts)
    with pytest.raises(RecipeError, match="do not estimate"):
        Deduper(index).dedupe_external(list(texts))


@pytest.mark.slow("several builds")
def test_a_reindexing_counts_again(index: Index) -> None:
    first, later = records(90, 3), records(300, 4)
    index.create_profile("default", RARE)
    add(index, first)
    add(index, later)
    both = first | later
    assert stored_pairs(index) == pytest.approx(true_pairs(both, *counted(first)), abs=1e-6)
    reindex = Reindex(index.database, "default")
    reindex.start()
    reindex.promote()
    expected = true_pairs(both, *counted(both))
    assert stored_pairs(index) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("recipe", [RARE, HYPERPLANE], ids=["rare", "hyperplane"])
def test_files_have_the_pairs_of_an_index(index: Index, recipe: Recipe) -> None:
    texts = records(150, 5)
    index.create_profile("default", recipe)
    add(index, texts)
    found = dedupe([{"id": name, "text": text} for name, text in texts.items()], recipe=recipe)
    assert found.pairs == len(stored_pairs(index)) == len(true_pairs(texts, *counted(texts)))
