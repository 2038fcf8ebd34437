"""An integer is not taken for a doc_id by functions that take an external_id."""

import psycopg
import pytest
from psycopg import sql

CALLS = [
    "similar_to(101)",
    "similar_by_profiles(101)",
    "nearest(101, 3)",
    "contains(101)",
    "contained_in(101)",
    "why(101, 102)",
    "why(101, 'a')",
    "why_not(101, 102)",
    "why_not('a', 102)",
    "pin_pair(101, 102, 'a reason')",
    "veto_pair(101, 'a', 'a reason')",
    "undo_verdict('a', 102, 'a reason')",
    "pin_survivor(101, 'a reason')",
    "unpin_survivor(101, 'a reason')",
]
OVERLOADED = """
SELECT proname FROM pg_proc
WHERE pronamespace = CAST('nearsim' AS regnamespace) AND prokind = 'f'
GROUP BY proname
HAVING count(*) > 1 AND bool_or(proargnames && ARRAY['doc_id', 'document', 'a'])
"""


@pytest.mark.parametrize("call", CALLS)
def test_an_integer_is_refused_where_an_external_id_is_expected(database_url: str, call: str) -> None:
    with (
        psycopg.connect(database_url) as session,
        pytest.raises(psycopg.errors.UndefinedFunction, match=r"\binteger\b"),
    ):
        session.execute(sql.SQL("SELECT * FROM nearsim.") + sql.SQL(call))


@pytest.mark.parametrize("call", ["why_by_doc_id(101, 'a')", "veto_pair_by_doc_id('a', 102, 'a reason')"])
def test_an_external_id_is_refused_where_a_doc_id_is_expected(database_url: str, call: str) -> None:
    with (
        psycopg.connect(database_url) as session,
        pytest.raises(psycopg.errors.InvalidTextRepresentation, match="bigint"),
    ):
        session.execute(sql.SQL("SELECT * FROM nearsim.") + sql.SQL(call))


def test_no_name_of_a_function_of_documents_has_two_signatures(database_url: str) -> None:
    with psycopg.connect(database_url) as session:
        assert session.execute(OVERLOADED).fetchall() == []
