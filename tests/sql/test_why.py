"""why and why_not in SQL against brute force."""

import json
import re
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from itertools import combinations, product

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import NotFoundError
from nearsim_db.similarity import lsh, presets
from nearsim_db.similarity.recipe import override, to_mapping
from nearsim_db.store.driver import Connection
from tests.builders.sql_world import ALONE, EMPTY, RULES, THRESHOLD, World, world

MINIMUM = 5  # of shared bands, so that every reason is met

WHY = "SELECT * FROM nearsim.why_by_doc_id(CAST(%s AS bigint), CAST(%s AS bigint))"
WHY_NOT = "SELECT * FROM nearsim.why_not_by_doc_id(CAST(%s AS bigint), CAST(%s AS bigint))"


@pytest.mark.usefixtures("either_tables")
def test_why_shows_everything_about_a_pair(whole: World) -> None:
    own = whole.generation_id
    clusters = dict(
        whole.ask("SELECT doc_id, cluster_id FROM nearsim.cluster_member WHERE generation_id = %s", own)
    )
    kinds: Counter[tuple[bool, bool]] = Counter()
    for left, right in list(combinations(whole.doc_ids, 2))[::13]:
        found = whole.row(WHY, right, left)
        assert found == whole.row(WHY, left, right)
        check_sides(whole, found, left, right)
        check_scores(whole, found, left, right)
        check_numbers(whole, found, left, right)
        assert found["same_cluster"] == (left in clusters and clusters[left] == clusters.get(right))
        assert (found["verdict"], found["verdict_by"], found["verdict_why"]) == (None, None, None)
        kinds[found["is_pair"], found["are_twins"]] += 1
    assert set(kinds) == {(True, True), (True, False), (False, False)}
    assert not whole.row("SELECT * FROM nearsim.why(%s, %s)", EMPTY, ALONE)["are_twins"]
    check_verdict(whole)


def check_sides(known: World, found: dict[str, object], left: int, right: int) -> None:
    """The two documents and the recipe."""
    assert (found["left_id"], found["right_id"]) == (left, right)
    assert (found["left_external_id"], found["right_external_id"]) == (known.names[left], known.names[right])
    assert (found["profile"], found["generation_id"], found["threshold"]) == (
        "default",
        known.generation_id,
        THRESHOLD,
    )
    assert found["recipe"] == json.loads(json.dumps(to_mapping(known.profile.recipe))) | {"fields": ["body"]}


def check_scores(known: World, found: dict[str, object], left: int, right: int) -> None:
    """The stored figures of a pair, those of twins, and estimates for other documents."""
    signed = bool(known.features[left] and known.features[right])
    is_pair, twins = known.is_pair(left, right), signed and known.features[left] == known.features[right]
    assert (found["is_pair"], found["are_twins"]) == (is_pair, twins)
    assert found["similarity"] == (known.similarity(left, right) if is_pair else None)
    sizes = known.sizes(left, right) if is_pair else (None, None)
    assert (found["intersection_size"], found["union_size"]) == sizes
    assert (found["verified_at"] is not None) == (is_pair and not twins)
    bands = known.bands(left, right)
    assert found["bands"] == (bands if signed else None)
    assert found["shared_bands"] == (len(bands) if signed else None)
    assert found["estimate"] == (pytest.approx(known.estimate(left, right)) if signed else None)
    assert (found["signature_intersection"], found["signature_union"]) == signature_sizes(known, left, right)


def signature_sizes(known: World, left: int, right: int) -> tuple[int | None, int | None]:
    """Equal and distinct values of two signatures; None if a document has no features."""
    if not (known.features[left] and known.features[right]):
        return None, None
    values = list(zip(known.sketches[left].tolist(), known.sketches[right].tolist(), strict=True))
    return sum(one == other for one, other in values), sum(len({one, other}) for one, other in values)


def check_numbers(known: World, found: dict[str, object], left: int, right: int) -> None:
    """Which numbers are more often in one than in the other."""
    left_numbers, right_numbers = known.numbers(left), known.numbers(right)
    assert found["numbers_differ"] == (left_numbers != right_numbers)
    assert Counter(found["numbers_only_left"]) == left_numbers - right_numbers  # type: ignore[call-overload]
    assert Counter(found["numbers_only_right"]) == right_numbers - left_numbers  # type: ignore[call-overload]


