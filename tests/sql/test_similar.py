"""similar_to in SQL against brute force."""

from typing import Any

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver import Engine
from tests.builders.selection import some
from tests.builders.sql_world import ALONE, EMPTY, MINIMUM, RULES, THRESHOLD, World, world

SIMILAR = (
    "SELECT doc_id, similarity, estimate, shared_bands, intersection_size, union_size, verified "
    "FROM nearsim.similar_to_by_doc_id(CAST(%s AS bigint), %s, %s)"
)

NEAREST = SIMILAR.replace("similar_to", "nearest")

Row = tuple[Any, ...]


def expected(known: World, doc_id: int, similarity: float | None, shared: int | None) -> list[Row]:
    """The expected results, the most similar first."""
    least = THRESHOLD if similarity is None else similarity
    fewest = MINIMUM if shared is None else shared
    rows: list[tuple[float, int, Row]] = []
    for other in known.doc_ids:
        bands, estimate = known.shared(doc_id, other), known.estimate(doc_id, other)
        said = (pytest.approx(estimate), bands)
        if other == doc_id or bands < max(fewest, 1):
            continue
        if known.is_pair(doc_id, other):
            exact = known.similarity(doc_id, other)
            if exact >= least:
                rows.append((-exact, other, (other, exact, *said, *known.sizes(doc_id, other), True)))
        elif estimate >= least and not (least >= THRESHOLD and bands >= MINIMUM):
            rows.append((-estimate, other, (other, estimate, *said, None, None, False)))
    return [row for _, _, row in sorted(rows, key=lambda found: found[:2])]


FAMILIES = [
    [],
    ["sketch.family=minhash", "bands.hash=xor"],
    ["sketch.family=bottom_k", "bands.rows=1", "sketch.k=64"],
]


@pytest.mark.slow("every threshold")
@pytest.mark.parametrize("rules", some(FAMILIES, "every family"))
def test_similar_to_at_every_threshold(database_url: str, rules: list[str]) -> None:
    with world(database_url, *rules) as known:
        seen: set[object] = set()
        for asked in (
            (None, None),
            (0.8, None),
            (None, 20),
            (0.3, None),
            (None, 1),
            (0.2, 1),
            (0.9, 2),
            (0, 4),
        ):
            for doc_id in known.doc_ids[::6]:
                found = known.ask(SIMILAR, doc_id, *asked)
                assert found == expected(known, doc_id, *asked), (known.names[doc_id], asked)
                seen |= {(row[6], row[1] == 1) for row in found}
        assert seen == {(True, True), (True, False), (False, False)}
        for doc_id in known.doc_ids[::6]:
            for k, least in ((None, None), (3, 0.4)):
                wanted = expected(known, doc_id, least or 0.0, 1)[: k or 5]
                assert known.ask(NEAREST, doc_id, k, least) == wanted, known.names[doc_id]


def test_similar_to_equals_the_package_and_shows_numbers_and_verdicts(whole: World) -> None:
    for doc_id, name in whole.names.items():
        found = whole.ask(
            "SELECT external_id, title, similarity, intersection_size, union_size, shared_bands "
            "FROM nearsim.similar_to(%s, collection => 'default')",
            name,
        )
        matches = whole.index.similar(name) if whole.features[doc_id] else []
        assert found == [
            (one.external_id, one.title, one.similarity, one.intersection, one.union, one.shared_bands)
            for one in matches
        ]
    check_numbers_and_verdicts(whole)
    check_without_similar_ones(whole)


def check_numbers_and_verdicts(known: World) -> None:
    """Whether numbers differ, and the verdict that was not undone."""
    doc_id = max(known.doc_ids, key=lambda one: len(expected(known, one, None, None)))
    others = [row[0] for row in expected(known, doc_id, None, None)]
    pinned, vetoed, undone = others[:3]
    decide(known, doc_id, pinned, "pinned")
    decide(known, doc_id, vetoed, "vetoed")
    decide(known, doc_id, undone, "vetoed", "now")
    verdicts = {pinned: "pinned", vetoed: "vetoed"}
    found = known.ask(
        "SELECT doc_id, numbers_differ, verdict FROM nearsim.similar_to_by_doc_id(%s::bigint)", doc_id
    )
    assert found == [
        (other, known.numbers(doc_id) != known.numbers(other), verdicts.get(other)) for other in others
    ]
    assert len({differ for _, differ, _ in found}) == 2


