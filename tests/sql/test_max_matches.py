"""max_matches of the lookup functions: which documents are returned, and how much is read for them."""

from itertools import product

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.worker.worker import Worker
from tests.builders.sql_world import World
from tests.sql.test_similar import SIMILAR, expected

LIMITED = SIMILAR.replace("%s, %s)", "%s, %s, max_matches => %s)")
TWINS = 300


@pytest.mark.slow("several builds")
def test_the_first_of_all_matches_are_returned(whole: World) -> None:
    for asked in ((None, None), (0.8, None), (0.3, None), (None, 1), (0.2, 1)):
        for doc_id in whole.doc_ids[::7]:
            every = expected(whole, doc_id, *asked)
            for most in (1, 3, len(every) + 1):
                assert whole.ask(LIMITED, doc_id, *asked, most) == every[:most], (doc_id, asked, most)
    for doc_id in whole.doc_ids[::7]:
        ids = [row[0] for row in expected(whole, doc_id, None, None)]
        for function, most in product(("similar_to", "similar_by_profiles"), (1, 4, len(ids) + 1)):
            command = f"SELECT doc_id FROM nearsim.{function}(%s, collection => 'default', max_matches => %s)"  # noqa: S608
            assert [one for (one,) in whole.ask(command, whole.names[doc_id], most)] == ids[:most]
    doc_id = max(whole.doc_ids, key=lambda one: len(expected(whole, one, None, None)))
    ids = [row[0] for row in expected(whole, doc_id, None, None)]
    whole.ask("DELETE FROM nearsim.document WHERE doc_id = ANY(%s)", ids[:2])
    found = whole.ask("SELECT doc_id FROM nearsim.similar_to_by_doc_id(%s::bigint, max_matches => 3)", doc_id)
    assert len(ids) > 4 and [one for (one,) in found] == ids[2:5]


@pytest.mark.slow("several workers")
def test_texts_have_the_matches_of_the_package(whole: World) -> None:
    database_url = whole.index.database.engine.url
    check_limits_below_one(database_url)
    text = max(whole.texts.values(), key=len)
    every = whole.index.similar_to_text(text)
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
        matches = whole.index.similar_to_text(text, limit=most)
        assert found == [(one.external_id, one.similarity) for one in matches]
        assert [name for (name,) in first] == [one.external_id for one in matches[:1]]
        assert matches.has_more == (most < len(every))


CALLS = (
    "SELECT * FROM nearsim.similar_to_by_doc_id(1, max_matches => 0)",
    "SELECT * FROM nearsim.similar_by_profiles_by_doc_id(1, max_matches => 0)",
    "SELECT nearsim.ask('a text', max_matches => -3)",
    "SELECT * FROM nearsim.similar_to_text(1, max_matches => 0)",
    "CALL nearsim.similar_to_text('a text', max_matches => 0)",
)


def check_limits_below_one(url: str) -> None:
    """They are refused."""
    with psycopg.connect(url, autocommit=True) as other:
        for call in CALLS:
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                other.execute(call.encode())


@pytest.mark.usefixtures("own_tables")
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
            assert other.execute(FUNCTIONS).fetchall() == [
                ("evidence_of_100000001",),
                ("pairs_of_100000001",),
            ]
            index.delete_profile("default")
            assert other.execute(FUNCTIONS).fetchall() == []


READ = sql.SQL(
    "SELECT relname, seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables"
    " WHERE relname IN ('document', 'signature_100000001', 'similar_pair_shared', 'band_100000001')"
)
FUNCTIONS = (
    "SELECT proname FROM pg_proc WHERE pronamespace = CAST('nearsim_index' AS regnamespace)"
    " AND proname ~ '[0-9]$' ORDER BY 1"
)
