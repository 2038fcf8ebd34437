"""The database's constraints, each tested by violating it, and its comments."""

from collections.abc import Iterator

import pytest
from psycopg import IntegrityError
from psycopg.rows import dict_row

from nearsim_db import Document, Index
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import run
from tests.servers.databases import Server

FILL = [
    Document("a", "One", "a story of some length that is told in exactly the same words twice over"),
    Document("b", "One", "a story of some length that is told in exactly the same words twice more"),
    Document("c", "Two", "nothing of the kind stands in here, which is about another matter altogether"),
    Document("empty"),
]
BREAKING = {
    "collection_name_key": "INSERT INTO nearsim.collection (name) VALUES ('default')",
    "collection_name_given": "INSERT INTO nearsim.collection (name) VALUES ('')",
    "document_external_id_key": "INSERT INTO nearsim.document (collection_id, external_id) SELECT collection_id, 'a' "
    "FROM nearsim.collection",
    "document_external_id_length": "UPDATE nearsim.document SET external_id = repeat('x', 1025) "
    "WHERE external_id = 'a'",
    "document_attributes_at_most_100_levels": "UPDATE nearsim.document "
    "SET attributes = CAST(repeat('[', 101) || '1' || repeat(']', 101) AS jsonb)",
    "document_doc_id_positive": "INSERT INTO nearsim.document (doc_id, collection_id, external_id) "
    "OVERRIDING SYSTEM VALUE SELECT 0, collection_id, 'x' FROM nearsim.collection",
    "document_collection_fkey": "INSERT INTO nearsim.document (collection_id, external_id) VALUES (999, 'x')",
    "profile_name_key": "INSERT INTO nearsim.profile (collection_id, name) SELECT collection_id, name "
    "FROM nearsim.profile",
    "generation_one_live": "INSERT INTO nearsim.generation (profile_id, state, recipe, fingerprint) "
    "SELECT profile_id, 'live', '{}', '' FROM nearsim.profile",
    "generation_state_known": "UPDATE nearsim.generation SET state = 'asleep'",
    "generation_stage_known": "UPDATE nearsim.generation SET stage = 'asleep'",
    "signature_features_or_none": "UPDATE nearsim.signature SET sketch = NULL WHERE feature_count > 0",
    "signature_head_first": "UPDATE nearsim.signature SET head_id = doc_id + 1 WHERE feature_count > 0",
    "similar_pair_ordered": "UPDATE nearsim.similar_pair SET left_id = right_id, right_id = left_id",
    "similar_pair_counts": "UPDATE nearsim.similar_pair SET intersection_size = union_size + 1",
    "similar_pair_count.": "UPDATE nearsim.similar_pair SET intersection_size = NULL",
    "similar_pair_distance_possible": "UPDATE nearsim.similar_pair SET distance = -1",
    "similar_pair_signed": "UPDATE nearsim.similar_pair SET left_id = -1",
    "band_shared_bucket": "INSERT INTO nearsim.band (bucket_hash, doc_id, generation_id) "
    "SELECT bucket_hash, doc_id, generation_id FROM nearsim.band",
    "work_batch_leased": "INSERT INTO nearsim.work (generation_id, doc_id, stage, doc_ids) SELECT generation_id, -1, "
    "'sign', ARRAY[1] FROM nearsim.generation",
    "work_stage_known": "INSERT INTO nearsim.work SELECT generation_id, 1, 'asleep' FROM nearsim.generation",
}


def fill(url: str) -> None:
    """A small index with a pair, a single and a document without features in it."""
    with Index.connect(url) as index:
        index.add(FILL)
        assert [(pair.left, pair.right) for pair in index.pairs()] == [("a", "b")]


@pytest.fixture
def filled(server: Server) -> Iterator[Engine]:
    """A database with that index."""
    with server.database(fill) as url:
        engine = open_engine(url)
        yield engine
        engine.dispose()


def test_database_refuses_what_breaks_a_constraint(filled: Engine) -> None:
    for name, command in BREAKING.items():
        with filled.connect() as connection, pytest.raises(IntegrityError, match=name):
            connection.execute(command.encode())


