"""match.across: only pairs whose values of a field differ count, whatever is written, as in nearsim dedupe --across."""

import random
from collections.abc import Mapping
from itertools import combinations

import networkx
import pytest

from nearsim_db import Document, Index, dedupe
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import InputError
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run
from tests.builders.near_copies import edited, text

SOURCES = ("wire", "post", None)


def recipe(across: str, **cluster: str) -> Recipe:
    """A recipe that misses no pair."""
    match = {"threshold": 0.7, "across": across}
    return from_mapping({"bands": {"count": 64, "rows": 2}, "match": match, "cluster": cluster})


def make_documents(seed: int, across: str) -> dict[str, Document]:
    """Families of copies, some of them equal, each document with a value of the field or none."""
    rng = random.Random(seed)
    made: dict[str, Document] = {}
    for family in range(10):
        original = text(rng)
        bodies = [original, original, *(edited(rng, original, rng.randint(1, 4)) for _ in range(3))]
        for copy, body in enumerate([*bodies, bodies[-1]]):
            made[f"{family}-{copy}"] = given(f"{family}-{copy}", body, across, rng.choice(SOURCES))
    return made


def given(name: str, body: str, across: str, value: str | None) -> Document:
    if across == "source":
        return Document(name, body=body, source=value)
    return Document(name, body=body, attributes={} if value is None else {"shop": {"name": value}})


def value_of(document: Document) -> object:
    shop = document.attributes.get("shop")
    return shop["name"] if isinstance(shop, Mapping) else document.source


def expected(documents: Mapping[str, Document]) -> dict[tuple[str, str], float]:
    """The pairs of different values by brute force."""
    sets = {}
    for name, one in documents.items():
        words = (one.body or "").split()
        sets[name] = set(zip(words, words[1:], words[2:], strict=False))
    alike = {
        (a, b): len(sets[a] & sets[b]) / len(sets[a] | sets[b])
        for a, b in combinations(sorted(documents), 2)
        if value_of(documents[a]) != value_of(documents[b])
    }
    return {pair: similarity for pair, similarity in alike.items() if similarity >= 0.7}


def check(index: Index, documents: Mapping[str, Document]) -> None:
    pairs = expected(documents)
    found = {(min(one.left, one.right), max(one.left, one.right)): one.similarity for one in index.pairs()}
    assert found == pytest.approx(pairs)
    parts = networkx.connected_components(networkx.Graph(pairs.keys()))
    assert {frozenset(one.members) for one in index.clusters()} == {frozenset(part) for part in parts}
    assert index.stats()["pairs"] == len(pairs)
    assert verify_index(index.database, index.collection, sample=None).found.faults == ()


@pytest.mark.slow("several builds")
@pytest.mark.parametrize("across", ["source", "shop.name"])
def test_pairs_and_clusters_follow_edits_of_the_field(database_url: str, across: str) -> None:
    rng = random.Random(1)
    documents = make_documents(1, across)
    names = list(documents)
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(across))
        index.add([documents[one] for one in names[:40]])  # built, then extended by the queue
        index.add([documents[one] for one in names[40:]])
        check(index, documents)
        for _ in range(2):
            for one in rng.sample(names, 12):
                body = documents[one].body or ""
                documents[one] = given(one, body, across, rng.choice(SOURCES))
            gone = rng.choice(names)
            del documents[gone]
            names.remove(gone)
            index.delete([gone])
            index.add([documents[one] for one in names])
            check(index, documents)


def test_answers_leave_out_documents_of_the_same_value(database_url: str, connection: Connection) -> None:
    body = text(random.Random(2))
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe("source"))
        index.add([Document(f"{one}-{at}", body=body, source=one) for one in ("a", "b") for at in (1, 2)])
        assert [one.external_id for one in index.check(Document("new", body=body, source="a"))] == [
            "b-1",
            "b-2",
        ]
        assert len(list(index.check(Document("new", body=body, source="c")))) == 4
        assert [one.external_id for one in index.similar("a-1")] == ["b-1", "b-2"]
        reasons = {one: index.why("a-1", one).reasons[0].text for one in ("a-2", "b-1")}
    similar = "SELECT external_id FROM nearsim.similar_to('a-1', 0.0, 1)"
    assert run(connection, similar).values() == ["b-1", "b-2"]
    assert reasons["a-2"] == "their values of source are equal, across which pairs count (match.across)"
    assert reasons["b-1"].startswith("they are a pair")


def test_a_field_that_no_document_has_is_refused(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe("shop"))
        with pytest.raises(InputError, match=r"match\.across is 'shop'"):
            index.add([Document("a", body="one two three", source="wire")])


@pytest.mark.slow("several builds")
@pytest.mark.parametrize("numbers", ["link", "keep-apart"])
def test_dedupe_keeps_the_same_documents(database_url: str, numbers: str) -> None:
    documents = make_documents(3, "source")
    chosen = recipe("source", numbers_differ=numbers)
    with Index.connect(database_url) as index:
        index.create_profile("default", chosen)
        index.add(documents.values())
        removed = {one for cluster in index.clusters() for one in cluster.members if one != cluster.survivor}
    names = list(documents)
    kept = {names[row] for row in dedupe(list(documents.values()), recipe=chosen).kept}
    assert kept == set(names) - removed
