"""match.within and match.within_days: only pairs with equal values of fields, or close dates, as in nearsim dedupe."""

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import networkx
import pytest

from nearsim_db import Document, Index, dedupe
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import InputError, RecipeError
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run
from tests.builders.near_copies import edited, text

FIRST = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULES: dict[str, dict[str, Any]] = {
    "within": {"within": "patient"},
    "two fields": {"within": ["patient", "source"]},
    "days": {"within_days": 2},
    "within and days": {"within": "patient", "within_days": 2},
    "within and across": {"within": "patient", "across": "source"},
    "days and across": {"within_days": 2, "across": "source"},
}


def recipe(**match: Any) -> Recipe:
    """A recipe that misses no pair."""
    return from_mapping({"bands": {"count": 64, "rows": 2}, "match": {"threshold": 0.7, **match}})


def varied(rng: random.Random, document: Document) -> Document:
    """The document with other values of its fields."""
    patient, source = rng.choice(("p1", "p2", None)), rng.choice(("ward", "clinic"))
    date = rng.choice((None, FIRST + timedelta(hours=rng.randrange(24 * 6))))
    attributes = {} if patient is None else {"patient": patient}
    return replace(document, source=source, published_at=date, attributes=attributes)


def make_documents(rng: random.Random, families: int = 6) -> dict[str, Document]:
    """Families of copies, some of them equal."""
    made: dict[str, Document] = {}
    for family in range(families):
        original = text(rng)
        bodies = [original, original, original, *(edited(rng, original, rng.randint(1, 4)) for _ in range(4))]
        for copy, body in enumerate([*bodies, bodies[-1]]):
            name = f"{family}-{copy}"
            made[name] = varied(rng, Document(name, body=body))
    return made


def may_pair(match: Mapping[str, Any], one: Document, other: Document) -> bool:
    """The rules in plain Python."""

    def value(document: Document, field: str) -> object:
        return document.source if field == "source" else document.attributes.get(field)

    within = match.get("within", [])
    fields = [within] if isinstance(within, str) else within
    if any(value(one, field) != value(other, field) for field in fields):
        return False
    if (days := match.get("within_days")) is not None:
        left, right = one.published_at, other.published_at
        if left is None or right is None:
            if left is not right:
                return False
        elif abs(left - right) > timedelta(days=days):
            return False
    across = match.get("across")
    return across is None or value(one, across) != value(other, across)


def expected(documents: Mapping[str, Document], match: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """The pairs by brute force."""
    sets = {}
    for name, one in documents.items():
        words = (one.body or "").split()
        sets[name] = set(zip(words, words[1:], words[2:], strict=False))
    alike = {
        (a, b): len(sets[a] & sets[b]) / len(sets[a] | sets[b])
        for a, b in combinations(sorted(documents), 2)
        if may_pair(match, documents[a], documents[b])
    }
    return {pair: similarity for pair, similarity in alike.items() if similarity >= 0.7}


def check(index: Index, documents: Mapping[str, Document], match: Mapping[str, Any]) -> None:
    pairs = expected(documents, match)
    found = {(min(one.left, one.right), max(one.left, one.right)): one.similarity for one in index.pairs()}
    assert found == pytest.approx(pairs)
    parts = networkx.connected_components(networkx.Graph(pairs.keys()))
    assert {frozenset(one.members) for one in index.clusters()} == {frozenset(part) for part in parts}
    assert verify_index(index.database, index.collection, sample=None).found.faults == ()


@pytest.mark.parametrize("rules", RULES)
def test_an_index_has_the_pairs_that_fields_allow(database_url: str, rules: str) -> None:
    documents = make_documents(random.Random(1), 3)
    names = list(documents)
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(**RULES[rules]))
        index.add([documents[one] for one in names[:12]])  # built, then extended by the queue
        index.add([documents[one] for one in names[12:]])
        check(index, documents, RULES[rules])


@pytest.mark.slow("several builds")
@pytest.mark.parametrize("rules", RULES)
def test_pairs_and_clusters_follow_edits_of_the_fields(database_url: str, rules: str) -> None:
    rng = random.Random(2)
    documents = make_documents(rng)
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(**RULES[rules]))
        index.add(documents.values())
        for _ in range(3):
            for one in rng.sample(list(documents), 12):
                documents[one] = varied(rng, documents[one])
            index.add(documents.values())
            check(index, documents, RULES[rules])


def test_an_edit_of_the_field_ends_a_pair(database_url: str, connection: Connection) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(within="patient"))
        index.add([Document(one, body=text(random.Random(3)), attributes={"patient": "p1"}) for one in "ab"])
        assert len(list(index.pairs())) == 1
        run(
            connection,
            """UPDATE nearsim.document SET attributes = '{"patient": "p2"}' WHERE external_id = 'b'""",
        )
        connection.commit()
        index.build()
        assert list(index.pairs()) == []


