"""Checking a document before it is added: the pairs it would get, without writing anything."""

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.command_line import BRIDGE, STORM
from tests.builders.near_copies import edited, recipe, text
from tests.builders.relations import identifier
from tests.builders.word_sets import shingles


def overlap(left: str, right: str) -> tuple[int, int]:
    return len(shingles(left) & shingles(right)), len(shingles(left) | shingles(right))


@pytest.fixture
def texts() -> dict[str, str]:
    """Families of near-copies with twins among them."""
    rng = random.Random(1)
    bodies = {}
    for family in range(20):
        original = text(rng, 40)
        for member in range(6):
            bodies[f"f{family}-{member}"] = edited(rng, original, member // 2) if member != 5 else original
    return bodies


def expected(texts: dict[str, str], name: str, body: str) -> dict[str, tuple[int, int]]:
    """By brute force: the others that reach the threshold, with intersection and union."""
    found = {other: overlap(body, known) for other, known in texts.items() if other != name}
    return {other: (i, u) for other, (i, u) in found.items() if 10 * i >= 7 * u}


def found(index: Index, document: Document) -> dict[str, tuple[int | None, int | None]]:
    matches = index.check(document)
    assert [one.similarity for one in matches] == sorted((one.similarity for one in matches), reverse=True)
    assert all(one.similarity == (one.intersection or 0) / (one.union or 1) for one in matches)
    return {one.external_id: (one.intersection, one.union) for one in matches}


def test_check_equals_brute_force(index: Index, texts: dict[str, str]) -> None:
    index.create_profile("p", recipe())
    index.add(Document(name, body=body) for name, body in texts.items())
    rng = random.Random(2)
    for name, body in texts.items():
        assert found(index, Document("new", body=body)) == expected(texts, "new", body)
        changed = edited(rng, body, 2)
        assert found(index, Document(name, body=changed)) == expected(texts, name, changed)
        assert index.similar_to_text(body) == index.check(Document("new", body=body))
    strict = index.check(Document("new", body=texts["f0-0"]), min_similarity=0.99)
    assert [one.similarity for one in strict] == [1.0] * len(strict) and strict
    assert index.check(Document("other")) == index.check(Document("other", body=" \0!? ")) == []


@pytest.mark.slow("several builds")
def test_check_agrees_with_adding(index: Index, texts: dict[str, str]) -> None:
    """Also for buckets over the limit: check returns the pairs that the document gets when added."""
    index.create_profile("p", recipe(bucket_limit=2))
    *first, last = [Document(name, body=body) for name, body in texts.items()]
    index.add(first)
    rng = random.Random(3)
    others = [Document(f"n{at}", body=edited(rng, text, at % 3)) for at, text in enumerate(texts.values())]
    for document in [last, *others[::5]]:
        reported = index.check(document)
        index.add([document])
        assert {one.external_id for one in reported} == {
            one.external_id for one in index.similar(document.external_id)
        }


def test_a_twin_beyond_the_anchors_of_full_buckets_is_found(index: Index) -> None:
    """Its head is no anchor of any bucket, but has the same features."""
    index.create_profile("p", recipe(bucket_limit=2))
    rng = random.Random(4)
    original = text(rng)
    family = [Document(f"d{at}", body=edited(rng, original, 1)) for at in range(12)]
    index.add(family)
    again = Document("again", body=family[-1].body)
    assert "d11" in {one.external_id for one in index.check(again)}
    index.add([again])
    assert "d11" in {one.external_id for one in index.similar("again")}


def test_head_changed_in_sql_is_replaced_by_its_twin(index: Index, database_url: str) -> None:
    """The change is not indexed yet: the signature of the head still exists, its text does not."""
    rng = random.Random(5)
    body, other = text(rng, 40), text(rng, 40)
    index.add([Document("head", body=body), Document("twin", body=body)])
    near = Document("near", body=body + " and more")
    for change in (
        "UPDATE nearsim.document SET body = %(other)s WHERE external_id = 'head'",
        "DELETE FROM nearsim.document WHERE external_id = 'head'",
    ):
        with Index.connect(database_url) as fresh, psycopg.connect(database_url) as plain:
            plain.execute(change, {"other": other})
            plain.commit()
            assert "twin" in {one.external_id for one in fresh.check(near)}


@pytest.mark.slow("every kind of look-up")
def test_nothing_is_written(index: Index, texts: dict[str, str], database_url: str) -> None:
    index.add(Document(name, body=body) for name, body in texts.items())
    with psycopg.connect(database_url, autocommit=True) as plain:
        before = written(plain)
        for body in texts.values():
            assert index.check(Document("new", body=body))
        list(index.check_many(Document(name, body=body) for name, body in texts.items()))
        assert written(plain) == before


def written(connection: "psycopg.Connection[Any]") -> dict[str, object]:
    """Each table's rows, and the newest transaction that wrote one."""
    names = [
        row[0]
        for row in connection.execute(
            "SELECT relname FROM pg_class "
            "WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) AND relkind = 'r'"
        )
    ]
    counts: dict[str, object] = {}
    for name in names:
        query = sql.SQL("SELECT count(*), max(xmin::text) FROM {}").format(identifier(name))
        counts[name] = connection.execute(query).fetchone()
    return counts


@pytest.mark.slow("load")
def test_many_threads_share_one_index(index: Index, texts: dict[str, str]) -> None:
    index.create_profile("p", recipe())
    index.add(Document(name, body=body) for name, body in texts.items())
    questions = [Document("new", body=body) for body in texts.values()]
    alone = [found(index, question) for question in questions]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda question: found(index, question), questions * 5))
    assert together == alone * 5


