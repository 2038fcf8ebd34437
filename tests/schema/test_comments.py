"""Every object in the schema has a comment."""

from psycopg.rows import dict_row

from nearsim_db.store.driver import Connection

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
    (by_name,) = (
        row for row in rows if row["name"] == "similar_to" and row["arguments"].startswith("external_id text")
    )
    assert by_name["returns"].endswith("similar_document") and "external_id" in by_name["comment"]
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
