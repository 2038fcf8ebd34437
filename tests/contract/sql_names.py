"""The functions for callers, the relations and the columns of the schema nearsim, from the catalogue of PostgreSQL."""

import re

import psycopg

_FUNCTIONS = "SELECT name, arguments, coalesce(returns, '') FROM nearsim.functions"
_RELATIONS = """
SELECT CASE relkind WHEN 'v' THEN 'view ' WHEN 'c' THEN 'type ' ELSE 'table ' END || relname,
    array_agg(format('%s %s', attname, format_type(atttypid, atttypmod))
        || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END ORDER BY attnum)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind IN ('v', 'c', 'r', 'p') AND NOT relispartition
    AND relname <> 'alembic_version'
GROUP BY pg_class.oid
"""
# Commas between arguments, not those of a type or a default.
_COMMA = re.compile(r", (?![^(]*\))")


def render(url: str) -> str:
    """Return a paragraph for each function, with its arguments and result, then for each relation."""
    with psycopg.connect(url) as connection:
        functions = [
            (f"function {name}", [*_COMMA.split(arguments), *_result(returns)])
            for name, arguments, returns in connection.execute(_FUNCTIONS)
        ]
        relations = connection.execute(_RELATIONS).fetchall()
    # Sorted here, as the order of names in SQL depends on the locale.
    return (
        "\n\n".join("\n  ".join([name, *lines]) for name, lines in [*sorted(functions), *sorted(relations)])
        + "\n"
    )


def _result(returns: str) -> list[str]:
    _, _, columns = returns.partition("TABLE(")
    if not columns:
        return [f"returns {returns}"] if returns else ["called with CALL"]
    return ["returns a table:", *(f"  {column}" for column in columns.removesuffix(")").split(", "))]