def decide(known: World, one: int, other: int, verdict: str, undone_at: str | None = None) -> None:
    """Insert a verdict; one that was undone has no effect."""
    by = None if undone_at is None else "somebody"
    known.ask(
        "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why, undone_at, undone_by, "
        "undone_why) SELECT collection_id, %s, %s, %s, 'Ada', 'a test', %s, %s, %s FROM nearsim.document "
        "WHERE doc_id = %s",
        min(one, other),
        max(one, other),
        verdict,
        undone_at,
        by,
        by,
        one,
    )


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("either_tables")
def test_bucket_limit_bounds_additional_candidates(database_url: str) -> None:
    with world(database_url, "match.bucket_limit=2") as known:
        own = known.generation_id
        heads = {
            one: min(o for o in known.doc_ids if known.features[o] == known.features[one])
            for one in known.doc_ids
        }
        stored = dict.fromkeys(
            known.ask("SELECT left_id, right_id FROM nearsim.similar_pair WHERE generation_id = %s", own)
        )
        members: dict[int, list[int]] = {}
        for bucket, doc_id in known.ask(
            "SELECT bucket_hash, doc_id FROM nearsim.band WHERE generation_id = %s ORDER BY 2", own
        ):
            members.setdefault(bucket, []).append(doc_id)
        for doc_id in known.doc_ids:
            head = heads[doc_id]
            met = {one for bucket in members.values() if head in bucket for one in bucket[:2]}
            wanted = {
                other
                for other in known.doc_ids
                if heads[other] in met - {head}
                and (min(head, heads[other]), max(head, heads[other])) not in stored
            }
            found = known.ask(
                "SELECT doc_id FROM nearsim.similar_to_by_doc_id(%s::bigint, 0, 1) WHERE NOT verified", doc_id
            )
            assert {other for (other,) in found} == (wanted if known.features[doc_id] else set())


def check_without_similar_ones(known: World) -> None:
    """A document without features, one like no other, and one that is not indexed yet."""
    for name in (EMPTY, ALONE):
        assert known.ask("SELECT * FROM nearsim.similar_to(%s)", name) == []
    known.ask(
        "INSERT INTO nearsim.document (collection_id, external_id, body) "
        "SELECT collection_id, 'new', body FROM nearsim.document WHERE external_id = 'd1'"
    )
    assert known.ask("SELECT * FROM nearsim.similar_to('new')") == []


REFUSED = [
    ("similar_to_by_doc_id(4711)", psycopg.errors.NoDataFound),
    ("similar_to('gone')", psycopg.errors.NoDataFound),
    ("similar_to('a', collection => 'third')", psycopg.errors.NoDataFound),
    ("similar_to('a')", psycopg.errors.AmbiguousParameter),
    ("similar_to('b')", psycopg.errors.AmbiguousParameter),
    ("similar_to('b', profile => 'r')", psycopg.errors.NoDataFound),
    ("similar_to('b', 1.5, profile => 'p')", psycopg.errors.InvalidParameterValue),
    ("similar_to('b', NULL, 0, 'p')", psycopg.errors.InvalidParameterValue),
    ("nearest('b')", psycopg.errors.AmbiguousParameter),
    ("nearest('b', 0, profile => 'p')", psycopg.errors.InvalidParameterValue),
]


def test_ambiguous_ids_need_a_collection(several: Engine) -> None:
    with several.connect() as connection:
        for call, error in REFUSED:
            with pytest.raises(error):
                connection.execute(f"SELECT nearsim.{call}".encode())
            connection.rollback()
        for collection, profile in (("default", "p"), ("other", None)):
            row = connection.execute(
                "SELECT nearsim.document_named('a', %s), doc_id FROM nearsim.document JOIN nearsim.collection "
                "USING (collection_id) WHERE name = %s AND external_id = 'a'",
                (collection, collection),
            ).fetchone()
            assert row is not None and row[0] == row[1]
            connection.execute(
                "SELECT * FROM nearsim.similar_to('a', profile => %s, collection => %s)",
                (profile, collection),
            )


@pytest.fixture
def several(engine: Engine) -> Engine:
    """Two collections with a document a, the first with the profiles p and q (not live); one without a profile."""
    url = engine.url
    with Index.connect(url, profile="p") as index:
        index.create_profile("p", override(Recipe(), RULES))
        index.create_profile("q", Recipe())
        index.add([Document("a", body="some text"), Document("b", body="more text")])
        with index.database.transaction() as connection:
            connection.execute(
                "UPDATE nearsim.generation SET state = 'retired' FROM nearsim.profile "
                "WHERE profile.profile_id = generation.profile_id AND name = 'q'"
            )
    with Index.connect(url, collection="other") as index:
        index.add([Document("a", body="some text")])
    with engine.begin() as connection:
        connection.execute(
            "WITH made AS (INSERT INTO nearsim.collection (name) VALUES ('bare') RETURNING collection_id) "
            "INSERT INTO nearsim.document (collection_id, external_id) SELECT collection_id, 'c' FROM made"
        )
    return engine