def test_revision_increases_only_with_a_change(filled: Engine) -> None:
    read = "SELECT revision, updated_at > created_at FROM nearsim.document WHERE external_id = 'a'"
    with filled.connect() as connection:
        before = run(connection, read).row()
        connection.execute("UPDATE nearsim.document SET title = title")
        assert run(connection, read).row() == before
        connection.commit()
        connection.execute("UPDATE nearsim.document SET title = 'Other' WHERE external_id = 'a'")
        revision, later = run(connection, read).row()
        assert revision > before[0] and later


def test_a_band_has_its_number_in_the_top_byte_and_a_deleted_signature_has_no_pairs(filled: Engine) -> None:
    with filled.connect() as connection:
        assert connection.execute(
            "SELECT count(*) FILTER (WHERE band_no <> (bucket_hash >> 56) & 255), count(DISTINCT band_no) "
            "FROM nearsim.band"
        ).fetchall() == [(0, 20)]
        connection.execute(
            "DELETE FROM nearsim.signature USING nearsim.document "
            "WHERE document.doc_id = signature.doc_id AND external_id = 'b'"
        )
        assert run(connection, "SELECT count(*) FROM nearsim.similar_pair").value() == 0


UNTOLD = """
SELECT objects.kind, objects.name
FROM (
    SELECT CASE relkind WHEN 'v' THEN 'view' ELSE 'table' END AS kind, CAST(relname AS text) AS name,
        obj_description(oid, 'pg_class') AS comment
    FROM pg_class
    WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace)
        AND relkind IN ('r', 'p', 'v') AND NOT relispartition
    UNION ALL
    SELECT 'column', relname || '.' || attname, col_description(attrelid, attnum)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace)
        AND relkind IN ('r', 'p', 'v') AND NOT relispartition
        AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT 'attribute', relname || '.' || attname, col_description(attrelid, attnum)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind = 'c' AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT 'type', CAST(relname AS text), obj_description(reltype, 'pg_type')
    FROM pg_class WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind = 'c'
    UNION ALL
    SELECT 'schema', CAST(nspname AS text), obj_description(oid, 'pg_namespace')
    FROM pg_namespace WHERE nspname = 'nearsim'
    UNION ALL
    SELECT 'function', CAST(CAST(oid AS regprocedure) AS text), obj_description(oid, 'pg_proc')
    FROM pg_proc WHERE pronamespace = CAST('nearsim' AS regnamespace)
) AS objects
WHERE coalesce(objects.comment, '') = '' AND objects.name NOT LIKE 'alembic_version%'
ORDER BY 1, 2
"""


def test_every_table_column_view_and_function_has_a_comment(connection: Connection) -> None:
    assert connection.execute(UNTOLD.encode()).fetchall() == []


def test_public_functions_are_listed(connection: Connection) -> None:
    with connection.backend.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute("SELECT * FROM nearsim.functions").fetchall()
    assert {"similar_to", "why", "dedupe", "candidates"} < {row["name"] for row in rows}
    assert all(row["comment"] for row in rows)
    (by_id,) = (row for row in rows if row["name"] == "similar_to")
    assert by_id["arguments"].startswith("external_id text") and by_id["returns"].endswith("similar_document")
    assert [row["name"] for row in rows if row["returns"] is None] == ["similar_to_text"]


TYPES_OF_COLUMNS = """
SELECT DISTINCT CAST(CAST(atttypid AS regtype) AS text)
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind IN ('r', 'p', 'v') AND attnum > 0 AND NOT attisdropped
"""
KNOWN_TO_TOOLS = {
    *("boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "character varying"),
    *("bytea", "uuid", "jsonb", "interval", "timestamp with time zone", "text[]", "bigint[]", "real[]"),
}


def test_columns_of_public_tables_and_views_have_types_that_tools_know(connection: Connection) -> None:
    assert {name for (name,) in connection.execute(TYPES_OF_COLUMNS).fetchall()} <= KNOWN_TO_TOOLS