@pytest.mark.parametrize("rules", RULES)
def test_dedupe_finds_as_many_pairs(rules: str) -> None:
    documents = make_documents(random.Random(4))
    found = dedupe(list(documents.values()), recipe=recipe(**RULES[rules]))
    assert found.pairs == len(expected(documents, RULES[rules]))


@pytest.mark.parametrize("rules", RULES)
def test_dedupe_keeps_one_of_each_cluster(rules: str) -> None:
    documents = make_documents(random.Random(5))
    kept = dedupe(list(documents.values()), recipe=recipe(**RULES[rules])).kept
    pairs = networkx.Graph(expected(documents, RULES[rules]).keys())
    clusters = list(networkx.connected_components(pairs))
    assert len(kept) == len(documents) - len(pairs) + len(clusters)


@pytest.mark.parametrize(
    "family", ["minhash", "bottom_k", "rare", "winnow", "dart_minhash", "hyperplane", "projection"]
)
def test_no_family_pairs_equal_texts_of_other_values(family: str) -> None:
    body = text(random.Random(6))
    rows = [Document(f"{one}{at}", body=body, attributes={"patient": one}) for one in "ab" for at in (1, 2)]
    match = {"within": "patient", **({"threshold": 0.5} if family != "projection" else {"threshold": 3.0})}
    chosen = from_mapping({"sketch": {"family": family}, "match": match})
    assert dedupe(rows, recipe=chosen).pairs == 2


def test_a_template_of_many_values_fills_no_bucket(database_url: str) -> None:
    body = text(random.Random(7))
    with Index.connect(database_url) as index:
        index.create_profile("default", from_mapping({"match": {"within": "patient", "bucket_limit": 4}}))
        index.add(
            Document(f"{patient}-{at}", body=f"{body} {at}", attributes={"patient": patient})
            for patient in range(30)
            for at in range(3)
        )
        assert index.stats("default")["links_left_out"] == 0
        assert len(list(index.pairs())) == 90


def test_answers_leave_out_documents_of_other_values(database_url: str, connection: Connection) -> None:
    body = text(random.Random(8))
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(within="patient"))
        index.add(
            [Document(f"{one}-{at}", body=body, attributes={"patient": one}) for one in "ab" for at in (1, 2)]
        )
        new = Document("new", body=body, attributes={"patient": "a"})
        assert [one.external_id for one in index.check(new)] == ["a-1", "a-2"]
        assert [one.external_id for one in index.similar("b-1")] == ["b-2"]
    similar = "SELECT external_id FROM nearsim.similar_to('a-1', 0.0, 1)"
    assert run(connection, similar).values() == ["a-2"]


def test_a_text_without_a_date_is_looked_up_among_all_dates(database_url: str) -> None:
    body = text(random.Random(9))
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(within_days=2))
        index.add([Document(f"{day}", body=body, published_at=FIRST + timedelta(days=day)) for day in (0, 9)])
        assert [one.external_id for one in index.check(Document("", body=body))] == ["0", "9"]
        assert [one.external_id for one in index.check(Document("new", body=body, published_at=FIRST))] == [
            "0"
        ]


REASONS = {
    "within": "their values of patient differ, within which pairs count (match.within)",
    "two fields": "their values of patient, source differ, within which pairs count (match.within)",
    "days": "their dates are more than 2 days apart (match.within_days)",
    "days and across": "their dates are more than 2 days apart (match.within_days)",
}


@pytest.mark.parametrize("rules", REASONS)
def test_why_not_names_the_field(database_url: str, connection: Connection, rules: str) -> None:
    body = text(random.Random(10))
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(**RULES[rules]))
        index.add(
            Document(one, body=body, source=one, published_at=FIRST + days, attributes={"patient": one})
            for one, days in (("a", timedelta()), ("b", timedelta(days=3)))
        )
        explained = index.explain("a", "b").reasons[0].text
    why_not = run(connection, "SELECT reason FROM nearsim.why_not('a', 'b')").value()
    assert explained == why_not == REASONS[rules]


def test_a_field_that_no_document_has_is_refused(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(within="patient"))
        with pytest.raises(
            InputError, match=r"match\.within is 'patient', but no document has a value of it"
        ):
            index.add([Document("a", body="one two three", source="ward")])


def test_a_field_that_no_record_has_is_refused() -> None:
    with pytest.raises(InputError, match="no record has 'patient', within which pairs count"):
        dedupe(["one two three"], within="patient")


def test_all_three_rules_are_refused() -> None:
    with pytest.raises(RecipeError, match="set at most two of them"):
        recipe(within="patient", within_days=1, across="source")


def test_a_list_of_one_field_is_the_field() -> None:
    assert recipe(within=["patient"]) == recipe(within="patient")


@pytest.mark.parametrize("minutes", [0, 1])
def test_dates_are_compared_to_the_minute(minutes: int) -> None:
    body = text(random.Random(11))
    dates = (FIRST, FIRST + timedelta(days=2, minutes=minutes))
    rows = [Document(str(at), body=body, published_at=date) for at, date in enumerate(dates)]
    assert dedupe(rows, recipe=recipe(within_days=2)).pairs == 1 - minutes
