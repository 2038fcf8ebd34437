"""Which documents a cluster contains, and which one survives."""

import json
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.records import Keep
from nearsim_db.similarity.recipe import Recipe, override, parse

TEXT = "the harbour master said that the old ferry would sail again before the end of the week"


def on(day: int) -> datetime:
    """A day in May 2026."""
    return datetime(2026, 5, day, tzinfo=UTC)


COPIES = [
    Document("second", body=TEXT, source="Herald", published_at=on(2), attributes={"lang": "en"}),
    Document(
        "first",
        "Boats",
        TEXT + " or so",
        source="Post",
        published_at=on(1),
        attributes={"meta": {"doi": " "}},
    ),
    Document(
        "third",
        body="And " + TEXT,
        source="Wire",
        published_at=on(3),
        attributes={"meta": {"doi": 7}, "lang": ["en"]},
    ),
    Document(
        "undated", body="Yes, " + TEXT + " or so, he added", attributes={"meta": {"doi": []}, "lang": None}
    ),
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
        ("has:published_at", "first"),
        ("has:source", "first"),
        ('["has:source", "latest"]', "third"),
        ('["has:meta.doi", "longest"]', "third"),
        ('["has:lang", "has:meta.doi", "source:Herald"]', "third"),
        ('["has:lang", "source:Herald,Post"]', "second"),
        ('["has:text", "has:title", "latest"]', "first"),
    ],
)
def test_keep_policy(database_url: str, keep: str, survivor: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), [f"cluster.keep={keep}", "match.threshold=0.5"]))
        index.add(COPIES)
        (cluster,) = index.clusters()
        assert cluster.survivor == survivor
        assert set(cluster.members) == {"first", "second", "third", "undated"}


def test_no_document_of_a_cluster_is_kept_on_request(database_url: str, tmp_path: Path) -> None:
    everything = {"first", "second", "third", "undated"}
    with Index.connect(database_url) as index, psycopg.connect(database_url, autocommit=True) as connection:

        def kept() -> tuple[str | None, set[str], set[str]]:
            (cluster,) = index.clusters()
            return cluster.survivor, exported("survivors"), exported("duplicates")

        def exported(keep: Keep) -> set[str]:
            index.export(tmp_path / "out.jsonl", keep=keep, columns=["id"])
            return {json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()}

        index.create_profile("default", parse('cluster.keep = "none"\nmatch.threshold = 0.5'))
        index.add(COPIES[:2])
        index.add(COPIES[2:])
        assert kept() == (None, {"elsewhere"}, everything)
        views = "SELECT external_id, survivor_id, copy_of FROM nearsim.duplicates ORDER BY 1"
        assert connection.execute(views).fetchall() == [(name, None, None) for name in sorted(everything)]
        combined = "SELECT DISTINCT is_survivor, survivor_id FROM nearsim.combined_clusters('default')"
        assert connection.execute(combined).fetchall() == [(False, None)]
        assert {member.is_survivor for member in index.cluster("first")} == {False}

        # A person's choice comes before the policy.
        index.keep("third", "it has the figures")
        assert kept() == ("third", {"third", "elsewhere"}, everything - {"third"})
        copies = connection.execute(
            "SELECT external_id, copy_of FROM nearsim.duplicates ORDER BY 1"
        ).fetchall()
        assert copies == [(name, "third") for name in sorted(everything - {"third"})]
        index.keep("third", "it has not", undo=True)
        assert kept() == (None, {"elsewhere"}, everything)


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
