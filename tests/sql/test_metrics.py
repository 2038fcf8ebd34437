"""Pairs of cosine, Euclidean and weighted Jaccard profiles in SQL and Python, against brute force over words."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from nearsim_db import Document, Index
from nearsim_db.records import Match
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.worker.worker import Worker
from tests.builders.selection import some
from tests.builders.sql_world import write_documents

BAG = ['fields=["body"]', "shingle.scheme=bag", "bands.count=40", "bands.rows=3", "match.min_shared_bands=2"]
RULES = {
    "cosine": ["sketch.family=hyperplane", "sketch.k=128", "match.threshold=0.8"],
    "euclidean": ["sketch.family=projection", "sketch.k=128", "match.threshold=3.5"],
    "weighted_jaccard": ["sketch.family=dart_minhash", "sketch.k=128", "match.threshold=0.5"],
}
EXACT = 1e-9

Row = dict[str, Any]


def normal(text: str) -> str:
    """A text as the recipes compare it."""
    return unicodedata.normalize("NFKC", text).casefold()


class Words:
    """Expected figures of the documents by doc_id, by brute force."""

    def __init__(self, metric: str, profile: Profile, texts: dict[int, str]) -> None:
        self.metric, self.profile, self.texts = metric, profile, texts
        self.counts = {one: Counter(re.findall(r"\w+", normal(text))) for one, text in texts.items()}
        self._encoder = Encoder(profile)
        sketches = self._encoder.encode(list(texts.values())).sketches
        self._sketches = dict(zip(texts, sketches, strict=True))

    def distance(self, one: int, other: int) -> float:
        """The Euclidean distance of the counts."""
        a, b = self.counts[one], self.counts[other]
        return math.dist([a[word] for word in {*a, *b}], [b[word] for word in {*a, *b}])

    def similarity(self, one: int, other: int) -> float:
        """The similarity, in the scale of the metric."""
        a, b = self.counts[one], self.counts[other]
        if self.metric == "euclidean":
            return 1 / (1 + self.distance(one, other))
        if self.metric == "cosine":
            product = sum(a[word] * b[word] for word in a)
            return product / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
        return (a & b).total() / (a | b).total()

    def are_twins(self, one: int, other: int) -> bool:
        """Whether the features are the same."""
        return self.counts[one] == self.counts[other]

    def estimate(self, one: int, other: int) -> float:
        """The estimate from the sketches."""
        family = self._encoder.family
        return float(family.estimate(self._sketches[one][None], self._sketches[other][None])[0])

    def shared(self, one: int, other: int) -> int:
        """How many bands the sketches share."""
        return int(self._encoder.shared_bands(self._sketches[one][None], self._sketches[other][None])[0])

    def is_pair(self, one: int, other: int) -> bool:
        """Whether the recipe makes a pair of them."""
        match = self.profile.recipe.match
        if self.metric == "euclidean":
            is_alike = self.distance(one, other) <= match.threshold + EXACT
        else:
            is_alike = self.similarity(one, other) >= match.threshold - EXACT
        return is_alike and self.shared(one, other) >= match.min_shared_bands

    def reported(self, one: int, other: int) -> tuple[object, ...]:
        """similarity, intersection, union, distance, shared bands and estimate of a pair."""
        distance = pytest.approx(self.distance(one, other)) if self.metric == "euclidean" else None
        similarity, estimate = self.similarity(one, other), self.estimate(one, other)
        shared = self.shared(one, other)
        return pytest.approx(similarity), None, None, distance, shared, pytest.approx(estimate, abs=1e-6)


def ask(index: Index, command: str, *values: object) -> list[Row]:
    """The rows of a query, by column."""
    with index.database.engine.begin() as connection:
        cursor = connection.execute(command.encode(), values)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor]


def figures(row: Row) -> tuple[object, ...]:
    """The figures of `Words.reported` from a row of SQL."""
    names = "similarity", "intersection_size", "union_size", "distance", "shared_bands", "estimate"
    return tuple(row[name] for name in names)


@pytest.fixture(params=some([*RULES], "every metric"))
def known(request: pytest.FixtureRequest, database_url: str) -> Iterator[tuple[Index, Words]]:
    """An indexed collection, and its figures by brute force."""
    with Index.connect(database_url) as index:
        profile = index.create_profile("default", override(Recipe(), [*BAG, *RULES[request.param]]))
        documents = [one for one in write_documents(3) if (one.body or "").strip(" ?!")]
        index.add(documents)
        texts = {index.get(one.external_id)["doc_id"]: one.body or "" for one in documents}
        yield index, Words(request.param, profile, dict(sorted(texts.items())))


@pytest.mark.slow("several builds")
def test_results_are_in_the_profiles_metric(known: tuple[Index, Words], database_url: str) -> None:
    index, words = known
    expected = {pair for pair in combinations(words.texts, 2) if words.is_pair(*pair)}
    assert {words.are_twins(*pair) for pair in expected} == {True, False}
    assert len(expected) < math.comb(len(words.texts), 2)
    check_pairs(index, words, expected)
    check_similar(index, words, expected)
    check_why(index, words, expected)
    check_result_set(index, words)
    check_probe(index, words, database_url)


def check_pairs(index: Index, words: Words, expected: set[tuple[int, int]]) -> None:
    """The view and the stream."""
    rows = {(row["left_id"], row["right_id"]): row for row in ask(index, "SELECT * FROM nearsim.pairs")}
    assert rows.keys() == expected
    names = {row["left_id"]: row["left_external_id"] for row in rows.values()}
    names |= {row["right_id"]: row["right_external_id"] for row in rows.values()}
    for pair, row in rows.items():
        assert figures(row) == words.reported(*pair)
        assert row["are_twins"] == words.are_twins(*pair)
    stream = {frozenset((one.left, one.right)): one for one in index.pairs()}
    assert stream.keys() == {frozenset(names[one] for one in pair) for pair in expected}
    for pair in expected:
        one = stream[frozenset(names[doc_id] for doc_id in pair)]
        said = one.similarity, one.intersection, one.union, one.distance, one.shared_bands, one.estimate
        assert said == words.reported(*pair)


def check_similar(index: Index, words: Words, expected: set[tuple[int, int]]) -> None:
    """similar_to by the recipe, for more similar ones, and for less."""
    for doc_id in list(words.texts)[::16]:
        others = [one for one in words.texts if one != doc_id]
        paired = {one for one in others if tuple(sorted((one, doc_id))) in expected}
        rows = ask(index, "SELECT * FROM nearsim.similar_to_by_doc_id(%s::bigint)", doc_id)
        assert {row["doc_id"] for row in rows} == paired and all(row["verified"] for row in rows)
        for row in rows:
            assert figures(row) == words.reported(doc_id, row["doc_id"])
        name = ask(index, "SELECT external_id FROM nearsim.document WHERE doc_id = %s", doc_id)[0][
            "external_id"
        ]
        by_name = {row["external_id"]: pytest.approx(row["similarity"]) for row in rows}
        assert {one.external_id: one.similarity for one in index.similar(name)} == by_name
        closer = ask(index, "SELECT * FROM nearsim.similar_to_by_doc_id(%s::bigint, 0.9)", doc_id)
        assert {row["doc_id"] for row in closer} == {
            one for one in paired if words.similarity(doc_id, one) >= 0.9
        }
        more = ask(index, "SELECT * FROM nearsim.similar_to_by_doc_id(%s::bigint, 0, 1)", doc_id)
        met = {one for one in others if words.shared(doc_id, one) and words.estimate(doc_id, one) >= 0}
        assert {row["doc_id"] for row in more} == met | paired
        for row in more:
            if not row["verified"]:
                assert row["similarity"] == pytest.approx(words.estimate(doc_id, row["doc_id"]))
                assert row["intersection_size"] is row["union_size"] is row["distance"] is None


def check_why(index: Index, words: Words, expected: set[tuple[int, int]]) -> None:
    """why and why_not of pairs, of twins and of other documents, in terms of the metric."""
    match, reasons = words.profile.recipe.match, set()
    for pair in list(combinations(words.texts, 2))[::31]:
        (why,) = ask(index, "SELECT * FROM nearsim.why_by_doc_id(%s::bigint, %s::bigint)", *pair)
        (why_not,) = ask(index, "SELECT * FROM nearsim.why_not_by_doc_id(%s::bigint, %s::bigint)", *pair)
        assert why["is_pair"] == why_not["is_pair"] == (pair in expected)
        assert why["threshold"] == why_not["threshold"] == match.threshold
        estimate = words.estimate(*pair)
        if pair in expected:
            assert figures(why) == words.reported(*pair)
        else:
            assert why["similarity"] is why["distance"] is why["union_size"] is None
        assert why["estimate"] == pytest.approx(estimate, abs=1e-6)
        chance = words.profile.match_probability(estimate)
        assert why_not["probability"] == pytest.approx(chance, abs=1e-9)
        kind = {"euclidean": "distance", "cosine": "cosine", "weighted_jaccard": "similarity"}[words.metric]
        assert kind in why_not["reason"] or re.search("twins|bucket|no position", why_not["reason"])
        reasons.add(re.split("[0-9]", why_not["reason"])[0])
    assert len(reasons) > 1


def test_estimated_pairs_have_the_distance_of_their_estimate(database_url: str) -> None:
    rules = [*BAG, *RULES["euclidean"], "match.verify=estimate"]
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), rules))
        index.add(write_documents(3))
        rows = ask(index, "SELECT similarity, distance, estimate FROM nearsim.pairs WHERE NOT are_twins")
        for row in rows:
            assert row["similarity"] == pytest.approx(row["estimate"], abs=1e-6)
            assert row["distance"] == pytest.approx(1 / row["similarity"] - 1)
        distances = {row["distance"] for row in rows}
        assert len(distances) > 1 and max(distances) <= 3.5
        assert {one.distance for one in index.pairs()} == distances | {0}


def test_vector_profiles_ignore_texts(database_url: str) -> None:
    rules = [
        "sketch.family=projection",
        "sketch.input=vector",
        "match.threshold=0.5",
        "bands.count=40",
        "bands.rows=2",
    ]
    vectors = {"a": [0.5, 0.0, -1.25, 3.0], "b": [0.5, 0.25, -1.25, 3.0], "c": [9.0, 9.0, 9.0, 9.0]}
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), rules))
        index.add(Document(name, body=f"{name} of 17", vector=vector) for name, vector in vectors.items())
        index.add([Document("twin", body="number 18", vector=[*vectors["a"], 0.0])])
        rows = ask(index, "SELECT * FROM nearsim.pairs ORDER BY left_id, right_id")
        assert [(row["left_external_id"], row["right_external_id"], row["distance"]) for row in rows] == [
            ("a", "b", 0.25), ("a", "twin", 0), ("b", "twin", 0.25),
        ]  # fmt: skip
        assert {row["numbers_differ"] for row in rows} == {False}
        (why,) = ask(index, "SELECT * FROM nearsim.why('a', 'twin')")
        assert (why["are_twins"], why["distance"], why["estimate"]) == (True, 0, 1)
        assert (why["numbers_differ"], why["numbers_only_left"], why["numbers_only_right"]) == (False, [], [])
        (why_not,) = ask(index, "SELECT * FROM nearsim.why_not('a', 'c')")
        assert "above the threshold of 0.5" in why_not["reason"]


def check_result_set(index: Index, words: Words) -> None:
    """dedupe keeps what has no pair among those kept before it."""
    doc_ids = list(words.texts)
    rows = ask(index, "SELECT * FROM nearsim.dedupe(%s)", doc_ids)
    kept: list[int] = []
    for row in rows:
        alike = [one for one in kept if words.is_pair(one, row["doc_id"])]
        assert row["keep"] == (not alike)
        if alike:
            assert row["duplicate_of"] in alike
            most = max(words.similarity(one, row["doc_id"]) for one in alike)
            assert row["similarity"] == pytest.approx(most)
        else:
            kept.append(row["doc_id"])
    assert 1 < len(kept) < len(doc_ids)


def check_probe(index: Index, words: Words, database_url: str) -> None:
    """A lookup by text from SQL has the results of Python."""
    doc_id = next(
        a for a, b in combinations(words.texts, 2) if words.is_pair(a, b) and not words.are_twins(a, b)
    )
    body = words.texts[doc_id]
    matches = index.similar_to_text(body)
    asked = ask(index, "SELECT nearsim.ask(%s, deadline => '1 hour') AS probe_id", body)[0]["probe_id"]
    Worker(database_url).drain()
    rows = ask(index, "SELECT * FROM nearsim.similar_to_text(%s)", asked)
    assert {row["external_id"]: figures(row) for row in rows} == {
        one.external_id: (*scores_of(one), one.shared_bands, pytest.approx(one.estimate)) for one in matches
    }
    own = next(row for row in rows if row["doc_id"] == doc_id)
    assert figures(own)[:4] == (1, None, None, 0 if words.metric == "euclidean" else None)
    assert len(rows) > 1


def scores_of(match: Match) -> tuple[object, ...]:
    """The figures of a match that a metric gives."""
    return match.similarity, match.intersection, match.union, match.distance
