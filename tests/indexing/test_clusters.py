"""Which documents a cluster contains, and which one survives."""

from datetime import UTC, datetime
from itertools import combinations

import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override

TEXT = "the harbour master said that the old ferry would sail again before the end of the week"


def on(day: int) -> datetime:
    """A day in May 2026."""
    return datetime(2026, 5, day, tzinfo=UTC)


COPIES = [
    Document("second", body=TEXT, source="Herald", published_at=on(2)),
    Document("first", body=TEXT + " or so", source="Post", published_at=on(1)),
    Document("third", body="And " + TEXT, source="Wire", published_at=on(3)),
    Document("undated", body="Yes, " + TEXT + " or so, he added", source=None),
    Document("elsewhere", body="nothing to do with boats or harbours whatsoever in this one"),
]


@pytest.mark.parametrize(
    "keep, survivor",
    [
        ("earliest", "first"),
        ("latest", "undated"),
        ("longest", "undated"),
        ("source:Wire,Herald", "third"),
        ("source:Gazette,Herald", "second"),
        ("source:Gazette", "first"),
    ],
)
def test_keep_policy(database_url: str, keep: str, survivor: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), [f"cluster.keep={keep}", "match.threshold=0.5"]))
        index.add(COPIES)
        (cluster,) = index.clusters()
        assert cluster.survivor == survivor
        assert set(cluster.members) == {"first", "second", "third", "undated"}


def test_survivor_changes_with_its_document(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.add(COPIES[:3])
        assert [cluster.survivor for cluster in index.clusters()] == ["first"]
        index.delete(["first"])
        assert [cluster.survivor for cluster in index.clusters()] == ["second"]
        index.delete(["second"])
        assert list(index.clusters()) == []


def template(name: str, amount: int, wording: str = "quarterly") -> Document:
    """A notice made from a template."""
    return Document(
        name,
        body=f"the board of the company declared a {wording} dividend of {amount} cents payable on the first of June",
    )


def test_pairs_with_different_numbers_can_be_excluded_from_clusters(database_url: str) -> None:
    notices = [
        template("a10", 10),
        template("b10", 10),
        template("c10", 10, "regular quarterly"),
        template("d25", 25),
        template("e25", 25, "regular quarterly"),
    ]
    with Index.connect(database_url, profile="all") as index:
        rules = ["match.threshold=0.5", "shingle.k=2"]
        index.create_profile("all", override(Recipe(), rules))
        index.create_profile("apart", override(Recipe(), [*rules, "cluster.numbers_differ=keep-apart"]))
        index.add(notices)
        assert [len(cluster.members) for cluster in index.clusters()] == [5]
        assert len(list(index.pairs())) == 10
    with Index.connect(database_url, profile="apart") as index:
        assert len(list(index.pairs())) == 10
        assert {cluster.members for cluster in index.clusters()} == {("a10", "b10", "c10"), ("d25", "e25")}


def test_twins_with_different_numbers_are_excluded_too(database_url: str) -> None:
    rules = ["shingle.scheme=bag", "cluster.numbers_differ=keep-apart"]
    texts = {
        "once": "add 5 to it and stir",
        "twice": "add 5 5 to it and stir",
        "again": "and stir add 5 to it",
    }
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), rules))
        index.add(Document(name, body=text) for name, text in texts.items())
        assert index.stats()["twins"] == 2
        assert {frozenset((pair.left, pair.right)) for pair in index.pairs()} == {
            frozenset(pair) for pair in combinations(texts, 2)
        }
        assert [set(cluster.members) for cluster in index.clusters()] == [{"once", "again"}]


def test_verification_by_estimate(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), ["match.verify=estimate", "match.threshold=0.5"]))
        index.add(COPIES)
        found = list(index.pairs())
        assert found
        for pair in found:
            assert pair.intersection is not None and pair.union == 128
            assert pair.similarity == pair.intersection / 128
            assert pair.similarity == pytest.approx(pair.estimate, abs=1e-6)
            assert pair.similarity >= 0.5


def test_candidates_must_share_enough_bands(database_url: str) -> None:
    with Index.connect(database_url, profile="one") as index:
        given = ["bands.count=16", "bands.rows=4", "match.threshold=0.3"]
        index.create_profile("one", override(Recipe(), given))
        index.create_profile("eight", override(Recipe(), [*given, "match.min_shared_bands=8"]))
        index.add(COPIES)
        loose = {(pair.left, pair.right): pair.shared_bands for pair in index.pairs()}
    with Index.connect(database_url, profile="eight") as index:
        strict = {(pair.left, pair.right): pair.shared_bands for pair in index.pairs()}
    assert strict == {pair: shared for pair, shared in loose.items() if shared >= 8}
    assert 0 < len(strict) < len(loose)


def test_texts_are_matched_without_being_stored(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.add(COPIES)
        found = index.similar_to_text("And " + TEXT)
        assert found[0].external_id == "third"
        assert found[0].similarity == 1.0
        by_pairs = {match.external_id: match.similarity for match in index.similar("third")}
        assert {match.external_id: match.similarity for match in found[1:]} == by_pairs
        assert (
            index.similar_to_text(" ") == [] == index.similar_to_text("something else entirely, unknown here")
        )
        assert index.stats()["documents"] == 5
