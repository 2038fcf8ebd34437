"""max_matches of the lookup functions: which documents are returned, and how much is read for them."""

from collections.abc import Iterator
from itertools import product

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.worker.worker import Worker
from tests.builders.sql_world import World, world
from tests.sql.test_similar import SIMILAR, expected

LIMITED = SIMILAR.replace("%s, %s)", "%s, %s, max_matches => %s)")
TWINS = 300


@pytest.fixture
def known(database_url: str) -> Iterator[World]:
    with world(database_url) as known:
        yield known


def test_similar_to_returns_the_first_of_all(known: World) -> None:
    for asked in ((None, None), (0.8, None), (0.3, None), (None, 1), (0.2, 1)):
        for doc_id in known.doc_ids[::7]:
            every = expected(known, doc_id, *asked)
            for most in (1, 3, len(every) + 1):
                assert known.ask(LIMITED, doc_id, *asked, most) == every[:most], (doc_id, asked, most)


def test_by_external_id_and_by_profiles(known: World) -> None:
    for doc_id in known.doc_ids[::7]:
        every = [row[0] for row in expected(known, doc_id, None, None)]
        for most in (1, 4, len(every) + 1):
            for function in ("similar_to", "similar_by_profiles"):
                found = known.ask(
                    f"SELECT doc_id FROM nearsim.{function}(%s, collection => 'default', max_matches => %s)",  # noqa: S608
                    known.names[doc_id],
                    most,
                )
                assert [one for (one,) in found] == every[:most]


def test_deleted_documents_do_not_count(known: World) -> None:
    doc_id = max(known.doc_ids, key=lambda one: len(expected(known, one, None, None)))
    every = [row[0] for row in expected(known, doc_id, None, None)]
    assert len(every) > 4
    known.ask("DELETE FROM nearsim.document WHERE doc_id = ANY(%s)", every[:2])
    found = known.ask("SELECT doc_id FROM nearsim.similar_to(%s::bigint, max_matches => 3)", doc_id)
    assert [one for (one,) in found] == every[2:5]


def test_texts_have_the_matches_of_the_package(known: World, database_url: str) -> None:
    text = max(known.texts.values(), key=len)
    every = known.index.similar_to_text(text)
    for most in (1, 2, len(every), len(every) + 1):
        with psycopg.connect(database_url, autocommit=True) as other:
            (probe,) = other.execute(
                "SELECT nearsim.ask(%s, deadline => '1 minute', max_matches => %s)", (text, most)
            ).fetchone() or (0,)
            Worker(database_url).drain()
            found = other.execute(
                "SELECT external_id, similarity FROM nearsim.similar_to_text(%s)", (probe,)
            ).fetchall()
            first = other.execute(
                "SELECT external_id FROM nearsim.similar_to_text(%s, max_matches => 1)", (probe,)
            ).fetchall()
        matches = known.index.similar_to_text(text, limit=most)
        assert found == [(one.external_id, one.similarity) for one in matches]
        assert [name for (name,) in first] == [one.external_id for one in matches[:1]]
        assert matches.has_more == (most < len(every))


CALLS = (
    "SELECT * FROM nearsim.similar_to(1, max_matches => {})",
    "SELECT * FROM nearsim.similar_by_profiles(1, max_matches => {})",
    "SELECT nearsim.ask('a text', max_matches => {})",
    "SELECT * FROM nearsim.similar_to_text(1, max_matches => {})",
    "CALL nearsim.similar_to_text('a text', max_matches => {})",
)


def test_less_than_one_is_refused(known: World, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as other:
        for call, most in product(CALLS, (0, -3)):
            with pytest.raises(
                psycopg.errors.InvalidParameterValue, match=f"maximum of {most} matches is out of range"
            ):
                other.execute(call.format(most).encode())


@pytest.mark.slow("many matches")
@pytest.mark.each_major
def test_few_rows_are_read_for_a_document_with_many_matches(database_url: str) -> None:
    """Of 300 twins the first few are read, of 300 equally similar ones all of them; no table is scanned."""
    text = "the storm closed the ferry to the island for a second day the harbour master said today"
    with Index.connect(database_url) as index:
        index.add(Document(f"twin-{at}", body=text) for at in range(TWINS))
        index.add(Document(f"near-{at}", body=f"{text} at {at}") for at in range(TWINS))
        index.add(Document(f"other-{at}", body=f"number {at} of {at * at} others") for at in range(TWINS))
        for name, most in (("twin-7", 10), ("near-7", TWINS + 10)):
            every = [one.external_id for one in index.similar(name)]
            assert len(every) == 2 * TWINS - 1
            with psycopg.connect(database_url) as other:
                found = other.execute(
                    "SELECT external_id FROM nearsim.similar_to(%s, max_matches => 5)", (name,)
                ).fetchall()
                assert [one for (one,) in found] == every[:5]
                read = other.execute(READ).fetchall()
                assert {table: scans for table, scans, _ in read if scans} == {}
                assert [rows <= most for table, _, rows in read if table == "document"] == [True]
        with psycopg.connect(database_url) as other:
            evidence = other.execute(
                "SELECT is_pair, are_twins FROM nearsim.why('near-7', 'near-8')"
            ).fetchall()
            assert evidence == [(True, False)]
            assert {table: scans for table, scans, _ in other.execute(READ).fetchall() if scans} == {}
        with psycopg.connect(database_url, autocommit=True) as other:
            assert other.execute(FUNCTIONS).fetchall() == [("evidence_of_1",), ("pairs_of_1",)]
            index.delete_profile("default")
            assert other.execute(FUNCTIONS).fetchall() == []


READ = sql.SQL(
    "SELECT relname, seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables"
    " WHERE relname IN ('document', 'signature_1', 'similar_pair_1', 'band_1')"
)
FUNCTIONS = (
    "SELECT proname FROM pg_proc WHERE pronamespace = CAST('nearsim_index' AS regnamespace) ORDER BY 1"
)