def check_verdict(known: World) -> None:
    """It is shown, to those who give external ids, too."""
    left, right = next(pair for pair in combinations(known.doc_ids, 2) if known.is_pair(*pair))
    known.ask(
        "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why) "
        "VALUES (1, %s, %s, 'vetoed', 'Ada', 'another court')",
        left,
        right,
    )
    names = known.names[right], known.names[left]
    found = known.row("SELECT * FROM nearsim.why(%s, %s, collection => 'default')", *names)
    assert found == known.row(WHY, left, right)
    assert (found["verdict"], found["verdict_by"], found["verdict_why"]) == ("vetoed", "Ada", "another court")
    denied = known.row("SELECT * FROM nearsim.why_not(%s, %s, 'default')", *names)
    assert denied["reason"] == "Ada vetoed them: another court"
    assert (denied["is_pair"], denied["verdict"]) == (True, "vetoed")


KINDS = {
    "features": "document {empty} has no features",
    "twins": "they are a pair: twins",
    "pair": "they are a pair of similarity {similarity}",
    "both": "{estimate}, below the threshold of 0.5; they share {shared}",
    "estimate": "{estimate}, below the threshold of 0.5$",
    "buckets": "they share {shared}.*, though .* {estimate}$",
    "compared": "they were compared, and are below the threshold of 0.5, though .* {estimate}$",
}


