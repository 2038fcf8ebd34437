"""Everything in the schema says what it is, in the database itself."""

from sqlalchemy import Connection, text

UNTOLD = """
SELECT objects.kind, objects.name
FROM (
    SELECT CASE relkind WHEN 'v' THEN 'view' ELSE 'table' END AS kind, CAST(relname AS text) AS name,
        obj_description(oid, 'pg_class') AS told
    FROM pg_class
    WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind IN ('r', 'p', 'v') AND NOT relispartition
    UNION ALL
    SELECT 'column', relname || '.' || attname, col_description(attrelid, attnum)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind IN ('r', 'p', 'v') AND NOT relispartition
        AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT 'function', CAST(CAST(oid AS regprocedure) AS text), obj_description(oid, 'pg_proc')
    FROM pg_proc WHERE pronamespace = CAST('nearsim' AS regnamespace)
) AS objects
WHERE coalesce(objects.told, '') = '' AND objects.name NOT LIKE 'alembic_version%'
ORDER BY 1, 2
"""


def test_every_table_column_view_and_function_is_explained(connection: Connection) -> None:
    assert connection.execute(text(UNTOLD)).all() == []
