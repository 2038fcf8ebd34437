"""Functions and views have the same results whatever the settings of the calling session."""

from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.builders.function_trials import DRAWING, TRIALS, WRITING
from tests.builders.isolation_world import filled, relations, tenant
from tests.builders.relations import identifier
from tests.builders.session_settings import FORMATS, MEANING, PLANS, set_in_session

PLAIN = {
    "numbers in markup": "SELECT nearsim.numbers_of({marked}, "
    '\'{{"fields": ["title", "body"], "normalise": {{"html": true, "unicode": "nfkc"}}}}\')',
    "amplification": "SELECT steps, rows FROM nearsim.parse_amplification('or( 40 , and(3))')",
    "preferred sources": "SELECT * FROM nearsim.combined_clusters({collection}) ORDER BY doc_id",
}
MARKED = "<script>var a = 12;</script><b>34</b> of 56 <style>p { width: 78px }</style>"
# Those of the session itself.
OWN = {"client_encoding", "restrict_nonsystem_relation_kind", "exit_on_error"}


def results(
    connection: "psycopg.Connection[Any]", given: dict[str, object], views: list[str]
) -> dict[str, Any]:
    """The rows of every function and view, in the binary format, in which no setting changes them."""
    found: dict[str, Any] = {}
    with connection.cursor(binary=True) as cursor:
        for name, call in {**TRIALS, **PLAIN, **WRITING}.items():
            try:
                with connection.transaction(force_rollback=True):
                    rows = cursor.execute(filled(call, given)).fetchall()
                    found[name] = len(rows) if name in WRITING or name in DRAWING else rows
            except psycopg.Error as error:
                found[name] = error.sqlstate, error.diag.message_primary
        for view in views:
            query = sql.SQL("SELECT * FROM {} AS found ORDER BY found").format(identifier(view))
            found[view] = cursor.execute(query).fetchall()
    return found


@pytest.mark.slow("runs all queries twice")
@pytest.mark.each_major
def test_results_do_not_depend_on_the_session(database_url: str) -> None:
    given = tenant(database_url, "default", "own")
    views = [name for name, is_view in relations(database_url).items() if is_view and name != "functions"]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE nearsim.generation SET recipe = jsonb_set(recipe, '{cluster,keep}', '\"source: b , own\"')"
        )
        connection.execute("UPDATE nearsim.probe SET answered_at = clock_timestamp()")
        connection.execute(
            "INSERT INTO nearsim.probe_match (probe_id, doc_id, similarity, estimate, shared_bands, verified) "
            "VALUES (%(probe)s, %(doc)s, 1.0 / 3, 0.3, 7, true)",
            given,
        )
        (marked,) = connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, 'marked', %s) "
            "RETURNING doc_id",
            (given["collection_id"], MARKED),
        ).fetchone() or (None,)
        given["marked"] = marked
        expected = results(connection, given, views)
    ((answer,),) = expected["answer_to(bigint)"]
    assert [(match["doc_id"], match["similarity"]) for match in answer] == [(given["doc"], 1 / 3)]
    assert expected["numbers in markup"] == [(["34", "56"],)]
    assert expected["amplification"] == [([[1, 40]], 3)]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA hostile")
        settings = {name: value for name, value in {**FORMATS, **MEANING, **PLANS}.items() if name not in OWN}
        set_in_session(connection, settings)
        found = results(connection, given, views)
    # A view cannot keep the session from rounding the numbers that it puts into JSON.
    assert found.pop("combined_pairs") != expected.pop("combined_pairs")
    assert {name: rows for name, rows in found.items() if rows != expected[name]} == {}
