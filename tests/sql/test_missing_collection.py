"""SQL functions that take the name of a collection that does not exist."""

import psycopg
import pytest
from psycopg import sql

CALLS = [
    "nearsim.candidates('typo')",
    "nearsim.review_queue('typo')",
    "nearsim.review_counts('typo')",
    "nearsim.combined_clusters('typo')",
    "nearsim.clusters_at(0.5, 'typo')",
    "nearsim.similar_to('a', collection => 'typo')",
    "nearsim.similar_by_profiles('a', collection => 'typo')",
    "nearsim.nearest('a', collection => 'typo')",
    "nearsim.contains('a', collection => 'typo')",
    "nearsim.contained_in('a', collection => 'typo')",
    "nearsim.why('a', 'b', collection => 'typo')",
    "nearsim.why_not('a', 'b', collection => 'typo')",
    "nearsim.word_diff('a', 'b', collection => 'typo')",
    "nearsim.pin_pair('a', 'b', 'a reason', collection => 'typo')",
    "nearsim.veto_pair('a', 'b', 'a reason', collection => 'typo')",
    "nearsim.undo_verdict('a', 'b', 'a reason', collection => 'typo')",
    "nearsim.pin_survivor('a', 'a reason', collection => 'typo')",
    "nearsim.document_named('a', 'typo')",
    "nearsim.ask('a text', collection => 'typo')",
]


@pytest.mark.parametrize("call", CALLS)
def test_a_function_refuses_a_missing_collection(database_url: str, call: str) -> None:
    with psycopg.connect(database_url) as session:
        session.execute("INSERT INTO nearsim.collection (name) VALUES ('news')")
        refusal = f"collection 'typo' does not exist in database {session.info.dbname}; .*: 'news'"
        with pytest.raises(psycopg.errors.NoDataFound, match=refusal):
            session.execute(sql.SQL("SELECT * FROM ") + sql.SQL(call))


@pytest.mark.parametrize("call", ["nearsim.candidates()", "nearsim.review_queue()", "nearsim.ask('a text')"])
def test_a_function_without_a_name_refuses_a_database_without_collections(
    database_url: str, call: str
) -> None:
    with (
        psycopg.connect(database_url) as session,
        pytest.raises(psycopg.errors.NoDataFound, match="no collection exists yet in database"),
    ):
        session.execute(sql.SQL("SELECT * FROM ") + sql.SQL(call))