def test_why_not_gives_the_reason(database_url: str) -> None:
    with world(database_url, f"match.min_shared_bands={MINIMUM}") as known:
        kinds: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
        for left, right in combinations(known.doc_ids, 2):
            kinds[kind_of(known, left, right)].append((left, right))
        for kind, pairs in kinds.items():
            assert pairs, kind
            for left, right in pairs[:: max(1, len(pairs) // 8)]:
                check_reason(known, kind, left, right)


def kind_of(known: World, left: int, right: int) -> str:
    """Why two documents are not a pair, or that they are one."""
    if not (known.features[left] and known.features[right]):
        return "features"
    if known.features[left] == known.features[right]:
        return "twins"
    if known.is_pair(left, right):
        return "pair"
    enough = known.shared(left, right) >= MINIMUM
    if known.estimate(left, right) < THRESHOLD:
        return "estimate" if enough else "both"
    return "compared" if enough else "buckets"


def check_reason(known: World, kind: str, left: int, right: int) -> None:
    """The correct reason and its figures."""
    found = known.row(WHY_NOT, right, left)
    assert (found["is_pair"], found["min_shared_bands"]) == (known.is_pair(left, right), MINIMUM)
    estimate, shared = known.estimate(left, right), known.shared(left, right)
    if kind == "features":
        assert found["probability"] is found["estimate"] is found["shared_bands"] is None
    else:
        profile = known.profile
        chance = lsh.match_probability(estimate, profile.bands, profile.rows, MINIMUM)
        assert found["probability"] == pytest.approx(chance, abs=1e-12)
        assert found["estimate"] == pytest.approx(estimate) and found["shared_bands"] == shared
    expected = KINDS[kind].format(
        empty=right if known.features[left] else left,
        similarity=rounded(known.similarity(left, right)),
        estimate=rounded(estimate),
        shared=f"{shared} of the {MINIMUM} buckets" if shared else "no bucket",
    )
    assert re.search(expected, found["reason"]), (expected, found["reason"])


def rounded(number: float) -> str:
    """As PostgreSQL rounds, halves away from 0."""
    return str(Decimal(repr(number)).quantize(Decimal("0.0001"), ROUND_HALF_UP))


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("either_tables")
def test_pairs_missed_because_of_the_bucket_limit(database_url: str) -> None:
    with world(database_url, "match.bucket_limit=1") as known:
        own = known.generation_id
        stored = set(
            known.ask("SELECT left_id, right_id FROM nearsim.similar_pair WHERE generation_id = %s", own)
        )
        heads = dict(known.ask("SELECT doc_id, head_id FROM nearsim.signature WHERE generation_id = %s", own))
        apart = [
            pair
            for pair in combinations([one for one in known.doc_ids if heads[one] == one], 2)
            if known.is_pair(*pair) and known.estimate(*pair) >= THRESHOLD and pair not in stored
        ]
        assert apart
        for left, right in apart:
            found = known.row(WHY_NOT, left, right)
            assert not found["is_pair"] and "the bucket limit excludes them" in str(found["reason"])
        for left, right in stored:
            assert known.row(WHY_NOT, left, right)["is_pair"]


def test_documents_that_wait_to_be_indexed_say_so(whole: World) -> None:
    note = "INSERT INTO nearsim.change (collection_id, doc_id, external_id) VALUES (%s, %s, %s)"
    home = whole.index._get_collection().collection_id
    away = whole.index.database.create_collection("away").collection_id
    names = {name: doc_id for doc_id, name in whole.names.items()}
    one, other = names["d2"], names["d3"]
    whole.ask("UPDATE nearsim.document SET body = 'something new' WHERE doc_id = %s", one)
    assert "waits" in whole.row(WHY_NOT, one, other)["reason"]
    whole.ask("DELETE FROM nearsim.signature WHERE doc_id = %s", one)
    for about, waits in (
        ((None, None, None), True),
        ((home, None, None), True),
        ((home, None, "d2"), True),
        ((home, one, None), True),
        ((home, None, "d3"), False),
        ((home, other, None), False),
        ((away, None, None), False),
        ((away, None, "d2"), False),
    ):
        whole.ask("DELETE FROM nearsim.change")
        whole.ask(note, *about)
        found = str(whole.row(WHY_NOT, one, other)["reason"])
        assert found.startswith(f"document {one} {'waits' if waits else 'is not indexed'}"), about
        with pytest.raises(NotFoundError, match="waits to be" if waits else "is not in the index of"):
            whole.index.similar("d2")
    row = whole.row(WHY, one, other)
    assert not row["is_pair"] and row["numbers_only_left"] == []
    assert row["shared_bands"] is row["estimate"] is row["numbers_differ"] is None


@pytest.mark.slow("several builds")
def test_numbers_of_a_changed_text_are_not_compared(database_url: str) -> None:
    with world(database_url) as known:
        one, other = known.doc_ids[2:4]
        known.ask("UPDATE nearsim.document SET body = 'something 77' WHERE doc_id = %s", one)
        for pair in ((one, other), (other, one)):
            found = known.row(WHY, *pair)
            assert found["numbers_differ"] == (known.numbers(one) != known.numbers(other))
            assert found["numbers_only_left"] is found["numbers_only_right"] is None
        known.index.build()
        found = known.row(WHY, one, other)
        assert (found["numbers_differ"], found["numbers_only_left"]) == (True, ["77"])


def test_null_documents_are_refused(connection: Connection) -> None:
    connection.execute(
        "INSERT INTO nearsim.collection (name) VALUES ('c');"
        "INSERT INTO nearsim.document (doc_id, collection_id, external_id) OVERRIDING SYSTEM VALUE "
        "SELECT 5, collection_id, '5' FROM nearsim.collection"
    )
    commands = [
        *(WHY, WHY_NOT),
        *(one.replace("_by_doc_id", "").replace("bigint", "text") for one in (WHY, WHY_NOT)),
    ]
    for command, pair in product(commands, ((None, 5), (5, None), (None, None))):
        with pytest.raises(psycopg.errors.NullValueNotAllowed), connection.backend.transaction():
            connection.execute(command.encode(), pair)


@pytest.mark.slow("several builds")
def test_only_documents_of_one_collection_are_compared(database_url: str) -> None:
    with world(database_url) as known, Index.connect(database_url, collection="other") as index:
        index.add([Document("d1", body="some text")])
        here, there = known.doc_ids[0], index.get("d1")["doc_id"]
        found = known.row(WHY_NOT, there, here)
        assert (found["left_external_id"], found["right_external_id"]) == (known.names[here], "d1")
        assert "different collections, 'default' and 'other'" in found["reason"] and not found["is_pair"]
        assert found["collection"] is None
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            known.ask(WHY, here, there)
        with pytest.raises(psycopg.errors.AmbiguousParameter):
            known.ask("SELECT * FROM nearsim.why('d1', 'd2')")
        for call in (WHY, WHY_NOT):
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                known.ask(call, here, here)
            with pytest.raises(psycopg.errors.NoDataFound):
                known.ask(call, here, 4711)


def test_evidence_names_the_collection_and_both_titles(database_url: str) -> None:
    with Index.connect(database_url, collection="news") as index:
        index.add([Document("a", "First", "some text"), Document("b", None, "other words of another text")])
    with psycopg.connect(database_url) as session:
        for function in ("why", "why_not"):
            query = f"SELECT collection, left_title, right_title FROM nearsim.{function}('b', 'a')"  # noqa: S608
            assert session.execute(query.encode()).fetchall() == [("news", "First", None)]


@pytest.mark.slow("several profiles")
@pytest.mark.parametrize("profile", ["wide", "narrow"])
def test_named_profile_is_used(database_url: str, profile: str) -> None:
    documents = [
        Document("a", body="one two three 4"),
        Document("b", body="One two three 5"),
        Document("c", body="six"),
    ]
    with Index.connect(database_url, profile="wide") as index:
        known = World.build(index, ["shingle.k=1", "match.threshold=0.3"], documents, "wide")
        World.build(index, [*RULES, "match.threshold=0.9"], [], "narrow")
        found = known.row("SELECT * FROM nearsim.why('a', 'b', %s)", profile)
        assert (found["profile"], found["is_pair"]) == (profile, profile == "wide")
        assert (found["numbers_only_left"], found["numbers_only_right"]) == (["4"], ["5"])
        with pytest.raises(psycopg.errors.AmbiguousParameter):
            known.ask("SELECT * FROM nearsim.why('a', 'b')")
        known.ask("UPDATE nearsim.profile SET name = 'default' WHERE name = %s RETURNING name", profile)
        assert known.row("SELECT profile, is_pair FROM nearsim.why('a', 'b')") == {
            "profile": "default",
            "is_pair": profile == "wide",
        }


def test_numbers_in_html(database_url: str) -> None:
    rules = ["normalise.html=true", "shingle.k=1"]
    pages = {
        "a": "<p class=7>Paid 100 and 20 on the ２nd &#8217; <script>x = 3</script> 20 <b>5</b><script>y = 4</script>",
        "b": "<p>Paid 20 and 1000",
    }
    with Index.connect(database_url) as index:
        known = World.build(index, rules, [Document(name, body=page) for name, page in pages.items()])
        found = known.row("SELECT * FROM nearsim.why('a', 'b')")
        assert (found["numbers_only_left"], found["numbers_only_right"]) == (
            ["100", "2", "20", "5"],
            ["1000"],
        )


def test_numbers_of_articles_are_not_those_of_their_pages(database_url: str) -> None:
    story = "The ferry to the island was closed for {} days because of the storm, the harbour master said. "
    pages = {
        name: f"<html><body><nav>Call {phone}</nav><article><p>{story.format(days) * 4}</p></article></body></html>"
        for name, phone, days in (("a", 555, 2), ("b", 777, 3), ("c", 888, 3))
    }
    with Index.connect(database_url) as index:
        known = World.build(
            index, ["normalise.html=main"], [Document(name, body=page) for name, page in pages.items()]
        )
        for other, differ, only in (("a", True, (["2"] * 4, ["3"] * 4)), ("c", False, ([], []))):
            found = known.row("SELECT * FROM nearsim.why(%s, 'b')", other)
            assert found["numbers_differ"] == differ
            assert found["numbers_only_left"] is found["numbers_only_right"] is None
            explained = index.why(other, "b")
            assert (explained.left.only_here, explained.right.only_here) == only


@pytest.mark.slow("11 megabytes in regular expressions")
def test_numbers_in_a_megabyte_of_hostile_markup_take_seconds(database_url: str) -> None:
    pieces = ["<", "<script>", "<script>1</script>", "<p <b ", "&#1", "<div>", "<!--", "<a b='", "<style"]
    pieces += ["\u0300\u0316", "\uff9e\u0300"]
    pages = [piece * (1_000_000 // len(piece)) + "> 7" for piece in pieces]
    with Index.connect(database_url) as index, index.database.engine.begin() as connection:
        recipe = json.dumps(to_mapping(override(presets.load("web-pages"), ["normalise.html=true"])))
        cursor = connection.backend.cursor()
        cursor.execute("INSERT INTO nearsim.collection (name) VALUES ('pages') RETURNING collection_id")
        collection_id = row[0] if (row := cursor.fetchone()) else None
        for piece, page in zip(pieces, pages, strict=True):
            cursor.execute(
                "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, %s, %s) RETURNING doc_id",
                (collection_id, piece, page),
            )
            doc_id = row[0] if (row := cursor.fetchone()) else None
            cursor.execute("SET LOCAL statement_timeout = '10s'")
            cursor.execute("SELECT nearsim.numbers_of(%s, CAST(%s AS jsonb))", (doc_id, recipe))
            found = row[0] if (row := cursor.fetchone()) else None
            expected = {"<script>": [], "<style": [], "&#1": ["1"] * 333_333 + ["7"]}.get(piece, ["7"])
            assert found == expected, piece
