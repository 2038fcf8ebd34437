"""The index against a brute-force model: after any writes it equals a fresh build."""

import random
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver.codec import to_bigint
from tests.builders.selection import some

WORDS = [f"w{number}" for number in range(40)]
THRESHOLD = 0.5


def shingles(text: str) -> frozenset[str]:
    """The recipe below in plain Python: pairs of words, or the whole text when it is one word."""
    words = text.split()
    return (
        frozenset(" ".join(words[at : at + 2]) for at in range(max(1, len(words) - 1)))
        if words
        else frozenset()
    )


def true_pairs(texts: dict[str, str]) -> dict[frozenset[str], tuple[int, int]]:
    """All pairs at or above the threshold with their intersection and union, by comparing everything."""
    sets = {name: shingles(text) for name, text in texts.items()}
    found = {}
    for a, b in combinations(texts, 2):
        common, union = len(sets[a] & sets[b]), len(sets[a] | sets[b])
        if union and common >= THRESHOLD * union:
            found[frozenset((a, b))] = (common, union)
    return found


def stored_pairs(index: Index) -> dict[frozenset[str], tuple[int, int]]:
    """The pairs of the index, checked for repetition and orientation."""
    found: dict[frozenset[str], tuple[int, int]] = {}
    for pair in index.pairs():
        key = frozenset((pair.left, pair.right))
        assert key not in found and len(key) == 2
        assert pair.intersection is not None and pair.union is not None
        assert pair.similarity == pair.intersection / pair.union
        found[key] = (pair.intersection, pair.union)
    return found


def clusters(index: Index) -> set[frozenset[str]]:
    """The clusters as sets of names; each has one survivor, which is a member."""
    found = list(index.clusters())
    assert all(cluster.survivor in cluster.members for cluster in found)
    assert len({cluster.cluster for cluster in found}) == len(found)
    return {frozenset(cluster.members) for cluster in found}


def components(pairs: dict[frozenset[str], tuple[int, int]]) -> set[frozenset[str]]:
    """The oracle: an independent graph library."""
    graph = nx.Graph([tuple(pair) for pair in pairs])
    return {frozenset(part) for part in nx.connected_components(graph)}


def family(rng: random.Random) -> str:
    """A short text, often one of few, so that twins, near-copies and full buckets abound."""
    base = rng.choice(["a b c d e f g h i j", "k l m n o p q r s t", "a b c d e u v w x y"]).split()
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        base[rng.randrange(len(base))] = rng.choice(WORDS)
    return " ".join(base[: rng.choice([10, 10, 10, 9, 3])]) if rng.random() > 0.05 else " "


def assert_bands_are_exact(index: Index) -> None:
    """The band table holds the keys of every head's sketch, each once, and nothing else."""
    context = index.serving().context
    expected = []
    with index.database.transaction() as connection:
        signatures = connection.execute(
            "SELECT doc_id, sketch FROM nearsim.signature WHERE head_id = doc_id ORDER BY doc_id"
        ).fetchall()
        for doc_id, sketch in signatures:
            row = np.frombuffer(sketch, np.uint32).reshape(1, -1)
            expected += [(key, doc_id) for key in to_bigint(context.encoder.matrix_keys(row))[0].tolist()]
        stored = connection.execute("SELECT bucket_hash, doc_id FROM nearsim.band").fetchall()
    assert sorted(stored) == sorted(expected)


@pytest.mark.parametrize("bucket_limit, seed", some(list(product([2, 0, 64], [1, 2])), "long histories"))
def test_random_histories_equal_a_fresh_build(
    database_url: str, major: int, bucket_limit: int, seed: int
) -> None:
    rng = random.Random(100 * major + seed)
    recipe = override(
        Recipe(), ["shingle.k=2", f"match.threshold={THRESHOLD}", f"match.bucket_limit={bucket_limit}"]
    )
    texts: dict[str, str] = {}
    with Index.connect(database_url, collection="model") as index:
        index.create_profile("default", recipe)
        for _ in range(6):
            batch = {f"d{rng.randrange(80)}": family(rng) for _ in range(25)}
            texts |= batch
            index.add(Document(name, body=text) for name, text in batch.items())
            gone = rng.sample(sorted(texts), 5)
            assert sorted(index.delete([*gone, "never there"])) == sorted(gone)
            texts = {name: text for name, text in texts.items() if name not in gone}
        stored, fresh = stored_pairs(index), fresh_build(database_url, recipe, texts)
        truth = true_pairs(texts)
        assert all(truth.get(pair) == counts for pair, counts in stored.items())
        assert set(fresh) <= set(stored)
        if bucket_limit != 2:
            assert set(fresh) == set(stored)
        assert clusters(index) == components(stored)
        assert_bands_are_exact(index)
        assert index.stats()["queued"] == 0


def fresh_build(
    database_url: str, recipe: Recipe, texts: dict[str, str]
) -> dict[frozenset[str], tuple[int, int]]:
    """The pairs of a bulk build of the same documents."""
    with Index.connect(database_url, collection="fresh") as index:
        index.create_profile("default", recipe)
        index.add(Document(name, body=text) for name, text in texts.items())
        found = stored_pairs(index)
        assert clusters(index) == components(found)
        return found


@pytest.mark.parametrize("gone", some([1, 2, 4], "every number"))
def test_anchors_deleted_together_are_replaced_and_searched(database_url: str, gone: int) -> None:
    """In a full bucket near-copies are linked only to anchors, until they become anchors themselves."""
    texts = [f"one two three four five six seven eight nine ten own{number}" for number in range(6)]
    with Index.connect(database_url) as index:
        index.create_profile(
            "default",
            override(Recipe(), ["match.bucket_limit=2", "bands.count=1", "bands.rows=1", "sketch.seed=2"]),
        )
        index.add(Document(f"d{number}", body=text) for number, text in enumerate(texts))
        assert len(stored_pairs(index)) == 9
        index.delete([f"d{number}" for number in range(gone)])
        left = range(gone, 6)
        expected = {
            frozenset((f"d{a}", f"d{b}")) for a, b in combinations(left, 2) if a in (left[0], left[1])
        }
        assert expected <= set(stored_pairs(index))
