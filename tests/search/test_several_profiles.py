"""Several profiles on one collection: combined results against brute force for each."""

import random
from itertools import combinations
from typing import Any, LiteralString

import networkx as nx
import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from nearsim_db.worker.worker import Worker
from tests.builders.filled import address_of

Pairs = dict[tuple[str, str], dict[str, float]]

# Found for certain: two texts that share a feature share the only row of some band.
SURE = ["match.threshold=0.5", "bands.count=128", "bands.rows=1"]
PROFILES = {
    "headline": ['fields=["title"]', "shingle.scheme=word", "shingle.k=1", "cluster.keep=latest"],
    "body": ['fields=["body"]', "shingle.scheme=word", "shingle.k=1"],
    "sentences": ['fields=["body"]', "shingle.scheme=sentence", "shingle.k=1", "match.threshold=0.3"],
}
THRESHOLDS = {"headline": 0.5, "body": 0.5, "sentences": 0.3}


def texts(rng: random.Random) -> tuple[str, str]:
    """A headline that shares two words of three with some others, and a body of a short and a long sentence."""
    title, short, long = (rng.randrange(25) for _ in range(3))
    words = [f"long{long}at{at}" for at in range(7)] + [rng.choice("abc"), rng.choice("xyz")]
    return f"t{title} u{title} {rng.choice('vw')}", f"p{short} q{short} r{short}. {' '.join(words)}."


def fill(url: str) -> None:
    """Forty documents under three profiles."""
    rng = random.Random(1)
    with Index.connect(url, collection="news", profile="headline") as index:
        for name, settings in PROFILES.items():
            index.create_profile(name, override(Recipe(), [*SURE, *settings]))
        index.add([Document(f"d{number:02}", *texts(rng)) for number in range(40)])


url = address_of(fill)


def ask(url: str, command: LiteralString, *values: object) -> list[Any]:
    """The rows of a query."""
    with psycopg.connect(url) as connection:
        return connection.execute(command, values).fetchall()


def features(profile: str, title: str, body: str) -> set[str]:
    if profile == "sentences":
        return {part for part in body.casefold().split(".") if part.strip()}
    return set((title if profile == "headline" else body.replace(".", " ")).casefold().split())


def brute_force(url: str, thresholds: dict[str, float] = THRESHOLDS) -> Pairs:
    """The pairs under each profile, by their names in the order of doc_ids."""
    found: Pairs = {}
    documents = ask(url, "SELECT external_id, title, body FROM nearsim.document ORDER BY doc_id")
    for profile in PROFILES:
        sets = {name: features(profile, title, body) for name, title, body in documents}
        for left, right in combinations(sets, 2):
            similarity = len(sets[left] & sets[right]) / len(sets[left] | sets[right])
            if similarity >= thresholds[profile]:
                found.setdefault((left, right), {})[profile] = similarity
    return found


def combined(url: str, condition: LiteralString = "true") -> Pairs:
    command = sql.SQL("SELECT * FROM nearsim.combined_pairs WHERE collection = 'news' AND {}")
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        rows = connection.execute(command.format(sql.SQL(condition))).fetchall()
    for row in rows:
        assert row["profiles"] == sorted(row["similarities"])
        alike = row["similarities"].values()
        assert (row["highest_similarity"], row["lowest_similarity"]) == (max(alike), min(alike))
    found = {(row["left_external_id"], row["right_external_id"]): row["similarities"] for row in rows}
    assert len(found) == len(rows)
    return found


def nearly(expected: Pairs) -> dict[tuple[str, str], Any]:
    return {pair: pytest.approx(alike) for pair, alike in expected.items()}


@pytest.mark.slow("several builds")
def test_pairs_of_all_profiles_are_combined(url: str) -> None:
    expected = brute_force(url)
    assert combined(url) == nearly(expected)
    some = {"headline", "body"}
    either = {pair: alike for pair, alike in expected.items() if alike.keys() & some}
    assert combined(url, "profiles && ARRAY['headline', 'body']") == nearly(either)
    both = {pair: alike for pair, alike in expected.items() if alike.keys() >= some}
    assert combined(url, "profiles @> ARRAY['headline', 'body']") == nearly(both)
    other = {pair: a for pair, a in expected.items() if "body" in a and "headline" not in a}
    condition = "profiles @> ARRAY['body'] AND NOT profiles && ARRAY['headline']"
    assert combined(url, condition) == nearly(other)
    assert either and both and other and len(either) < len(expected)


def test_similar_documents_in_all_profiles(url: str) -> None:
    expected = brute_force(url)
    for name in ("d00", "d07", "d39"):
        own = {pair: alike for pair, alike in expected.items() if name in pair}
        assert own
        rows = ask(url, "SELECT * FROM nearsim.similar_by_profiles(%s)", name)
        assert {tuple(sorted((name, row[1]))): row[4] for row in rows} == nearly(own)
        assert [row[5] for row in rows] == sorted((max(one.values()) for one in own.values()), reverse=True)
        some = ask(url, "SELECT * FROM nearsim.similar_by_profiles(%s, ARRAY['body', 'body'], 'news')", name)
        assert {row[1] for row in some} == {
            other for pair, alike in own.items() if "body" in alike for other in set(pair) - {name}
        }
        assert {tuple(row[3]) for row in some} <= {("body",)}