@pytest.mark.slow("several builds")
def test_new_generation_is_noticed(index: Index, texts: dict[str, str]) -> None:
    """A profile is dropped and created again under its name, with a different threshold."""
    question, names = Document("new", body=texts["f0-0"]), []
    for threshold in (0.7, 0.999):
        index.create_profile("p", recipe(threshold=threshold))
        index.add(Document(name, body=body) for name, body in texts.items())
        names.append({one.external_id for one in index.check(question)})
        with Index.connect(index.database.engine.url) as other:
            other.delete_profile("p")
        with pytest.raises(NotFoundError, match="no profile"):
            index.check(question)
    assert names[1] < names[0]
    assert names[1] == {name for name, body in texts.items() if shingles(body) == shingles(texts["f0-0"])}


OTHERS = sql.SQL(
    "SELECT DISTINCT {} FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def test_a_lost_connection_is_reopened_a_purge_noticed_and_no_transaction_left_open(
    index: Index, texts: dict[str, str], database_url: str
) -> None:
    """The connection is kept for the next query, but does not hold back VACUUM."""
    index.add(Document(name, body=body) for name, body in texts.items())
    question = Document("new", body=texts["f0-0"])
    before = index.check(question)
    with psycopg.connect(database_url, autocommit=True) as plain:
        states = plain.execute(OTHERS.format(sql.SQL("state"))).fetchall()
        assert before and states == [("idle",)]
        kept = index._lookups.live().context.cache
        plain.execute("UPDATE nearsim.collection SET purged_at = now()")
        assert index.check(question) == before
        assert index._lookups.live().context.cache is not kept
        plain.execute(OTHERS.format(sql.SQL("pg_terminate_backend(pid, 5000)")))
        assert index.check(question) == before


@pytest.mark.parametrize(("compared", "given"), [("title", "body"), ("body", "title")])
def test_a_document_without_the_compared_field_is_refused(
    database_url: str, compared: str, given: str
) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), [f'fields=["{compared}"]']))
        index.add([Document("storm", STORM, STORM)])

        for external_id in ("", "new"):
            with pytest.raises(InputError, match=f"compares the {compared} only, .* only a {given}"):
                index.check(
                    Document(external_id, title=STORM)
                    if given == "title"
                    else Document(external_id, body=STORM)
                )
        fields: dict[str, Any] = {compared: STORM}
        assert len(index.similar_to_text(**fields)) == 1
        fields[given] = BRIDGE
        assert len(index.similar_to_text(**fields)) == 1