def test_clusters_are_components_of_the_combined_pairs(url: str) -> None:
    ask(url, "UPDATE nearsim.document SET published_at = now() - doc_id %% 7 * interval '1 day' RETURNING 1")
    for profiles in (["headline", "body"], ["body", "sentences"], ["sentences"], None):
        check_clusters(url, profiles)


def test_numbers_and_choices_decide_the_survivors_of_combined_clusters(url: str) -> None:
    clusters: LiteralString = (
        "SELECT doc_id, is_survivor FROM nearsim.combined_clusters('news', '{body,headline}')"
    )
    numbered, *_, chosen = (doc_id for doc_id, is_survivor in ask(url, clusters) if not is_survivor)
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE nearsim.generation SET recipe = jsonb_set(recipe, '{cluster,keep}', '\"highest: score\"')"
        )
        connection.execute(
            "UPDATE nearsim.document SET attributes = '{\"score\": 7}' WHERE doc_id = %s", (numbered,)
        )
    assert dict(ask(url, clusters))[numbered]
    with psycopg.connect(url) as connection:
        connection.execute("SELECT nearsim.pin_survivor_by_doc_id(%s, 'the best of them')", (chosen,))
    assert dict(ask(url, clusters))[chosen]


def check_clusters(url: str, profiles: list[str] | None) -> None:
    """The clusters of the pairs of some profiles, and their survivors."""
    graph = nx.Graph(
        pair for pair, alike in brute_force(url).items() if alike.keys() & set(profiles or PROFILES)
    )
    rows = ask(url, "SELECT * FROM nearsim.combined_clusters('news', %s)", profiles)
    found: dict[int, set[str]] = {}
    for cluster_id, _, _, name, *_ in rows:
        found.setdefault(cluster_id, set()).add(name)
    assert {frozenset(one) for one in found.values()} == {
        frozenset(one) for one in nx.connected_components(graph)
    }
    documents = ask(url, "SELECT external_id, doc_id, published_at FROM nearsim.document")
    numbers = {name: doc_id for name, doc_id, _ in documents}
    dates = {name: date.timestamp() for name, _, date in documents}
    # Without names headline's is not the first policy, as it is not the first in the alphabet.
    sign = -1 if profiles == ["headline", "body"] else 1
    for cluster_id, size, doc_id, name, is_survivor, survivor_id, survivor in rows:
        members = found[cluster_id]
        best = min(members, key=lambda one: (sign * dates[one], sign * numbers[one]))
        assert (survivor, survivor_id, is_survivor) == (best, numbers[best], name == best)
        assert (size, doc_id) == (len(members), numbers[name])
        assert cluster_id == min(numbers[one] for one in members)


def test_invalid_calls_are_refused(url: str) -> None:
    refused: tuple[LiteralString, ...] = (
        "SELECT nearsim.similar_by_profiles('d00', ARRAY['other'])",
        "SELECT nearsim.similar_by_profiles('d00', '{}')",
        "SELECT nearsim.similar_by_profiles('d00', ARRAY[NULL])",
        "SELECT nearsim.similar_by_profiles('nobody')",
        "SELECT nearsim.combined_clusters('nowhere')",
    )
    for call in refused:
        with pytest.raises((psycopg.errors.NoDataFound, psycopg.errors.InvalidParameterValue)):
            ask(url, call)


@pytest.mark.slow("several builds")
def test_replacing_one_profile_does_not_affect_the_others(url: str) -> None:
    rng, reported = random.Random(2), set[str]()

    def write(count: int) -> None:
        for _ in range(count):
            name = f"d{rng.randrange(50):02}"
            if rng.random() < 0.2:
                ask(url, "DELETE FROM nearsim.document WHERE external_id = %s RETURNING 1", name)
            else:
                command = (
                    "INSERT INTO nearsim.document (collection_id, external_id, title, body) VALUES (1, %s, %s, %s) "
                    "ON CONFLICT (collection_id, external_id) DO UPDATE SET title = excluded.title, "
                    "body = excluded.body RETURNING 1"
                )
                ask(url, command, name, *texts(rng))

    def progress(step: str, done: int, total: int | None) -> None:
        if step not in reported:
            reported.add(step)
            write(3)

    with Database.connect(url) as database:
        reindex = Reindex(database, "news", "body", progress)
        before = dict(ask(url, "SELECT profile, generation_id FROM nearsim.live_generations"))
        reindex.start(settings=["match.threshold=0.3"])
        write(5)
        Worker(url).drain()
        assert combined(url) == nearly(brute_force(url))
        reindex.promote()
        write(5)
        Worker(url).drain()
        assert combined(url) == nearly(brute_force(url, {**THRESHOLDS, "body": 0.3}))
        after = dict(ask(url, "SELECT profile, generation_id FROM nearsim.live_generations"))
        assert {name for name in PROFILES if after[name] != before[name]} == {"body"}
        reindex.drop()
        assert combined(url) == nearly(brute_force(url, {**THRESHOLDS, "body": 0.3}))
